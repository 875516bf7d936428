"""Over TLS: whose certificate is trusted is told by a context; another one is refused, in words."""

import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from fleetcron.client.errors import Unavailable
from tests.client.faces import Asked


class Echo(http.server.BaseHTTPRequestHandler):
    """What was asked, by whom, and on which connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        told = {"path": self.path, "key": self.headers["Authorization"], "from": self.client_address}
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key, and a certificate that it has signed itself, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fleetcron test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "certificate.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return file


@pytest.fixture(scope="module")
def secured(certificate: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # whoever does not trust it hangs up
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}/behind/a/proxy"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_certificate_is_trusted_if_somebody_says_so(
    secured: str, certificate: Path, connect: Callable[..., Asked]
) -> None:
    client = connect(secured, key="fck_x", tls=ssl.create_default_context(cafile=str(certificate)))
    first, second = client.me(), client.me()
    assert (first["path"], first["key"]) == ("/behind/a/proxy/api/v1/me", "Bearer fck_x")
    assert first["from"] == second["from"]  # the connection was used again
    stranger = connect(secured, key="fck_x", tries=1)
    with pytest.raises(Unavailable, match=r"its certificate is not trusted.*tls="):
        stranger.me()

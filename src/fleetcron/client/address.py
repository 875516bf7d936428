"""Where the API is and who asks: from arguments, the environment and the settings."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fleetcron.config import load
from fleetcron.errors import ConfigError, Mistake

URL_VARIABLE: Final = "FLEETCRON_API_URL"
KEY_VARIABLE: Final = "FLEETCRON_API_KEY"
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # where a server listens, and where one finds it then
_DATABASES: Final = ("sqlite", "postgres", "postgresql")


@dataclass(frozen=True, slots=True)
class Address:
    """`prefix` is the path before /api/v1, if the API is mounted under one."""

    scheme: str
    host: str
    port: int
    prefix: str = ""
    key: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"

    def headers(self, agent: str) -> dict[str, str]:
        said = {"User-Agent": agent, "Accept": "application/json"}
        return said if self.key is None else {**said, "Authorization": f"Bearer {self.key}"}


def address(url: str | None, key: str | None, environment: Mapping[str, str] = os.environ) -> Address:
    """An argument counts before the environment, and that before the settings."""
    place = "url" if url is not None else URL_VARIABLE
    said = url or environment.get(URL_VARIABLE) or _listened(environment)
    return _parsed(said, place, key if key is not None else key_in(environment))


def key_in(environment: Mapping[str, str]) -> str | None:
    """FLEETCRON_API_KEY, or what is in the file that FLEETCRON_API_KEY_FILE names."""
    if found := environment.get(KEY_VARIABLE):
        return found.strip()
    if not (file := environment.get(f"{KEY_VARIABLE}_FILE")):
        return None
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise ConfigError([Mistake(f"{KEY_VARIABLE}_FILE", f"{file} cannot be read: {why}")]) from None


def _listened(environment: Mapping[str, str]) -> str:
    """On the machine of a server its own settings say where it listens."""
    host, port = load(None, environment, {}).api.address
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _parsed(url: str, place: str, key: str | None) -> Address:
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError([Mistake(place, f"is no address: {error}", "such as https://cron.example.com")]) from None
    if parts.scheme in _DATABASES:
        hint = "start one (fleetcron api) and give its address, such as http://127.0.0.1:8470"
        raise ConfigError([Mistake(place, "is a database, and the client asks an API", hint)])
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ConfigError([Mistake(place, "is no address of an API", "such as https://cron.example.com")])
    if parts.username or parts.password:
        hint = f"give the key as key=…, or in {KEY_VARIABLE}"
        raise ConfigError([Mistake(place, "has a user or a password in it, which the API does not know", hint)])
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError([Mistake("key", "is no API key", "they look like fck_…")])
    prefix = parts.path.rstrip("/").removesuffix("/api/v1")
    return Address(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), prefix, key)

"""Services from container images, for a machine that has an engine and nothing else."""

import secrets
import shutil
import subprocess

from tests.services.guard import Guard
from tests.services.ports import free_port
from tests.services.server import wait_until_it_speaks
from tests.services.service import Service

PULL_S = 280  # the first start downloads the image


def engine_answers() -> bool:
    if shutil.which("docker") is None:
        return False
    try:
        return subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=20).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def start(service: Service, guard: Guard) -> str:
    """Run the image in the foreground of a process that the guard ends; give the URL."""
    image, port = service.image, free_port()
    name = f"fleetcron-{service.name}-{secrets.token_hex(4)}"
    network = ["--publish", f"127.0.0.1:{port}:{image.port}"] if image.port else ["--network", "host"]
    arguments = [argument.format(port=port) for argument in image.arguments]
    log = guard.folder(service.name) / "log"
    guard.on_end("docker", "rm", "--force", name)  # ending the client alone would leave the container
    process = guard.start(
        ["docker", "run", "--rm", "--name", name, *network, *image.options, image.name, *arguments], log=log
    )
    wait_until_it_speaks(service, process.pid, port, log, patience_s=PULL_S)
    return service.url.format(port=port)

"""Find a service and start it, or end the test with the reason. What is missing fails; it is never skipped silently."""

import sys
from contextlib import nullcontext

import pytest

from tests.services import docker
from tests.services.guard import Guard
from tests.services.server import DidNotStart
from tests.services.service import Image, Program, Service
from tests.services.sources import Found, Nowhere, locate


class Provision:
    def __init__(self, config: pytest.Config, guard: Guard) -> None:
        self._config = config
        self.guard = guard

    def find(self, service: Service) -> Found:
        if service.name in self._config.getoption("without"):
            pytest.skip(f"--without {service.name}")
        try:
            return locate(service, self.say)
        except Nowhere as nowhere:
            message = str(nowhere)
        pytest.fail(message, pytrace=False)

    def url(self, service: Service) -> str:
        """The address of a server, started if need be."""
        found = self.find(service)
        try:
            match found:
                case Program():
                    assert service.start is not None
                    return service.start(service, found, self.guard)
                case Image():
                    return docker.start(service, self.guard)
                case address:
                    return address
        except DidNotStart as silence:
            message = str(silence)
        if isinstance(found, Program) and found.tree:
            message += f"\nIf a library is missing, remove {found.tree}: the next run unpacks it anew."
        pytest.fail(message, pytrace=False)

    def say(self, line: str) -> None:
        """Tell the user why it takes so long, past pytest's capturing."""
        capture = self._config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            print(f"\n{line}", file=sys.stderr, flush=True)

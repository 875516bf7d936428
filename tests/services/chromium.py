"""Chromium, driven by playwright: one browser per session, one fresh context per visit.

playwright runs on a thread with an event loop of its own. Its blocking API would leave a running loop in the main
thread, where every `asyncio.run` of the other tests would then fail; and starting it anew for each test costs 2 s.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from tests.services import docker
from tests.services.guard import Guard
from tests.services.provision import Provision
from tests.services.service import Image, Program, Service, library_path

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Playwright

CHROMIUM = Service(
    name="chromium",
    programs=("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    folders=("usr/lib/chromium",),  # the one on PATH is a script with absolute paths
    debian=("chromium", "fonts-liberation", "libatomic1"),  # the last one is for the node that playwright brings
    megabytes=204,
    # an address is that of a browser that listens for the DevTools protocol
    image=Image(
        name="zenika/alpine-chrome",
        arguments=("--no-sandbox", "--remote-debugging-address=127.0.0.1", "--remote-debugging-port={port}"),
    ),
    url="http://127.0.0.1:{port}",
    hello=b"GET /json/version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    answer=b"HTTP/1.1 200",
    costly=True,
)
# No sandbox: it needs rights that a container does not give. The others keep it from calling its maker.
FLAGS = (
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

T = TypeVar("T")
Launch = Callable[["Playwright"], Awaitable["Browser"]]


class Chromium:
    def __init__(self, launch: Launch) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chromium", daemon=True)
        self._thread.start()
        self._playwright, self._browser = self._wait_for(self._open(launch))

    def visit(self, scenario: Callable[["Page"], Coroutine[Any, Any, T]]) -> T:
        """Run `scenario(page)` with a page of a fresh context (no cookies, nothing cached) and give its result."""
        return self._wait_for(self._visit(scenario))

    def close(self) -> None:
        self._wait_for(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _open(self, launch: Launch) -> tuple["Playwright", "Browser"]:
        from playwright.async_api import async_playwright  # 0.4 s that only a run with a browser should pay

        playwright = await async_playwright().start()
        return playwright, await launch(playwright)

    async def _visit(self, scenario: Callable[["Page"], Coroutine[Any, Any, T]]) -> T:
        context = await self._browser.new_context()
        try:
            return await scenario(await context.new_page())
        finally:
            await context.close()

    async def _close(self) -> None:
        await self._browser.close()
        await self._playwright.stop()


def launch_program(program: Program, folder: Path, guard: Guard) -> Launch:
    pid, script = folder / "pid", folder / "chromium"
    script.write_text(f"#!/bin/sh\necho $$ > '{pid}'\nTMPDIR='{folder}' exec '{program.path}' \"$@\"\n")
    script.chmod(0o755)

    async def launch(playwright: "Playwright") -> "Browser":
        browser = await playwright.chromium.launch(executable_path=script, args=FLAGS)
        guard.adopt(int(pid.read_text()))  # playwright made it the leader of a process group
        return browser

    return launch


def surroundings(tree: Path, folder: Path) -> dict[str, str]:
    """What an unpacked browser cannot find by itself, nor on a bare machine the node of playwright."""
    places = "".join(f"<dir>{root}/usr/share/fonts</dir>" for root in ("", tree))
    (folder / "fonts.conf").write_text(f"<fontconfig>{places}<cachedir>{folder}</cachedir></fontconfig>")
    return {"LD_LIBRARY_PATH": library_path(tree), "FONTCONFIG_FILE": str(folder / "fonts.conf")}


def start(program: Program, guard: Guard) -> Chromium:
    folder = guard.folder(CHROMIUM.name)
    with pytest.MonkeyPatch.context() as patch:  # playwright has no other way to give its node an environment
        for name, value in surroundings(program.tree, folder).items() if program.tree else ():
            patch.setenv(name, value)
        return Chromium(launch_program(program, folder, guard))


@pytest.fixture(scope="session")
def chromium(provision: Provision) -> Iterator[Chromium]:
    match provision.find(CHROMIUM):
        case Program() as program:
            browser = start(program, provision.guard)
        case Image():
            url = docker.start(CHROMIUM, provision.guard)
            browser = Chromium(lambda playwright: playwright.chromium.connect_over_cdp(url))
        case address:
            browser = Chromium(lambda playwright: playwright.chromium.connect_over_cdp(address))
    yield browser
    browser.close()

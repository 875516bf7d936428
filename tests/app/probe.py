"""For scripts: can a handler host, a process of its own, import and call what the script defines?"""

import asyncio
import os

from fleetcron import Fleetcron
from fleetcron.app.running import prepared
from fleetcron.clock import SystemClock
from fleetcron.executors.handler_hosts import HandlerHosts
from fleetcron.executors.programs import Programs
from fleetcron.model.outcome import Succeeded
from tests.executors.stage import Heard, assignment


def probe(app: Fleetcron) -> None:
    """Prepare this process as `app.run()` does, call every function in a host, and print what came of it."""
    asyncio.run(_probe(app))


async def _probe(app: Fleetcron) -> None:
    config = prepared(app)
    heard = Heard()
    programs = Programs(os.environ)
    hosts = HandlerHosts(programs, config.executor, 4, os.environ, SystemClock(), heard.tell)
    try:
        definitions = app.definitions()
        await hosts.learn([each.run for each in definitions])
        for number, each in enumerate(definitions):
            if not hosts.knows(each.run):
                print(f"unknown: {hosts.why_not(each.run)}")
                continue
            hosts.start([assignment(each.run, number, payload=each.payload)])
            done = await heard.end_of(number)
            assert isinstance(done.outcome, Succeeded), done
            print(f"called: {done.result_json}")
    finally:
        await hosts.close(1)
        await programs.close()

"""A worker's process that starts a command and a function, says which processes there are, and waits to be killed.

Its first argument is the text of the command for a shell.
"""

import asyncio
import json
import sys

from fleetcron.clock import SystemClock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.command import Commands
from fleetcron.executors.handler_hosts import HandlerHosts
from fleetcron.executors.programs import Programs
from tests.executors.stage import ENVIRONMENT, SUBJECTS, Heard, assignment, python, shell


async def main(text: str) -> None:
    heard = Heard()
    programs = Programs(ENVIRONMENT)
    config = ExecutorConfig(handlers=(SUBJECTS,), grace_s=60)  # longer than the test waits: it must not matter
    commands = Commands(programs, config, ENVIRONMENT, SystemClock(), heard.tell)
    hosts = HandlerHosts(programs, config, 4, ENVIRONMENT, SystemClock(), heard.tell)
    await hosts.learn([python("pid_of"), python("leaves_a_daemon"), python("waits_in_c"), python("hogs")])
    hosts.start([assignment(python("pid_of"), 1), assignment(python("leaves_a_daemon"), 2)])
    pids = [int((await heard.end_of(number)).result_json or 0) for number in (1, 2)]
    commands.start([assignment(shell(text), 10)])
    pids += map(int, (await heard.log_has(10, "ready")).replace("ready", "").split())
    hosts.start([assignment(python("waits_in_c"), 3), assignment(python("hogs"), 4)])
    print(json.dumps(pids), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

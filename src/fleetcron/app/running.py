"""A node that knows an app: `app.run()`."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from fleetcron.app.application import Fleetcron
from fleetcron.app.importable import MAIN, import_name, main_file
from fleetcron.config import Config, load
from fleetcron.config.sources import FILE_VARIABLE
from fleetcron.ending import run_to_the_end
from fleetcron.errors import ConfigError, Mistake, RefusedError
from fleetcron.model.definition import Definition
from fleetcron.model.target import PythonTarget
from fleetcron.node import Node, stop_on_signals, tune_interpreter
from fleetcron.scheduler.sync import tell

_ROLES: Final = ("scheduler", "worker")
_FILE: Final = Path("fleetcron.toml")
_HOST: Final = "fleetcron.executors.host_process"

_forbidden: str | None = None  # why no node may be started in this process now


def run(app: Fleetcron) -> None:
    """Mistakes are told before anything is touched; then sync and serve, until SIGTERM or SIGINT."""
    config = prepared(app)
    _log(config)
    with forbidden("while app.run() is at work"):
        run_to_the_end(_serve(app, config))


def prepared(app: Fleetcron) -> Config:
    """The settings of a node for this app, in a process whose handler hosts can import its functions."""
    _refuse_a_second_node()
    config = fitted(settings(app), app.definitions())
    _let_hosts_import_the_script()
    return config


def settings(app: Fleetcron, store_url: str | None = None) -> Config:
    """What the code says about the store wins over the file and the environment: these may mean another database. And
    `store_url`, which the worker of a handler has, wins over the code: `--database` does."""
    path = _FILE if not os.environ.get(FILE_VARIABLE) and _FILE.exists() else None
    try:
        config = load(path, os.environ, {"store.url": store_url or app.url})
    except ConfigError as error:
        raise ConfigError([_in_code(mistake) for mistake in error.mistakes]) from None
    if config.source_of("node.roles") == "default":
        config = replace(config, node=replace(config.node, roles=_ROLES))
    return config


def fitted(config: Config, definitions: Sequence[Definition]) -> Config:
    """A node for these jobs, so that nothing need be said twice: their functions are allowed as handlers, and their
    pools are served unless somebody chose pools."""
    functions = [each.run.function for each in definitions if isinstance(each.run, PythonTarget)]
    handlers = tuple(dict.fromkeys((*config.executor.handlers, *functions)))
    config = replace(config, executor=replace(config.executor, handlers=handlers))
    if config.source_of("worker.pools") != "default":
        return config
    served = config.worker.slots()
    more = dict.fromkeys(each.pool for each in definitions if each.pool not in served)
    return replace(config, worker=replace(config.worker, pools=(*config.worker.pools, *more)))


def lend_functions(app: Fleetcron, node: Node) -> None:
    """With isolation inline the node calls the functions that are here, and does not import their module again."""
    node.functions.update({import_name(each.function): each.function for each in app.declared})


@contextmanager
def forbidden(why: str) -> Iterator[None]:
    """No `app.run()` in here: a module that calls it when it is imported would start a node inside a node."""
    global _forbidden
    before, _forbidden = _forbidden, why
    try:
        yield
    finally:
        _forbidden = before


async def _serve(app: Fleetcron, config: Config) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    tune_interpreter()
    node = await Node.start(config)
    lend_functions(app, node)
    try:
        tell(app.managed_by, await app.sync(node.store, shards=node.config.scheduler.shards))
        await node.run(stop)
    finally:
        await node.close()


def _refuse_a_second_node() -> None:
    spec = getattr(sys.modules[MAIN], "__spec__", None)
    why = "while a handler host imports the module" if spec is not None and spec.name == _HOST else _forbidden
    if why is not None:
        raise RefusedError(f'app.run() was called {why}; write it under: if __name__ == "__main__":')


def _let_hosts_import_the_script() -> None:
    """They look in the working directory and in PYTHONPATH; a script may lie elsewhere."""
    main = sys.modules[MAIN]
    file = main_file(main)
    if file is None or getattr(main, "__spec__", None) is not None:  # python -m finds it where the hosts do
        return
    paths = [os.path.dirname(file), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


def _log(config: Config) -> None:
    """Unless the program has set up its own."""
    if not logging.root.handlers:
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
        logging.getLogger("fleetcron").setLevel(config.node.log_level.upper())


def _in_code(mistake: Mistake) -> Mistake:
    return replace(mistake, pointer=mistake.pointer.replace("flag: store.url", "Fleetcron(url)"))

"""`fleetcron import apscheduler`."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import click

from fleetcron.cli.importing import import_options, read_text
from fleetcron.errors import ConfigError, Mistake
from fleetcron.imports.apscheduler import add_export, add_row
from fleetcron.imports.plan import Plan, Wish

_MAGIC = b"SQLite format 3\x00"
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXPORT = "from any other store: scheduler.export_jobs('jobs.json') in the running app, and import that file"


@click.command("apscheduler")
@click.argument("source", metavar="FILE")
@click.option("--table", default="apscheduler_jobs", show_default=True, metavar="NAME", help="Of a SQLite job store.")
@import_options
def command(wish: Wish, source: str, table: str) -> Plan:
    """Import jobs of APScheduler 3: the SQLite file of its job store, or what `scheduler.export_jobs(FILE)` wrote.

    Neither APScheduler nor your code is needed. Job stores hold pickles; they are read without running any of them.
    """
    plan = Plan(wish)
    path = Path(source.removeprefix("sqlite:///"))
    if "://" in source and not source.startswith("sqlite:///"):
        raise ConfigError([Mistake(source, "only SQLite files are read directly", _EXPORT)])
    if source != "-" and _is_sqlite(path):
        for job_id, state in _rows(path, table):
            add_row(plan, str(path), job_id, state)
    else:
        add_export(plan, "standard input" if source == "-" else source, read_text(source))
    return plan


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise ConfigError([Mistake(str(path), f"cannot be read: {error.strerror}", None)]) from None


def _rows(path: Path, table: str) -> list[tuple[str, bytes]]:
    """A foreign table with one question about it: no statement of our store, and read-only."""
    if not _TABLE.fullmatch(table):
        raise ConfigError([Mistake("--table", f"{table!r} is not the name of a table", None)])
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as database:
            rows = database.execute(f'SELECT id, job_state FROM "{table}" ORDER BY id').fetchall()
    except sqlite3.Error as error:
        raise ConfigError([Mistake(str(path), f"{error}", f"--table names the table; {_EXPORT}")]) from None
    return [(str(job_id), bytes(state)) for job_id, state in rows]

"""A SQLite file of its own, beside the one that was named: on the same disk, and never that one."""

import asyncio
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from fleetcron.clock import Clock
from fleetcron.errors import StoreError
from fleetcron.torture.evidence import TABLES, Sample, Tables, plain
from fleetcron.torture.ground import NAME, PREFIX, Facts, LeftOver, Owner

_LEASE_S: Final = 2.0
_BUSY_S: Final = 10.0
_NO_NETWORK: Final = "a file has no network"
_FOLDER_HINT: Final = "name a file in a folder where this user may write"


class SqliteGround:
    def __init__(self, path: str, name: str, clock: Clock) -> None:
        self._folder = Path(path).resolve().parent
        self._file = self._folder / f"{name}.db"
        self._clock = clock
        self.name = name
        self.what = f"the file {self._file}"
        self.url = f"sqlite:///{self._file}"

    async def look(self, nodes: int) -> Facts:
        del nodes
        if not self._folder.is_dir():
            raise StoreError(f"there is no folder {self._folder}", hint="name a file in a folder that exists")
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise StoreError(f"in {self._folder} no file can be made: Permission denied", hint=_FOLDER_HINT)
        version = f"SQLite {sqlite3.sqlite_version} in {self._folder}"
        return Facts(version, ["the machine's clock is the clock of the fleet"], [], _LEASE_S, no_network=_NO_NETWORK)

    async def make(self, until_ms: int) -> None:
        try:
            self._owner_of(self._file).write_text(Owner.me(until_ms).text(), "utf-8")
        except OSError as error:
            raise StoreError(f"in {self._folder} no file can be made: {error.strerror}", hint=_FOLDER_HINT) from error

    async def read(self) -> tuple[Tables, int]:
        return await asyncio.to_thread(self._read)

    async def ask(self, question: str) -> Sequence[Mapping[str, Any]]:
        return await asyncio.to_thread(self._ask, question.format(at=""))

    async def sample(self) -> Sample | None:
        return None

    async def remove(self) -> None:
        await self.clear(LeftOver(self.name, self.what, None))

    async def left_overs(self) -> list[LeftOver]:
        names = {path.name.partition(".")[0] for path in self._folder.glob(f"{PREFIX}*.db*")}
        return [self._left(name) for name in sorted(names) if NAME.fullmatch(name)]

    async def clear(self, left: LeftOver) -> None:
        for path in self._folder.glob(f"{left.name}.db*"):
            path.unlink(missing_ok=True)

    async def close(self) -> None:
        """Nothing is open."""

    def _left(self, name: str) -> LeftOver:
        file = self._folder / f"{name}.db"
        owner = self._owner_of(file)
        return LeftOver(name, f"the file {file}", Owner.read(owner.read_text("utf-8") if owner.exists() else None))

    @staticmethod
    def _owner_of(file: Path) -> Path:
        return file.with_name(f"{file.name}-owner")

    def _ask(self, question: str) -> Sequence[Mapping[str, Any]]:
        with closing(sqlite3.connect(self._file, timeout=_BUSY_S)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(question)]

    def _read(self) -> tuple[Tables, int]:
        with closing(sqlite3.connect(self._file, timeout=_BUSY_S)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN")
            tables = {
                table: [plain(table, dict(row)) for row in connection.execute(f"SELECT * FROM {table}")]
                for table in TABLES
            }
            return tables, self._clock.now_ms()

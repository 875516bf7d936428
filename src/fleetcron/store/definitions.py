"""Definitions, as far as a worker needs them. An attempt does what its job says when it is claimed, not what it said
when the run was planned: whoever corrects a job means the runs that wait, and those that he replays."""

from collections.abc import Iterable
from typing import TypeAlias

from fleetcron.model.errand import Errand, errand
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.rows import rows

Version: TypeAlias = tuple[str, int]  # job and revision


class Definitions:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def read(self, versions: Iterable[Version]) -> dict[Version, Errand]:
        text = rows({"job_id": job_id, "revision": revision} for job_id, revision in versions)

        def script() -> Script[dict[Version, Errand]]:
            found = yield "errands_read", {"rows": text}
            return {(str(row["job_id"]), row["revision"]): _errand(row) for row in found}

        return await self._engine.read(script)

    async def held_by(self, node_id: str) -> dict[int, Errand]:
        """By run, of everything that a node holds."""

        def script() -> Script[dict[int, Errand]]:
            found = yield "errands_held", {"node_id": node_id}
            return {row["run_id"]: _errand(row) for row in found}

        return await self._engine.read(script)


def _errand(row: Row) -> Errand:
    return errand(row["run"], row["payload"], row["timeout"], row["retry"])

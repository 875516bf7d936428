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
        """Without those that are not stored, and those that a newer release has written and this one cannot read."""
        text = rows({"job_id": job_id, "revision": revision} for job_id, revision in versions)

        def script() -> Script[dict[Version, Errand]]:
            found = yield "errands_read", {"rows": text}
            made = {(str(row["job_id"]), row["revision"]): _errand(row) for row in found}
            return {version: each for version, each in made.items() if each is not None}

        return await self._engine.read(script)

    async def held_by(self, node_id: str) -> dict[int, Errand]:
        """By run, of everything that a node holds, as far as this release can read it."""

        def script() -> Script[dict[int, Errand]]:
            found = yield "errands_held", {"node_id": node_id}
            made = {row["run_id"]: _errand(row) for row in found}
            return {run_id: each for run_id, each in made.items() if each is not None}

        return await self._engine.read(script)


def _errand(row: Row) -> Errand | None:
    """Old and new nodes work side by side while a fleet is renewed: one job with a field that is new is not to end all
    those who meet it."""
    try:
        return errand(row["run"], row["payload"], row["timeout"], row["retry"])
    except (AttributeError, LookupError, TypeError, ValueError):
        return None

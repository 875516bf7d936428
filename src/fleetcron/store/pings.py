"""What the old scheduler said about the jobs that it still runs. A ping is one row, whoever repeats it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleetcron.model.ping import Ping, Told
from fleetcron.steps import step
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.written import Refused, Written

MOST: Final = 20_000  # of one job: a week of three servers that run it every minute is 30,000, and nobody needs a week
KEPT_MS: Final = 90 * 86_400_000
PURGED_AT_ONCE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Noted:
    """`shadow_ms` is the end of the job's shadow: whoever pings after it runs what we run too."""

    ping: Ping
    now_ms: int
    shadow_ms: int | None


class Pings:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def note(self, tenant: str, name: str, told: Told, *, most: int = MOST) -> Written[Noted]:
        """Keep a ping of a job; refused if there is no such job. Safe to repeat: what is known of a ping stays."""
        told.check()

        def script() -> Script[Noted | Refused]:
            step("ping.begin")
            [facts] = yield "fleet_now", {}
            found = yield "pings_put", _row(told, facts["now_ms"]) | {"tenant": tenant, "name": name}
            if not found:
                return Refused(f"there is no job {name} of tenant {tenant}")
            [row] = found
            yield "pings_trim", {"job_id": str(row["job_id"]), "most": most}
            [job] = yield "jobs_shadow", {"job_id": str(row["job_id"])}
            step("ping.written")
            return Noted(_ping(row), facts["now_ms"], job["shadow_ms"])

        return await self._engine.write(script)

    async def list(self, job_id: str, from_ms: int, to_ms: int, limit: int = MOST) -> Sequence[Ping]:
        """The pings of a job in [from, to), the oldest first; of too many the newest."""

        def script() -> Script[list[Ping]]:
            call = {"job_id": job_id, "from_ms": from_ms, "to_ms": to_ms, "most": limit}
            return [_ping(row) for row in reversed((yield "pings_list", call))]

        return await self._engine.read(script)


def forget_old_pings() -> Script[int]:
    """Part of another verb's script."""
    return len((yield "pings_purge", {"kept_ms": KEPT_MS, "most": PURGED_AT_ONCE}))


def _row(told: Told, now_ms: int) -> dict[str, Any]:
    then_ms = now_ms - told.ago_ms
    started_ms: int | None = then_ms
    if told.event == "end":
        started_ms = None if told.took_ms is None else then_ms - told.took_ms
    return {
        "ping_id": told.ping_id,
        "at_ms": then_ms if started_ms is None else started_ms,
        "noted_ms": now_ms,
        "started_ms": started_ms,
        "finished_ms": then_ms if told.event == "end" else None,
        "exit_code": told.exit_code,
        "host": told.host,
    }


def _ping(row: Row) -> Ping:
    return Ping(row["ping_id"], row["at_ms"], row["started_ms"], row["finished_ms"], row["exit_code"], row["host"])

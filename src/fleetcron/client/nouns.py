"""All nouns together: what both clients have."""

from typing import Final

from fleetcron import __version__
from fleetcron.client.calls import F
from fleetcron.client.fleet import Calendars, Events, Holds, Keys, Ledger, Pools, System, Tenants
from fleetcron.client.jobs import Jobs
from fleetcron.client.runs import Dead, Runs
from fleetcron.client.shadow import Shadow

AGENT: Final = f"fleetcron-python/{__version__}"


class Nouns(System[F]):
    """`tenant` is the one that calls mean which name none."""

    def __init__(self, face: F, tenant: str | None = None) -> None:
        super().__init__(face, tenant)
        self.jobs: Jobs[F] = Jobs(face, tenant)
        self.runs: Runs[F] = Runs(face, tenant)
        self.dead: Dead[F] = Dead(face, tenant)
        self.ledger: Ledger[F] = Ledger(face, tenant)
        self.events: Events[F] = Events(face, tenant)
        self.tenants: Tenants[F] = Tenants(face, tenant)
        self.pools: Pools[F] = Pools(face, tenant)
        self.calendars: Calendars[F] = Calendars(face, tenant)
        self.holds: Holds[F] = Holds(face, tenant)
        self.keys: Keys[F] = Keys(face, tenant)
        self.shadow: Shadow[F] = Shadow(face, tenant)

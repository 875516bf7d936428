"""Can a torture take place on this PostgreSQL? Pure: what the server said goes in, facts or a refusal come out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.torture.evidence import Sample
from fleetcron.torture.ground import Facts
from fleetcron.torture.members import CONNECTIONS
from fleetcron.torture.network import Reach

OWN_CONNECTIONS: Final = 4  # to change jobs, to read clocks and rows, and one through the proxy to try it
LEASE_S: Final = 2.0
_ROUND_TRIPS: Final = 20  # that a lease must have room for
_SKEW_WARN_US: Final = 1_000_000
_SKEW_MOST_US: Final = 300_000_000  # from there nodes leave the shards to others


@dataclass(frozen=True, slots=True)
class Server:
    """What PostgreSQL says of itself. A limit of -1 is none."""

    version: str
    database: str
    user: str
    is_standby: bool
    may_create: bool
    fsync: str
    synchronous_commit: str
    most: int
    used: int
    most_of_user: int
    used_by_user: int
    most_of_database: int
    used_in_database: int
    fleets: str | None
    pooled: bool
    round_trip_us: int

    def free(self) -> tuple[int, str]:
        """How many connections are left, and what bounds them."""
        bounds = [(self.most - self.used, "max_connections of the server")]
        if self.most_of_user >= 0:
            bounds.append((self.most_of_user - self.used_by_user, f"the limit of the user {self.user}"))
        if self.most_of_database >= 0:
            bounds.append((self.most_of_database - self.used_in_database, f"the limit of the database {self.database}"))
        return min(bounds)


def facts_of(server: Server, clock: Sample, shown: str, nodes: int, reach: Reach | None) -> Facts:
    """Raises what the user has to know before anything is done."""
    if server.is_standby:
        raise StoreUnavailable(f"PostgreSQL at {shown} is a standby: it takes no writes", hint="name the primary")
    if not server.may_create:
        raise StoreError(
            f"the user {server.user} may not create a schema in the database {server.database}",
            hint=f'an administrator can allow it: GRANT CREATE ON DATABASE "{server.database}" TO "{server.user}"',
        )
    needed = nodes * (CONNECTIONS + 1) + OWN_CONNECTIONS
    free, bound = server.free()
    if not server.pooled and free < needed:
        raise StoreError(
            f"{nodes} nodes need {needed} connections, and {max(0, free)} are left ({bound})",
            hint="take fewer nodes (--nodes), or raise the limit",
        )
    skew_us = (clock.low_us + clock.high_us) // 2
    if abs(skew_us) >= _SKEW_MOST_US:
        raise StoreError(
            f"this machine's clock is {_seconds(abs(skew_us))} {'behind' if skew_us > 0 else 'ahead of'} the database's"
            ": nodes here would plan nothing",
            hint="set the clock of this machine, or of the server",
        )
    return Facts(
        database=f"PostgreSQL {server.version} at {shown}",
        details=[
            f"round trip {server.round_trip_us / 1000:.1f} ms",
            f"clocks {abs(skew_us) / 1000:.0f} ms apart",
            f"{max(0, free)} connections free" if not server.pooled else "behind a pooler",
            f"fsync {server.fsync}, synchronous_commit {server.synchronous_commit}",
        ],
        notes=list(_notes(server, skew_us)),
        lease_s=max(LEASE_S, _ROUND_TRIPS * server.round_trip_us / 1_000_000),
        reach=reach,
        no_network=None if reach is not None else "it is not known where the connection leads",
    )


def _notes(server: Server, skew_us: int) -> Iterator[str]:
    if server.fsync != "on" or server.synchronous_commit == "off":
        yield (
            f"fsync is {server.fsync} and synchronous_commit is {server.synchronous_commit}: what is confirmed here can"
            " be lost when the server crashes, and a torture of nodes cannot show that"
        )
    if abs(skew_us) >= _SKEW_WARN_US:
        yield f"this machine's clock is {_seconds(abs(skew_us))} off; every node here will warn of it"
    if server.fleets:
        yield f"fleets that live in this database: {server.fleets}. They are not touched, but share the server's load"
    if server.round_trip_us * _ROUND_TRIPS > LEASE_S * 1_000_000:
        yield "the round trip is long: leases are longer than 2 s here, and everything takes its time"


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1_000_000:.1f} s"

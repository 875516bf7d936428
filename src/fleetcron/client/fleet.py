"""`client.ledger`, `events`, `tenants`, `pools`, `calendars`, `holds`, `keys`: what else there is to ask."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fleetcron.client import fleet_shapes as shapes
from fleetcron.client import job_shapes, run_shapes
from fleetcron.client.calls import FEW, Call, F, Noun, verb, walk
from fleetcron.client.values import Instant
from fleetcron.client.values import document as sent


class Ledger(Noun[F]):
    """The ticks that did not run, and why."""

    @verb("GET", "/ledger")
    def page(
        self,
        *,
        job: str | None = None,
        answer: Literal["skipped", "missed", "cancelled"] | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        tenant: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[run_shapes.LedgerPage]:
        """One page, the newest entries first."""
        return Call(
            query={
                "tenant": self.of(tenant), "job": job, "answer": answer, "from": since, "to": until,
                "limit": limit, "cursor": cursor,
            }
        )  # fmt: skip

    list = walk(page, "ledger", run_shapes.LedgerLine)


class Events(Noun[F]):
    """What left the normal path."""

    @verb("GET", "/events")
    def page(
        self,
        *,
        job: str | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[run_shapes.EventPage]:
        """One page, the newest first."""
        return Call(query={"tenant": self.of(tenant), "job": job, "kind": kind, "limit": limit, "cursor": cursor})

    list = walk(page, "events", run_shapes.Event)


class Tenants(Noun[F]):
    @verb("GET", "/tenants")
    def list(self) -> Call[shapes.Tenants]:
        """Everybody who has jobs, runs or limits; a key of one tenant sees that one."""
        return Call()

    @verb("GET", "/tenants/{name}")
    def get(self, name: str) -> Call[shapes.Tenant]:
        """What it may have and what it uses."""
        return Call({"name": name})

    @verb("PATCH", "/tenants/{name}")
    def set(self, name: str, limits: Mapping[str, Any]) -> Call[shapes.Limits]:
        """weight, max_jobs, max_in_flight, rate, burst, max_payload; None takes a limit away."""
        return Call({"name": name}, body=sent(limits, "a set of limits"), repeatable=True)

    @verb("DELETE", "/tenants/{name}/limits")
    def reset(self, name: str) -> Call[shapes.Limits]:
        """The defaults again."""
        return Call({"name": name}, repeatable=True)


class Pools(Noun[F]):
    @verb("GET", "/pools")
    def list(self) -> Call[shapes.Pools]:
        """Every pool that has jobs, runs, workers or limits."""
        return Call()

    @verb("PATCH", "/pools/{name}")
    def set(self, name: str, limits: Mapping[str, Any]) -> Call[shapes.Limits]:
        """slots, per_tenant, per_type; None takes a limit away."""
        return Call({"name": name}, body=sent(limits, "a set of limits"), repeatable=True)

    @verb("DELETE", "/pools/{name}/limits")
    def reset(self, name: str) -> Call[shapes.Limits]:
        """It has what its workers have."""
        return Call({"name": name}, repeatable=True)


class Calendars(Noun[F]):
    @verb("GET", "/calendars")
    def list(self, *, tenant: str | None = None) -> Call[shapes.Calendars]:
        """All of them, or those of a tenant."""
        return Call(query={"tenant": self.of(tenant)})

    @verb("GET", "/calendars/{name}")
    def get(self, name: str, *, tenant: str | None = None) -> Call[shapes.Calendar]:
        return Call({"name": name}, {"tenant": self.of(tenant)})

    @verb("PUT", "/calendars/{name}")
    def put(self, name: str, document: Mapping[str, Any], *, tenant: str | None = None) -> Call[shapes.Adopted]:
        """Create or change it; the ticks of the jobs that use it move in the same transaction."""
        body = sent(document, "a calendar")
        return Call({"name": name}, {"tenant": tenant if "tenant" in body else self.of(tenant)}, body, repeatable=True)


class Holds(Noun[F]):
    """What people switch in an incident, and how they undo it."""

    @verb("GET", "/holds")
    def list(self) -> Call[shapes.Holds]:
        """What is held or slowed down now, why, by whom and until when."""
        return Call()

    @verb("POST", "/holds")
    def switch(
        self,
        scope: shapes.Scope,
        name: str,
        reason: str | None = None,
        *,
        percent: int | None = None,
        attempts: int | None = None,
        backoff: float | None = None,
        lasts: str | None = None,
        keeps_end: bool = False,
    ) -> Call[shapes.Held]:
        """Let only `percent` of its runs start (0: none), or retry it less; until it is released, or for so long
        (`lasts="2h"`). A reason is needed, unless it is a step back to normal (`keeps_end`)."""
        said = {"percent": percent, "attempts": attempts, "backoff": backoff, "for": lasts, "keeps_end": keeps_end}
        return Call(body={"scope": scope, "name": name, "reason": reason, **said}, once=True)

    @verb("DELETE", "/holds/{scope}/{name}")
    def release(self, scope: shapes.Scope, name: str, *, reason: str | None = None) -> Call[shapes.Held]:
        """Everything ends that was switched for it."""
        return Call({"scope": scope, "name": name}, {"reason": reason}, repeatable=True)


class Keys(Noun[F]):
    """API keys. Only an admin may."""

    @verb("GET", "/keys")
    def page(
        self,
        *,
        role: shapes.Role | None = None,
        state: shapes.KeyState | None = None,
        tenant: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[shapes.Keys]:
        """One page, also those that were revoked or have expired. Secrets are not shown: nobody has them."""
        return Call(query={"tenant": self.of(tenant), "role": role, "state": state, "limit": limit, "cursor": cursor})

    list = walk(page, "keys", shapes.Key)

    @verb("POST", "/keys")
    def create(
        self,
        name: str,
        role: shapes.Role,
        *,
        tenant: str | None = None,
        pools: Sequence[str] = (),
        expires_in: str | None = None,
        rate_per_minute: int | None = None,
    ) -> Call[shapes.NewKey]:
        """`key` of the answer is shown this once. Never repeated by itself: its answer is kept nowhere."""
        said = {"expires_in": expires_in, "rate_per_minute": rate_per_minute}
        whose = {} if tenant is None else {"tenant": tenant}  # null would be all tenants
        return Call(body={"name": name, "role": role, "pools": [*pools], **said, **whose})

    @verb("POST", "/keys/{key_id}/revoke")
    def revoke(self, key_id: str, reason: str) -> Call[shapes.RevokedKey]:
        """For good, and with it every session that began with it."""
        return Call({"key_id": key_id}, body={"reason": reason}, once=True)


class System(Noun[F]):
    """What is neither about jobs nor about one noun: the client itself has these."""

    @verb("POST", "/apply")
    def apply(
        self,
        jobs: Sequence[Mapping[str, Any]] = (),
        calendars: Sequence[Mapping[str, Any]] = (),
        *,
        managed_by: str | None = None,
        prune: Literal["pause", "delete", "keep"] | None = None,
        besides: Sequence[str] = (),
        dry_run: bool = False,
    ) -> Call[job_shapes.Report]:
        """Jobs and calendars as files have them, all at once; Refused with every mistake, and nothing is written. With
        `managed_by`, `prune` says what becomes of jobs of this manager that are neither among them nor named in
        `besides` ("tenant/name"): those that are sent in another call. 20,000 jobs and 16 MiB at most in one."""
        said = {"managed_by": managed_by, "prune": prune, "dry_run": dry_run, **_besides(besides)}
        wished = _documents(jobs, calendars)
        once = not dry_run and sum(map(len, wished.values())) <= FEW
        return Call(body={**wished, **said}, once=once, repeatable=True)

    @verb("POST", "/plan")
    def plan(
        self,
        jobs: Sequence[Mapping[str, Any]] = (),
        calendars: Sequence[Mapping[str, Any]] = (),
        *,
        managed_by: str | None = None,
        prune: Literal["pause", "delete", "keep"] | None = None,
        besides: Sequence[str] = (),
        days: int = 90,
    ) -> Call[job_shapes.Plan]:
        """What `apply` would change, and which ticks would appear, vanish or move. Writes nothing."""
        said = {"managed_by": managed_by, "prune": prune, "days": days, **_besides(besides)}
        return Call(body={**_documents(jobs, calendars), **said}, repeatable=True)

    @verb("GET", "/overview")
    def overview(self, *, tenant: str | None = None) -> Call[shapes.Overview]:
        """The figures of the last day."""
        return Call(query={"tenant": self.of(tenant)})

    @verb("GET", "/top")
    def top(self, *, limit: int | None = None) -> Call[shapes.Top]:
        """Pools, nodes, what runs, and what has failed lately; of runs and failures `limit` at most, of each."""
        return Call(query={"limit": limit})

    @verb("GET", "/nodes")
    def nodes(self) -> Call[shapes.Fleet]:
        """Who lives, and who plans which shard."""
        return Call()

    @verb("GET", "/shards")
    def shards(self) -> Call[shapes.Shards]:
        """Into how many slices the jobs are divided."""
        return Call()

    @verb("GET", "/me")
    def me(self) -> Call[shapes.Me]:
        """Whose key this is, and what it may."""
        return Call()


def _besides(names: Sequence[str]) -> dict[str, Any]:
    return {"besides": [*names]} if names else {}


def _documents(jobs: Sequence[Mapping[str, Any]], calendars: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"jobs": [sent(each) for each in jobs], "calendars": [sent(each, "a calendar") for each in calendars]}

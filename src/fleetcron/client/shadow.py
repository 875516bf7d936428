"""`client.shadow`: jobs that another scheduler still runs, how it compares, and the hand-over."""

from typing import Literal

from fleetcron.client import shadow_shapes as shapes
from fleetcron.client.calls import Call, F, Noun, verb, walk
from fleetcron.client.values import Instant


class Shadow(Noun[F]):
    @verb("GET", "/shadow")
    def page(
        self,
        *,
        since: Instant | None = None,
        tenant: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[shapes.ShadowPage]:
        """One page of jobs that are or were in shadow, each with its report."""
        return Call(query={"tenant": self.of(tenant), "since": since, "limit": limit, "cursor": cursor})

    list = walk(page, "jobs", shapes.ShadowReport)

    @verb("GET", "/jobs/{name}/shadow")
    def get(self, name: str, *, since: Instant | None = None, tenant: str | None = None) -> Call[shapes.ShadowReport]:
        """Its ticks next to the pings of the old scheduler; of the last seven days unless said otherwise."""
        return Call({"name": name}, {"tenant": self.of(tenant), "since": since})

    @verb("POST", "/jobs/{name}/ping")
    def ping(
        self,
        name: str,
        *,
        event: Literal["start", "end"] = "end",
        id: str | None = None,  # noqa: A002 - the name of the field
        exit_code: int | None = None,
        duration: str | None = None,
        host: str = "",
        tenant: str | None = None,
    ) -> Call[shapes.Noted]:
        """The old scheduler ran it. `id` ties an end to its start; a ping that is sent again is noted once."""
        said = {"event": event, "id": id, "exit_code": exit_code, "duration": duration, "host": host}
        return Call({"name": name}, {"tenant": self.of(tenant)}, said, once=True)

    @verb("POST", "/jobs/{name}/hand-over")
    def hand_over(
        self, name: str, at: Instant | None = None, *, anyway: bool = False, tenant: str | None = None
    ) -> Call[shapes.Handed]:
        """From the instant on its ticks are ours; the one that the report names unless given. `anyway`: also if no
        worker that lives could run it."""
        return Call({"name": name}, {"tenant": self.of(tenant)}, {"at": at, "anyway": anyway}, once=True)

    @verb("POST", "/jobs/{name}/shadow")
    def begin(self, name: str, *, tenant: str | None = None) -> Call[shapes.Handed]:
        """From now on another scheduler has its ticks, and nothing of it runs here."""
        return Call({"name": name}, {"tenant": self.of(tenant)}, once=True)

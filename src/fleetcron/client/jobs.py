"""`client.jobs`: create, change, steer and look at jobs."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from fleetcron.client import job_shapes as shapes
from fleetcron.client import run_shapes
from fleetcron.client.calls import FEW, Call, F, Noun, Story, verb, walk
from fleetcron.client.values import Instant
from fleetcron.client.values import document as sent
from fleetcron.client.wire import Play


class Jobs(Noun[F]):
    """A job is named by its name, and by `tenant` if that is not the one of the client."""

    @verb("GET", "/jobs")
    def page(
        self,
        *,
        tenant: str | None = None,
        state: shapes.JobState | None = None,
        type: str | None = None,  # noqa: A002 - the name of the parameter
        pool: str | None = None,
        text: str | None = None,
        managed_by: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[shapes.JobPage]:
        """One page, by tenant and name; `next` is the cursor of the following one."""
        return Call(
            query={
                "tenant": self.of(tenant), "state": state, "type": type, "pool": pool, "text": text,
                "managed_by": managed_by, "limit": limit, "cursor": cursor,
            }
        )  # fmt: skip

    list = walk(page, "jobs", shapes.JobLine)

    @verb("GET", "/definitions")
    def definitions_page(
        self,
        *,
        tenant: str | None = None,
        managed_by: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[shapes.Definitions]:
        """One page of jobs with every field of each, by tenant and name."""
        query = {"tenant": self.of(tenant), "managed_by": managed_by, "limit": limit, "cursor": cursor}
        return Call(query=query)

    definitions = walk(definitions_page, "definitions", shapes.Stated)

    @verb("POST", "/jobs")
    def create(self, document: Mapping[str, Any], *, tenant: str | None = None) -> Call[shapes.Job]:
        """Conflict if the name is taken."""
        return Call(query={"tenant": _own(self, tenant, document)}, body=sent(document), once=True)

    @verb("GET", "/jobs/{name}")
    def get(self, name: str, *, tenant: str | None = None) -> Call[shapes.Job]:
        """With every field, its state and its next ticks."""
        return Call({"name": name}, {"tenant": self.of(tenant)})

    @verb("PUT", "/jobs/{name}")
    def replace(
        self, name: str, document: Mapping[str, Any], *, tenant: str | None = None, if_match: str = "*"
    ) -> Call[shapes.Job]:
        """What the document does not say has its default again, except `managed_by`, which stays. `if_match` is
        `etag(job)`: Conflict if it has changed since."""
        return Call(
            {"name": name}, {"tenant": _own(self, tenant, document)}, sent(document),
            headers=_match(if_match), repeatable=if_match == "*",
        )  # fmt: skip

    @verb("PATCH", "/jobs/{name}")
    def patch(
        self, name: str, fields: Mapping[str, Any], *, tenant: str | None = None, if_match: str = "*"
    ) -> Call[shapes.Job]:
        """JSON Merge Patch: what is not said stays, None takes the default. An object for `schedule` changes its only
        entry; of several, send the list."""
        return Call(
            {"name": name}, {"tenant": self.of(tenant)}, sent(fields, "a change"),
            headers=_match(if_match), repeatable=if_match == "*",
        )  # fmt: skip

    @Story
    def put(self, document: Mapping[str, Any], *, tenant: str | None = None) -> Play[shapes.BatchItem]:
        """Create it, or change the one that has its name: whichever is needed."""
        made = yield from Jobs.batch.play(self, [document], tenant=tenant)
        return made["items"][0]

    @verb("DELETE", "/jobs/{name}")
    def delete(self, name: str, *, tenant: str | None = None, if_match: str = "*") -> Call[shapes.EndedJob]:
        """Its history stays, and the name is free again."""
        return Call({"name": name}, {"tenant": self.of(tenant)}, headers=_match(if_match))

    @verb("POST", "/jobs/{name}/pause")
    def pause(
        self, name: str, *, on_resume: shapes.Policy | None = None, tenant: str | None = None
    ) -> Call[shapes.SteeredJob]:
        """`on_resume` says what becomes of the ticks meanwhile: skip (the default), latest or all."""
        return Call({"name": name}, {"tenant": self.of(tenant)}, {"on_resume": on_resume}, once=True)

    @verb("POST", "/jobs/{name}/resume")
    def resume(
        self, name: str, *, missed: shapes.Policy | None = None, tenant: str | None = None
    ) -> Call[shapes.SteeredJob]:
        """`missed` says what becomes of the paused ticks, if it is to be something else than was said at the pause."""
        return Call({"name": name}, {"tenant": self.of(tenant)}, {"missed": missed}, once=True)

    @verb("POST", "/jobs/{name}/cancel")
    def cancel(self, name: str, *, tenant: str | None = None) -> Call[shapes.EndedJob]:
        """End it for good: it keeps its name and its history."""
        return Call({"name": name}, {"tenant": self.of(tenant)}, once=True)

    @verb("POST", "/jobs/{name}/trigger")
    def trigger(
        self,
        name: str,
        *,
        payload: Mapping[str, Any] | None = None,
        key: str | None = None,
        tenant: str | None = None,
    ) -> Call[shapes.Triggered]:
        """A run now. The same `key` for the same job is the same run, whoever asks and however: here, with
        `app.enqueue(key=…)` or with `jobs trigger --key`."""
        asked: dict[str, Any] = {"payload": None if payload is None else sent(payload, "a payload")}
        if key is not None:
            asked["key"] = key
        return Call({"name": name}, {"tenant": self.of(tenant)}, asked, once=True)

    @verb("POST", "/jobs/{name}/backfill")
    def backfill(
        self,
        name: str,
        since: Instant,
        until: Instant | None = None,
        *,
        limit: int | None = None,
        dry_run: bool = False,
        tenant: str | None = None,
    ) -> Call[shapes.Backfilled]:
        """Runs for the ticks in [since, until) that have none; until now unless said otherwise."""
        said = {"from": since, "to": until, "dry_run": dry_run, **({} if limit is None else {"limit": limit})}
        return Call({"name": name}, {"tenant": self.of(tenant)}, said, once=not dry_run, repeatable=True)

    @verb("POST", "/jobs/batch")
    def batch(
        self,
        documents: Iterable[Mapping[str, Any]],
        *,
        mode: Literal["upsert", "create"] = "upsert",
        tenant: str | None = None,
    ) -> Call[shapes.Batch]:
        """Many jobs, and a result for each: what can be written is. 20,000 at most in one call."""
        lines = [sent(each) for each in documents]
        query = {"tenant": self.of(tenant), "mode": mode}
        return Call(query=query, lines=lines, once=len(lines) <= FEW, repeatable=mode == "upsert")

    @verb("GET", "/jobs/{name}/next")
    def next(
        self, name: str, *, count: int | None = None, after: Instant | None = None, tenant: str | None = None
    ) -> Call[shapes.Ticks]:
        """Its next ticks, in UTC and in its zone, with what clock changes do to them."""
        return Call({"name": name}, {"tenant": self.of(tenant), "count": count, "after": after})

    @verb("POST", "/jobs/preview")
    def preview(
        self, document: Mapping[str, Any], *, count: int | None = None, tenant: str | None = None
    ) -> Call[shapes.Preview]:
        """A job before it is saved: its ticks, and what is probably not meant (`findings`). Writes nothing."""
        return Call(
            query={"tenant": _own(self, tenant, document), "count": count}, body=sent(document), repeatable=True
        )

    @Story
    def lint(self, document: Mapping[str, Any], *, tenant: str | None = None) -> Play[shapes.Findings]:
        """What is allowed and probably not meant."""
        seen = yield from Jobs.preview.play(self, document, count=1, tenant=tenant)
        return seen["findings"]

    @verb("GET", "/jobs/{name}/stats")
    def stats(
        self, name: str, since: Instant | None = None, until: Instant | None = None, *, tenant: str | None = None
    ) -> Call[shapes.Stats]:
        """Success rate and durations of its runs; of the last 30 days unless said otherwise."""
        return Call({"name": name}, {"tenant": self.of(tenant), "from": since, "to": until})

    @verb("GET", "/jobs/{name}/revisions")
    def revisions(self, name: str, *, limit: int | None = None, tenant: str | None = None) -> Call[shapes.Revisions]:
        """Who changed it, when, and which fields; the newest first."""
        return Call({"name": name}, {"tenant": self.of(tenant), "limit": limit})

    @verb("GET", "/jobs/{name}/diff")
    def diff(self, name: str, since: int, until: int | None = None, *, tenant: str | None = None) -> Call[shapes.Diff]:
        """What differs between two revisions; the second is the newest unless one is named."""
        return Call({"name": name}, {"tenant": self.of(tenant), "from": since, "to": until})

    @verb("GET", "/jobs/{name}/runs")
    def runs_page(
        self,
        name: str,
        *,
        state: run_shapes.State | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        planned: bool = False,
        tenant: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[run_shapes.RunPage]:
        """One page of its runs, also of jobs of this name that were deleted."""
        return Call(
            {"name": name},
            {
                "tenant": self.of(tenant), "state": state, "from": since, "to": until, "planned": planned,
                "limit": limit, "cursor": cursor,
            },
        )  # fmt: skip

    runs = walk(runs_page, "runs", run_shapes.Run)

    @verb("GET", "/jobs/{name}/why")
    def why(self, name: str, at: Instant, *, tenant: str | None = None) -> Call[run_shapes.Why]:
        """What became of a tick, also if it has no run."""
        return Call({"name": name}, {"tenant": self.of(tenant), "at": at})


def etag(job: shapes.Job) -> str:
    """For `if_match`: the job as it was when somebody looked at it."""
    return f'"{job["job_id"][-12:]}.{job["revision"]}"'


def _match(if_match: str) -> dict[str, str]:
    """Somebody who has no tag and says so must not change whatever the job is."""
    if isinstance(if_match, str):
        return {"If-Match": if_match}
    raise TypeError(f"if_match is etag(job), or '*' for whatever the job is, not {if_match!r:.80}")


def _own(noun: Noun[Any], tenant: str | None, document: Mapping[str, Any]) -> str | None:
    """A document that names its tenant is believed; the server refuses what does not fit together."""
    return tenant if isinstance(document, Mapping) and "tenant" in document else noun.of(tenant)

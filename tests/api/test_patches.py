"""PATCH: many at once, and what it makes of a schedule."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from fleetcron.api.job_patch import patched
from fleetcron.api.jobs import the_job
from fleetcron.model.definition import Definition
from fleetcron.model.reading import read_job
from fleetcron.scheduler.desk import Applied, Condition, Desk, Refusal
from tests.api.server import Api
from tests.api.test_jobs import JOB


def test_patches_at_the_same_time_all_survive(api: Api) -> None:
    """Whoever sends `*` means whatever the job is when it is changed, and not what it was when somebody looked."""
    api.post("/jobs", {**JOB, "payload": {}}, 201)

    def patch(number: int) -> int:
        return api.ask("PATCH", "/jobs/report", {"payload": {f"k{number}": 1}}, headers={"If-Match": "*"}).status

    with ThreadPoolExecutor(8) as many:
        assert [*many.map(patch, range(16))] == [200] * 16
    after = api.get("/jobs/report")
    assert (len(after["definition"]["payload"]), after["revision"]) == (16, 17)


def test_a_patch_that_is_always_too_late_says_so(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.post("/jobs", JOB, 201)
    edit = Desk.edit

    async def after_another(desk: Desk, definition: Definition, *, refuse: Refusal | None = None) -> Applied:
        job = (await the_job(api.context, "default", "report")).job
        await edit(desk, replace(job.definition, priority=job.revision))
        return await edit(desk, definition, refuse=refuse)

    monkeypatch.setattr(Desk, "edit", after_another)
    told = api.patch("/jobs/report", {"pool": "reports"}, 409, headers={"If-Match": "*"})
    assert told["detail"] == "other changes of the same job do not end; try again"
    tag = api.ask("GET", "/jobs/report").headers["etag"]
    api.patch("/jobs/report", {"pool": "reports"}, 412, headers={"If-Match": tag})
    assert api.get("/jobs/report")["definition"]["pool"] == "default"


def test_who_takes_a_job_over_meanwhile_keeps_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at whose it is and the write. A line of a batch is refused; a PUT looks again."""
    api.post("/jobs", JOB, 201)
    edit, apply = Desk.edit, Desk.apply
    owners = iter(["shop", "other"])

    async def taken_over(desk: Desk) -> None:
        job = (await the_job(api.context, "default", "report")).job
        if (owner := next(owners, None)) is not None:
            await edit(desk, replace(job.definition, managed_by=owner))

    async def edit_after(desk: Desk, definition: Definition, *, refuse: Refusal | None = None) -> Applied:
        await taken_over(desk)
        return await edit(desk, definition, refuse=refuse)

    async def apply_after(desk: Desk, definitions: Sequence[Definition], **more: Any) -> list[Applied]:
        await taken_over(desk)
        return await apply(desk, definitions, **more)

    monkeypatch.setattr(Desk, "edit", edit_after)
    monkeypatch.setattr(Desk, "apply", apply_after)
    line = json.dumps({**JOB, "priority": 7}).encode()
    ndjson = {"Content-Type": "application/x-ndjson"}
    [told] = api.post("/jobs/batch", raw=line, headers=ndjson)["items"]
    assert (told["done"], told["reason"].partition(";")[2]) == ("refused", " send it again")
    put = api.put("/jobs/report", {**JOB, "priority": 8}, headers={"If-Match": "*"})["definition"]
    assert (put["managed_by"], put["priority"]) == ("other", 8)
    [told] = api.post("/jobs/batch", raw=line, headers=ndjson)["items"]
    assert told["done"] == "changed"
    assert api.get("/jobs/report")["definition"]["managed_by"] == "other"


def test_a_job_that_somebody_else_deletes_meanwhile_is_not_there(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    delete, edit = Desk.delete, Desk.edit

    async def delete_after(desk: Desk, tenant: str, name: str, *, only_if: Condition | None = None) -> Applied:
        await delete(desk, tenant, name)
        return await delete(desk, tenant, name, only_if=only_if)

    async def edit_after(desk: Desk, definition: Definition, *, refuse: Refusal | None = None) -> Applied:
        await delete(desk, definition.tenant, definition.name)
        return await edit(desk, definition, refuse=refuse)

    monkeypatch.setattr(Desk, "delete", delete_after)
    monkeypatch.setattr(Desk, "edit", edit_after)
    headers = {"If-Match": "*"}
    for ask in (
        lambda: api.delete("/jobs/report", 404, headers=headers),
        lambda: api.patch("/jobs/report", {"priority": 1}, 404, headers=headers),
        lambda: api.put("/jobs/report", JOB, 404, headers=headers),
    ):
        api.post("/jobs", JOB, 201)
        assert ask()["detail"] == "there is no job report of tenant default"


CRON = {"cron": "0 2 * * *", "timezone": "America/New_York", "dst_gap": "skip"}
WHOLE = {**CRON, "dst_fold": "first", "month_end": "skip", "derived": ["dst_fold"]}
ONCE = {"at": "2030-01-01T09:00:00", "timezone": "Asia/Tokyo"}


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        (CRON, {"cron": "5 5 * * *"}, {**WHOLE, "cron": "5 5 * * *"}),
        (CRON, {"timezone": "UTC"}, {**WHOLE, "timezone": "UTC"}),
        (CRON, {"timezone": None}, {**WHOLE, "timezone": "UTC"}),
        (CRON, {"dst_gap": None}, {**WHOLE, "dst_gap": "shift", "derived": ["dst_gap", "dst_fold"]}),
        (CRON, {"dst_fold": "both"}, {**{k: WHOLE[k] for k in WHOLE if k != "derived"}, "dst_fold": "both"}),
        (CRON, {"every": "1h"}, {"every": "1h", "anchor": None}),
        (CRON, [{"cron": "5 5 * * *"}], {"cron": "5 5 * * *", "timezone": "UTC"}),
        ({"every": "1h", "anchor": "2027-01-01T00:10:00Z"}, {"every": "2h"}, {"anchor": "2027-01-01T00:10:00Z"}),
        (ONCE, {"at": "2031-01-01T09:00:00"}, {"at": "2031-01-01T09:00:00", "timezone": "Asia/Tokyo"}),
        (ONCE, {"at": "2031-01-01T09:00:00Z"}, {"at": "2031-01-01T09:00:00Z", "timezone": None}),
    ],
)
def test_an_object_for_a_schedule_is_its_only_entry(before: object, patch: object, after: dict[str, Any]) -> None:
    """Without a server: what is stored is what the merged document says."""
    stored = read_job({**JOB, "schedule": before}).as_document()
    [entry] = read_job(patched(stored, {"schedule": patch})).as_document()["schedule"]
    assert {name: entry.get(name) for name in after} == after
    assert set(entry) <= set(after) or len(after) < 3  # and it says nothing else


def test_of_several_entries_an_object_means_none(api: Api) -> None:
    api.post("/jobs", {**JOB, "schedule": [{"every": "1h"}, {"cron": "0 2 * * *"}]}, 201)
    told = api.ask("PATCH", "/jobs/report", {"schedule": {"cron": "5 5 * * *"}}, headers={"If-Match": "*"})
    assert (told.status, told.places) == (422, ["/schedule"])
    assert told.json["errors"][0]["hint"].startswith("send the list of all its entries")
    api.patch("/jobs/report", {"schedule": [{"every": "1h"}]}, headers={"If-Match": "*"})
    wrong = api.ask("PATCH", "/jobs/report", {"schedule": {"every": "often"}}, headers={"If-Match": "*"})
    assert (wrong.status, wrong.places) == (422, ["/schedule/every"])

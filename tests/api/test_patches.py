"""PATCH: many at once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from fleetcron.api.jobs import the_job
from fleetcron.model.definition import Definition
from fleetcron.scheduler.desk import Applied, Desk, Refusal
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

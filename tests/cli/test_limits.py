"""`fleetcron tenants`, `pools`, `hold`, `slow`, `release` and `holds`: for people, for machines, and with mistakes."""

import asyncio
import json
import re
from typing import Any

import pytest

from fleetcron.store.store import Store
from tests.cli.conftest import EXAMPLES
from tests.cli.folder import Folder
from tests.store.check_limits import queue
from tests.store.engines import opened


@pytest.fixture
def applied(quick: Folder) -> Folder:
    quick("apply", str(EXAMPLES))
    return quick


def park(folder: Folder, *gates: tuple[str, str], **more: str) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{folder.path}/fleetcron.db") as engine:
            await queue(Store(engine), *gates, **more)

    asyncio.run(work())


def test_tenants_are_listed_set_and_reset(applied: Folder) -> None:
    """S3-9, S3-54 to S3-56."""
    assert applied("tenants").stdout.splitlines() == [
        "NAME     WEIGHT  JOBS  RUNNING",
        "acme     1       2     0",
        "default  1       3     0",
    ]
    said = applied(
        "tenants", "set", "acme", "--weight", "3", "--max-jobs", "2", "--rate", "90/m", "--burst", "5"
    ).stdout
    assert said == "acme: changed: weight 1 -> 3, max_jobs none -> 2, rate none -> 90/m, burst 1 -> 5.\n"
    assert applied("tenants", "set", "acme", "--weight", "3").stdout == "acme: unchanged.\n"
    park(applied, ("", ""), ("tenant", "acme"), ("tenant", "acme"))
    assert applied("tenants").stdout.splitlines()[1].split() == [
        *("acme", "3", "2/2", "0", "3", "(2", "max_in_flight,", "1", "for", "a", "slot)", "90/m,", "burst", "5"),
    ]
    shown = applied("tenants", "show", "acme").stdout
    assert "  max_in_flight  none    default\n" in shown
    assert "  jobs: 2/2, and 0 that have ended\n" in shown
    said = applied("tenants", "set", "acme", "--max-in-flight", "9", "--rate", "none").stdout
    assert said.splitlines() == [
        "acme: changed: max_in_flight none -> 9, rate 90/m -> none.",
        "2 runs that waited may start, if nothing else holds them back.",
    ]
    assert "max_in_flight 9 -> none" in applied("tenants", "reset", "acme", "--by", "ann").stdout
    assert applied("tenants", "reset", "acme").stdout == "acme: unchanged.\n"
    [event, *_] = applied.json("events", "--kind", "tenant_changed")["events"]
    assert (event["by"], event["detail"]["before"]["max_in_flight"], event["detail"]["after"]) == ("ann", 9, None)


def test_tenants_for_machines(applied: Folder) -> None:
    changed = applied.json("tenants", "set", "acme", "--max-payload", "64k", "--rate", "10/s")
    assert (changed["done"], changed["before"], changed["after"]["max_payload"]) == ("changed", None, 65536)
    told = applied.json("tenants")
    assert told["after"] is None
    assert told["tenants"][0] == {
        "name": "acme", "weight": 1, "max_jobs": None, "max_in_flight": None, "rate": "10/s", "burst": 1,
        "max_payload": 65536, "jobs": 2, "ended": 0, "in_flight": 0, "queued": 0, "waiting": {},
        "updated_at": told["tenants"][0]["updated_at"],
    }  # fmt: skip
    assert applied.json("tenants", "show", "acme") == told["tenants"][0]
    page = applied.json("tenants", "--limit", "1")
    assert ([each["name"] for each in page["tenants"]], page["after"]) == (["acme"], "acme")
    assert [each["name"] for each in applied.json("tenants", "--after", "acme")["tenants"]] == ["default"]
    assert "1 shown, there are more: --after acme" in applied("tenants", "--limit", "1").stdout


def test_mistakes_about_tenants(applied: Folder) -> None:
    said = applied("tenants", "set", "acme", "--weight", "0", "--rate", "fast", "--max-in-flight", "0", code=2).stderr
    assert said == (
        "error: --weight: 0 is less than 1, the least that is allowed\n"
        "error: --max-in-flight: 0 is less than 1, the least that is allowed\n"
        "error: --rate: 'fast' is not a rate\nhint: write 10/s, 100/m, 1000/h or 5000/d\n"
    )
    assert "NAME: 'Acme' is not a name of a tenant" in applied("tenants", "set", "Acme", "--weight", "2", code=2).stderr
    assert "Say what to set: --weight, --max-jobs" in applied("tenants", "set", "acme", code=2).stderr
    assert "'many' is not a whole number" in applied("tenants", "set", "acme", "--max-jobs", "many", code=2).stderr
    for command in ("show", "reset"):
        said = applied("tenants", command, "amce", code=2).stderr
        assert said == "error: there is no tenant amce; did you mean acme?\n"
    assert "Did you mean set?" in applied("tenants", "sett", "acme", code=2).stderr
    assert all(each["updated_at"] is None for each in applied.json("tenants")["tenants"])


def test_a_tenant_that_is_full_is_told_what_to_do(quick: Folder) -> None:
    """S3-54, S3-59."""
    quick("migrate")
    quick("tenants", "set", "default", "--max-jobs", "1", "--max-payload", "20")
    job = {"schedule": {"every": "1h"}, "run": {"command": ["x"]}}
    jobs = [{"name": "a", **job}, {"name": "b", **job}, {"name": "c", "payload": {"text": "x" * 20}, **job}]
    told = quick("apply", "-", "--json", given=json.dumps({"jobs": jobs}), code=1).json
    assert [each["done"] for each in told["jobs"]] == ["created", "refused", "refused"]
    assert told["jobs"][1]["reason"] == (
        "tenant default has 1 of at most 1 jobs; delete or cancel some, or: fleetcron tenants set default --max-jobs 2"
    )
    assert told["jobs"][2]["reason"].startswith("its payload has 31 bytes, and tenant default may have 20;")
    quick("tenants", "set", "default", "--max-jobs", "2")
    assert quick.json("apply", "-", given=json.dumps({"jobs": jobs[:2]}))["counts"]["created"] == 1


def test_pools_are_listed_set_and_reset(applied: Folder) -> None:
    """S3-57, S3-61, S3-62."""
    said = applied("pools", "set", "reports", "--slots", "5", "--per-type", "shop.jobs:report=2", "--per-type", "m=3")
    assert said.stdout == "reports: changed: slots none -> 5, per_type none -> m=3, shop.jobs:report=2.\n"
    applied("pools", "set", "reports", "--per-type", "m=none", "--per-tenant", "4")
    assert applied("pools").stdout.splitlines() == [
        "NAME     JOBS  WORKERS  RUNNING  PER TENANT  PER TYPE",
        "default  4     0        0",
        "reports  1     0        0/5      4           shop.jobs:report 0/2",
    ]
    park(applied, ("quota_type", "reports:shop.jobs:report"), pool="reports")
    assert applied("pools").stdout.splitlines()[-1] == "Runs wait, and no worker serves: reports."
    pool = applied.json("pools")["pools"][1]
    assert (pool["slots"], pool["per_type"], pool["waiting"]) == (5, {"shop.jobs:report": 2}, {"quota_type": 1})
    assert "1 run that waited" in applied("pools", "reset", "reports").stdout
    assert applied.json("pools", "reset", "reports")["done"] == "unchanged"


def test_mistakes_about_pools(applied: Folder) -> None:
    said = applied("pools", "set", "reports", "--slots", "0", "--per-type", "x=0", code=2).stderr
    assert said.splitlines() == [
        "error: --slots: 0 is less than 1, the least that is allowed",
        "error: --per-type x: 0 is less than 1, the least that is allowed",
    ]
    for wrong in ("x", "=2", "x=y", "x=-1"):
        assert "is not TYPE=N" in applied("pools", "set", "reports", "--per-type", wrong, code=2).stderr
    assert "did you mean reports?" in applied("pools", "reset", "reprots", code=2).stderr
    assert "Say what to set: --slots" in applied("pools", "set", "reports", code=2).stderr


def test_a_tenant_is_held_and_let_go_by_and_by(applied: Folder) -> None:
    """S3-105."""
    said = applied("hold", "tenant", "acme", "--reason", "it floods", "--for", "2h", "--by", "ann").stdout
    assert said.startswith("tenant acme: changed: nothing starts, until 20")
    assert said.splitlines()[1] == "Undo it: fleetcron release tenant acme, at once or with --percent 25"
    park(applied, ("paused", "tenant:acme"), ("paused", "tenant:acme"))
    line = applied("holds").stdout.splitlines()[1]
    assert line.startswith("tenant acme  none ")
    assert line.endswith("  2        ann  it floods")
    part = applied("release", "tenant", "acme", "--percent", "25").stdout
    assert "tenant acme: changed: 25 % of the jobs may start, until 20" in part
    assert (
        "The next step: fleetcron release tenant acme\n2 runs that waited are looked at again: 25 % may start.\n"
        in part
    )
    assert applied("release", "tenant", "acme", "--reason", "fixed").stdout == "tenant acme: released.\n"
    assert (
        applied("release", "tenant", "acme").stdout == "tenant acme: unchanged (it was neither held nor slowed down).\n"
    )
    assert applied("holds").stdout == "Nothing is held and nothing is slowed down.\n"
    told = applied.json("events", "--kind", "control_released")["events"][0]
    assert (told["detail"]["scope"], told["detail"]["name"], told["detail"]["reason"]) == ("tenant", "acme", "fixed")
    assert "name acme, reason fixed, scope tenant" in applied("events", "--kind", "control_released").stdout


def test_a_type_is_slowed_down(applied: Folder) -> None:
    """S3-105: cap the retries of a type, beside a hold of it."""
    name = "shop.jobs:report"
    said = applied("slow", "type", name, "--attempts", "1", "--backoff", "4", "--reason", "retries explode").stdout
    assert said.splitlines()[0] == f"type {name}: changed: 1 attempt at most, delays x4, until it is released."
    assert "nothing starts, 1 attempt at most, delays x4" in applied("hold", "type", name, "--reason", "worse").stdout
    [told] = applied.json("holds")["holds"]
    assert told == {
        "scope": "type", "name": name, "percent": 0, "attempts": 1, "backoff": 4.0, "until": None, "waiting": 0,
        "reason": "retries explode; worse", "by": told["by"], "since": told["since"],
    }  # fmt: skip
    said = applied("release", "type", name, "--percent", "100").stdout
    assert said.splitlines()[1] == f"Let its retries go on too: fleetcron release type {name}"
    assert applied.json("release", "type", name)["after"] is None


def test_limits_may_come_before_the_jobs_and_say_so(applied: Folder) -> None:
    said = applied("tenants", "set", "amce", "--weight", "3").stdout
    assert said == "amce: changed: weight 1 -> 3.\nNo job has the tenant amce yet.\n"
    said = applied("pools", "set", "reprots", "--slots", "3").stdout
    assert said == "reprots: changed: slots none -> 3.\nNo job has the pool reprots yet.\n"
    assert applied.json("pools", "set", "reprots", "--slots", "4")["jobs"] == 0
    assert applied.json("tenants", "set", "acme", "--weight", "2")["jobs"] == 2
    assert "yet" not in applied("pools", "set", "reports", "--slots", "4").stdout
    assert "yet" not in applied("tenants", "reset", "amce").stdout


def test_mistakes_about_holds(applied: Folder) -> None:
    """In an incident a typing error must not look like success."""
    hold: Any = ("hold", "tenant")
    assert applied(*hold, "amce", "--reason", "x", code=2).stderr == (
        "error: there is no tenant amce; did you mean acme?\n"
    )
    assert "no job is of this type" in applied("hold", "type", "zzz", "--reason", "x", code=2).stderr
    assert "did you mean reports?" in applied("release", "pool", "report", code=2).stderr
    assert "Missing option '--reason'" in applied(*hold, "acme", code=2).stderr
    assert (
        "--percent: 200 is not a percentage"
        in applied(*hold, "acme", "--percent", "200", "--reason", "x", code=2).stderr
    )
    assert "--for: 'soon' is not a duration" in applied(*hold, "acme", "--for", "soon", "--reason", "x", code=2).stderr
    assert "--reason: must be one line" in applied(*hold, "acme", "--reason", " ", code=2).stderr
    assert "Say how: --attempts N" in applied("slow", "tenant", "acme", "--reason", "x", code=2).stderr
    assert "is not one of 'tenant', 'type'" in applied("slow", "pool", "reports", "--reason", "x", code=2).stderr
    wrong = applied("release", "tenant", "acme", "--percent", "130", code=2).stderr
    assert wrong.startswith("error: --percent: 130 is not a percentage\n")
    refused = applied("release", "tenant", "acme", "--percent", "25", code=2).stderr
    assert refused == (
        "error: tenant acme is not held, so there is nothing to go on with; to let only a part start:"
        " fleetcron hold tenant acme --percent 25 --reason ...\n"
    )
    assert applied.json("holds") == {"holds": []}


def test_nothing_to_show_says_so(quick: Folder) -> None:
    quick("migrate")
    assert quick("tenants").stdout.startswith("There is no tenant yet.")
    assert quick("pools").stdout.startswith("There is no pool yet.")
    assert (quick.json("tenants"), quick.json("pools")) == ({"tenants": [], "after": None}, {"pools": []})


def test_the_key_of_a_tenant_is_shown_to_whoever_has_the_secret(applied: Folder) -> None:
    missing = applied("tenants", "signing-key", "acme", code=2).stderr
    assert "executor.signing_secret" in missing
    assert "openssl rand -base64 32" in missing
    secret = {"FLEETCRON_EXECUTOR__SIGNING_SECRET": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"}
    acme = applied("tenants", "signing-key", "acme", **secret).stdout.strip()
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", acme)
    assert applied.json("tenants", "signing-key", "acme", **secret) == {"tenant": "acme", "key": acme}
    assert applied.json("tenants", "signing-key", "globex", **secret)["key"] != acme

"""Reading documents: every mistake at once, each with its place and what to write instead."""

from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import jsonschema
import pytest

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.model.reading import json_schema, read_definitions, read_job, read_yaml, report
from fleetcron.model.rules import CalendarUse, EveryEntry, MisfireRule, OverlapRule, Retention, RetryRule
from fleetcron.model.target import CommandTarget, HttpTarget, PublishTarget
from tests.model.documents import SMALLEST, job


def mistakes(**more: Any) -> list[Mistake]:
    with pytest.raises(DefinitionError) as caught:
        read_job(job(**more))
    return caught.value.mistakes


def pointers(raw: object) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        read_definitions(raw)
    return [mistake.pointer for mistake in caught.value.mistakes]


def test_the_example_of_the_design() -> None:
    """S4-1: a named cron job with its expression and its handler."""
    raw = read_yaml(
        """
        jobs:
          - name: nightly-report
            tenant: acme
            schedule: {cron: "0 2 * * *", timezone: America/New_York}
            run: {command: ["python", "report.py"]}
            payload: {kind: full}
            pool: reports
            timeout: 30m
            retry: {max_attempts: 4, backoff: [30s, 2m, 10m], jitter: 0.2}
            overlap: skip
            misfire: {policy: latest, window: 24h, limit: 100, grace: 60s}
            depends_on: [load-orders]
        """,
        "jobs.yaml",
    )
    (found,) = read_definitions(raw).jobs
    assert (found.tenant, found.name, found.pool, found.timeout_ms) == ("acme", "nightly-report", "reports", 1_800_000)
    assert found.run == CommandTarget(("python", "report.py"))
    assert found.retry.delays_ms == (30_000, 120_000, 600_000)
    assert found.misfire == MisfireRule()
    assert found.depends_on == ("load-orders",)


@pytest.mark.parametrize(
    ("field", "short", "attribute", "meant"),
    [
        ("overlap", "queue", "overlap", OverlapRule("queue")),
        ("overlap", {"policy": "allow", "max_running": 3}, "overlap", OverlapRule("allow", 3)),
        ("misfire", "all", "misfire", MisfireRule("all")),
        ("misfire", {"limit": 7, "grace": 0}, "misfire", MisfireRule(limit=7, grace_ms=0)),
        ("retention", "30d", "retention", Retention(30 * 86_400_000)),
        ("retention", 3600, "retention", Retention(3_600_000)),
        ("retention", {"runs": 5}, "retention", Retention(runs=5)),
        ("calendars", ["us"], "calendars", (CalendarUse("us"),)),
        ("calendars", [{"name": "us", "on": "next"}], "calendars", (CalendarUse("us", on="next"),)),
        ("retry", {"backoff": {"fixed": "5s"}}, "retry", RetryRule(backoff="fixed", delays_ms=(5000,))),
        ("retry", {"backoff": {"exponential": {"first": 1}}}, "retry",
         RetryRule(backoff="exponential", delays_ms=(1000,))),
        ("schedule", {"every": "1h30m"}, "schedule", (EveryEntry(5_400_000),)),
        ("schedule", [{"every": 90}], "schedule", (EveryEntry(90_000),)),
        ("starts_at", datetime(2027, 1, 1, tzinfo=UTC), "starts_ms", 1_798_761_600_000),
        ("starts_at", "2027-01-01T01:00:00+01:00", "starts_ms", 1_798_761_600_000),
        ("jitter", "0", "jitter_ms", 0),
        ("run", {"command": "a | b", "shell": True}, "run", CommandTarget(("a | b",), shell=True)),
        ("run", {"http": {"url": "http://x/"}}, "run", HttpTarget("http://x/")),
        ("run", {"publish": {"broker": "nats", "to": "x"}}, "run", PublishTarget("nats", "x")),
        ("timeout", 0.5, "timeout_ms", 500),
    ],
)  # fmt: skip
def test_short_and_long_forms(field: str, short: object, attribute: str, meant: object) -> None:
    """S4-7, S4-10: the recovery window and limit are each job's own."""
    assert getattr(read_job(job(**{field: short})), attribute) == meant


TWENTY = """
jobs:
  - name: Nightly Report
    tennant: acme
    schedule: {cron: "75 2 * * *", timezone: EST, month_end: clmp}
    run: {command: [python, 5], env: {PATH: x}}
    payload: {kind: ["{{ now }}"]}
    priority: 200
    timeout: 0
    retry: {max_attempts: 0, backoff: [30s, 2x], jitter: 2}
    overlap: {policy: cancel_previous, max_running: 3}
    misfire: {policy: all, window: 10s, limit: 0}
    jitter: 5m
    start_deadline: 5m
    starts_at: 2027-01-01T00:00:00Z
    ends_at: 2026-01-01T00:00:00Z
    depends_on: [a, a, "B"]
"""


def test_a_document_with_many_mistakes_has_them_all_reported() -> None:
    """Twenty-one mistakes, one of each kind: none hides another."""
    assert sorted(pointers(read_yaml(TWENTY, "jobs.yaml"))) == sorted(
        "/jobs/0" + path
        for path in (
            "/name", "/tennant", "/schedule/cron", "/schedule/timezone", "/schedule/month_end", "/run/command/1",
            "/run/env/PATH", "/payload/kind/0", "/priority", "/timeout", "/retry/max_attempts", "/retry/backoff/1",
            "/retry/jitter", "/overlap/max_running", "/overlap/policy", "/misfire/window", "/misfire/limit", "/jitter",
            "/ends_at", "/depends_on/1", "/depends_on/2",
        )
    )  # fmt: skip


def test_mistakes_of_all_jobs_and_calendars_are_reported() -> None:
    raw = {
        "jobs": [job(), job(name="b", retry={"backoff": ["30s", "x"]}), 5, job(name="c", nmae=1), job()],
        "calendars": [{"name": "us"}, {"name": "us", "holidays": ["12-25"]}],
        "job": [],
    }
    assert pointers(raw) == [
        "/job",
        "/calendars/0",
        "/calendars/1/name",
        "/jobs/1/retry/backoff/1",
        "/jobs/2",
        "/jobs/3/nmae",
        "/jobs/4/name",
    ]


@pytest.mark.parametrize(
    ("more", "pointer", "says"),
    [
        ({"tiemout": "5m"}, "/tiemout", "did you mean timeout?"),
        ({"max_retries": 3}, "/max_retries", "retry: {max_attempts: …}"),
        ({"enabled": True}, "/enabled", "fleetcron jobs pause"),
        ({"retry": {"max_atempts": 3}}, "/retry/max_atempts", "did you mean max_attempts?"),
        ({"schedule": {"cron": "0 2 * * *", "timezon": "UTC"}}, "/schedule/timezon", "did you mean timezone?"),
        ({"schedule": {"cron": "0 2 * * *", "every": "1h"}}, "/schedule/every", "write a list for several"),
        ({"schedule": {"corn": "0 2 * * *"}}, "/schedule/corn", "did you mean cron?"),
        ({"schedule": {}}, "/schedule", "has none of cron, every, at"),
        ({"schedule": "0 2 * * *"}, "/schedule", "must be a list"),
        ({"schedule": []}, "/schedule", "must not be empty"),
        ({"schedule": [{"cron": "x"}] * 101}, "/schedule", "is too long: 100 at most"),
        ({"description": "x" * 10_001}, "/description", "is too long: 10,000 characters at most"),
        ({"weather": "fine"}, "/weather", "docs/learn/jobs.md"),
        ({"misfire": {"weather": "fine"}}, "/misfire/weather", "there are policy, window, limit, grace, lane"),
        ({"schedule": {"cron": "0 25 * * *"}}, "/schedule/cron", "hour: 25 is outside 0-23"),
        ({"schedule": {"cron": 5}}, "/schedule/cron", "must be a cron expression, not 5"),
        ({"schedule": {"cron": "@every 5m"}}, "/schedule/cron", "every: 5m in a job"),
        ({"schedule": {"cron": "0 0 30 2 *"}}, "/schedule/cron", "never fires"),
        ({"schedule": [{"every": "1h"}, {"cron": "0 0 30 2 *"}]}, "/schedule/1/cron", "never fires"),
        ({"schedule": {"cron": "0 2 * * *", "timezone": "New York"}}, "/schedule/timezone", "mean America/New_York?"),
        ({"schedule": {"every": "500ms"}}, "/schedule/every", "the shortest interval is 1s"),
        ({"schedule": {"at": "2027-01-01T09:00:00"}}, "/schedule/at", "has no zone"),
        ({"schedule": {"at": "tomorrow"}}, "/schedule/at", "is not an instant"),
        ({"schedule": {"at": "2027-03-14T02:30", "timezone": "America/New_York", "dst_gap": "skip"}}, "/schedule/at",
         "does not exist in America/New_York"),
        ({"schedule": {"at": "2027-01-01T09:00:00Z"}, "ends_at": "2026-01-01T00:00:00Z"}, "/schedule", "never fires"),
        ({"starts_at": "2027-01-01"}, "/starts_at", "is not an instant"),
        ({"starts_at": "2027-01-01T00:00:00"}, "/starts_at", "write 2027-01-01T00:00:00Z for UTC"),
        ({"name": "-a"}, "/name", "is not a name"),
        ({"name": "a" * 201}, "/name", "is not a name"),
        ({"name": "a\n"}, "/name", "is not a name"),
        ({"tenant": "ACME"}, "/tenant", "small letters"),
        ({"pool": ""}, "/pool", "is not a name"),
        ({"priority": 101}, "/priority", "101 is more than 100"),
        ({"priority": -101}, "/priority", "-101 is less than -100"),
        ({"priority": 1.5}, "/priority", "must be a whole number"),
        ({"priority": True}, "/priority", "must be a whole number, not true"),
        ({"timeout": "0s"}, "/timeout", "not longer than 0"),
        ({"timeout": -5}, "/timeout", "not longer than 0"),
        ({"timeout": None}, "/timeout", "must be a duration, not null"),
        ({"timeout": True}, "/timeout", "must be a duration, not true"),
        ({"timeout": 10**5000}, "/timeout", "a huge number"),
        ({"priority": 10**5000}, "/priority", "a huge number is more than 100"),
        ({"max_ticks": 10**5000}, "/max_ticks", "a huge number is more than"),
        ({"description": 10**5000}, "/description", "must be text, not a huge number"),
        ({"max_ticks": 0}, "/max_ticks", "less than 1"),
        ({"overlap": "skp"}, "/overlap", "did you mean skip?"),
        ({"overlap": {"policy": "skip", "max_running": 2}}, "/overlap/max_running", "only for allow"),
        ({"overlap": "cancel_previous", "misfire": "all"}, "/overlap", "cancel_previous with misfire all"),
        ({"misfire": {"policy": "all", "lane": "live"}}, "/misfire/lane", "all but the first would be skipped"),
        ({"misfire": {"limit": 10_001}}, "/misfire/limit", "more than 10000"),
        ({"misfire": {"window": "30s"}}, "/misfire/window", "shorter than grace"),
        ({"jitter": "5m", "start_deadline": "5m"}, "/jitter", "shorter than start_deadline"),
        ({"on_upstream_failure": "wait"}, "/on_upstream_failure", "needs a start_deadline"),
        ({"depends_on": ["a", "report"]}, "/depends_on/1", "depends on itself"),
        ({"depends_on": "a"}, "/depends_on", "must be a list, not 'a'"),
        ({"starts_at": "2027-01-01T00:00:00Z", "ends_at": "2027-01-01T00:00:00Z"}, "/ends_at", "not after starts_at"),
        ({"payload": [1]}, "/payload", "must be a mapping"),
        ({"payload": {"a": "{{ secrets.key }}"}}, "/payload/a", "{{ scheduled_for }}, {{ job.name }}, {{ tenant }}"),
        ({"payload": {"a": "x" * 300_000}}, "/payload", "larger than 256 KiB"),
        ({"run": {}}, "/run", "has none of python, command, http, publish"),
        ({"run": {"comand": ["a"]}}, "/run/comand", "did you mean command?"),
        ({"run": {"python": "report"}}, "/run/python", "module:function"),
        ({"run": {"python": "a:b", "command": ["c"]}}, "/run/command", "it has one of python, command, http, publish"),
        ({"run": {"command": "ls"}}, "/run/command", "shell: true"),
        ({"run": {"command": ["ls"], "shell": True}}, "/run/command", "one text"),
        ({"run": {"command": []}}, "/run/command", "must not be empty"),
        ({"run": {"command": [" "]}}, "/run/command/0", "no name"),
        ({"run": {"command": ["a\0"]}}, "/run/command/0", "NUL"),
        ({"run": {"command": ["a"], "env": {"LD_PRELOAD": "x"}}}, "/run/env/LD_PRELOAD", "may not be set"),
        ({"run": {"command": ["a"], "env": {"A=B": "x"}}}, "/run/env/A=B", "not the name of a variable"),
        ({"run": {"http": {"url": "ftp://x"}}}, "/run/http/url", "is not a URL"),
        ({"run": {"http": {"url": "https://a:b@x"}}}, "/run/http/url", "send it in a header"),
        ({"run": {"http": {"url": "http://[x"}}}, "/run/http/url", "is not a URL"),
        ({"run": {"http": {"url": "http://x", "headers": {"a b": "c"}}}}, "/run/http/headers/a b", "name of a header"),
        ({"run": {"http": {"url": "http://x", "headers": {"a": "c\r\nd: e"}}}}, "/run/http/headers/a", "one line"),
        ({"run": {"http": {}}}, "/run/http/url", "is missing"),
        ({"run": {"publish": {"broker": "nats"}}}, "/run/publish/to", "is missing"),
        ({"retry": {"backoff": "30s"}}, "/retry/backoff", "{fixed: 30s}"),
        ({"retry": {"backoff": {"expnential": {}}}}, "/retry/backoff/expnential", "did you mean exponential?"),
        ({"retry": {"backoff": {"exponential": {"first": "1h", "max": "1m"}}}}, "/retry/backoff/exponential/max",
         "shorter"),
        ({"retry": {"jitter": float("nan")}}, "/retry/jitter", "must be a number"),
        ({"retry": {"retry_on": ["E1"], "give_up_on": ["E2", "E1"]}}, "/retry/give_up_on/1", "retry_on too"),
        ({"calendars": ["Us"]}, "/calendars/0", "is not a name"),
        ({"calendars": ["us", "us"]}, "/calendars/1", "used twice"),
        ({"alerts": {"on_duration": 0}}, "/alerts/on_duration", "not more than 0"),
        ({"alerts": {"on_failure": "yes"}}, "/alerts/on_failure", "must be true or false, not 'yes'"),
        ({"retention": "soon"}, "/retention", "is not a duration"),
        ({"description": 5}, "/description", "must be text, not 5; quote it"),
        ({"type": "a\nb"}, "/type", "one line"),
        ({5: 1}, "", "the key 5 is not text"),
        ({"a\ud800": 1}, "", "cannot be stored"),
        ({"description": "\ud800"}, "/description", "cannot be stored"),
        ({"a/b~c": 1}, "/a~1b~0c", "unknown field"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_place_and_says_what_to_do(more: dict, pointer: str, says: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        read_job({**SMALLEST, **more})
    assert [mistake.pointer for mistake in caught.value.mistakes] == [pointer]
    assert says in str(caught.value)
    str(caught.value).encode()


@pytest.mark.parametrize("field", ["name", "schedule", "run"])
def test_what_is_missing_is_named(field: str) -> None:
    with pytest.raises(DefinitionError, match=f"/{field}: is missing"):
        read_job({name: value for name, value in SMALLEST.items() if name != field})


@pytest.mark.parametrize("raw", [None, [], "jobs", 5, [SMALLEST]])
def test_a_document_is_a_mapping(raw: object) -> None:
    with pytest.raises(DefinitionError, match="write jobs:"):
        read_definitions(raw)


def test_an_empty_document_has_no_jobs() -> None:
    found = read_definitions({"jobs": [], "x-anchors": {"a": object()}})
    assert (found.jobs, found.calendars) == ([], [])
    assert pointers({"jobs": None, "calendars": {}}) == ["/calendars", "/jobs"]


def test_a_wrong_field_beside_does_not_hide_a_rule() -> None:
    """The rule looks at policy; what is wrong with grace, limit and an unknown field does not matter to it."""
    found = mistakes(
        overlap={"policy": "cancel_previous", "concurrency_key": 5},
        misfire={"policy": "all", "grace": "x", "limit": 0, "odd": 1},
    )
    assert [mistake.pointer for mistake in found] == [
        "/overlap/concurrency_key",
        "/misfire/limit",
        "/misfire/grace",
        "/misfire/odd",
        "/overlap/policy",
    ]


def test_a_rule_is_not_asked_about_a_field_that_was_wrong() -> None:
    assert [m.pointer for m in mistakes(jitter="5m", start_deadline="x")] == ["/start_deadline"]
    assert [m.pointer for m in mistakes(schedule={"cron": "0 0 30 2 *", "month_end": "clmp"})] == [
        "/schedule/month_end"
    ]
    assert [m.pointer for m in mistakes(on_upstream_failure="wait", start_deadline=0)] == ["/start_deadline"]
    assert [m.pointer for m in mistakes(name="X", depends_on=["stand-in"])] == ["/name"]


def test_names_are_unique_within_a_tenant_of_a_file() -> None:
    """S4-9: name unique."""
    same = [job(), job(tenant="acme"), job(tenant="acme", schedule={"every": "x"}), job(name="X"), job(name="X")]
    assert pointers({"jobs": same}) == ["/jobs/2/schedule/every", "/jobs/2/name", "/jobs/3/name", "/jobs/4/name"]


def test_the_payload_is_the_definitions_own() -> None:
    payload = {"a": [1]}
    found = read_job(job(payload=payload))
    payload["a"].append(2)
    assert found.payload == {"a": [1]}


def test_a_thousand_mistakes_are_listed_in_time_and_printed_in_part() -> None:
    names = [{"unknown" + "x" * (at % 50) + str(at): 1} for at in range(1000)]
    began = perf_counter()
    with pytest.raises(DefinitionError) as caught:
        read_definitions({"jobs": [{**job(name=f"job-{at}"), **odd} for at, odd in enumerate(names)]})
    assert perf_counter() - began < 5
    assert len(caught.value.mistakes) == 1000
    printed = report(caught.value.mistakes).splitlines()
    assert (len(printed), printed[-1]) == (51, "and 950 more")
    assert report(caught.value.mistakes[:50]).count("\n") == 49


def test_a_thousand_mistakes_in_one_job_are_listed_in_time() -> None:
    began = perf_counter()
    found = mistakes(**{f"field-{at}" * 20: 1 for at in range(500)}, payload={f"k{at}": "{{ x }}" for at in range(500)})
    assert perf_counter() - began < 5
    assert len(found) == 1000


def test_endless_values_are_not_printed() -> None:
    with pytest.raises(DefinitionError) as caught:
        read_job(job(**{"n" * 100_000: 1}, timeout="x" * 100_000, overlap="y" * 100_000, pool="P" * 100_000))
    assert len(caught.value.mistakes) == 4
    assert len(str(caught.value)) < 3000


def test_the_json_schema_has_every_field_with_its_words_and_default() -> None:
    schema = json_schema()
    for name, shape in schema["$defs"].items():
        assert shape["additionalProperties"] is False
        for field, words in shape["properties"].items():
            assert words.get("description"), f"{name}.{field} has no description"
    fields = schema["$defs"]["JobShape"]["properties"]
    assert set(fields) == set(read_job(job()).as_document())
    assert (fields["timeout"]["default"], fields["jitter"]["default"]) == ("1h", "0s")
    assert schema["$defs"]["RetryShape"]["properties"]["backoff"]["default"] == ["30s", "2m", "10m", "30m", "2h"]
    assert schema["$defs"]["JobShape"]["required"] == ["name", "schedule", "run"]


def test_the_json_schema_takes_what_is_written_in_either_form() -> None:
    check = jsonschema.Draft202012Validator(json_schema()).is_valid
    assert check({"jobs": [job(overlap="queue", retention=5, calendars=["us"]), read_job(job()).as_document()]})
    assert check({"jobs": [job(schedule=[{"every": 5}, {"at": "2027-01-01T00:00:00Z"}])], "x-a": 1})
    assert not check({"jobs": [job(overlap="sometimes")]})
    assert not check({"jobs": [job(tiemout=1)]})
    assert not check({"job": []})

"""`fleetcron serve` and what it leaves in the store, with real processes."""

import json
import re
import signal

import pytest

from tests.cli.folder import Folder

HOUR = 3600


def test_from_an_empty_folder_to_a_planned_run(with_examples: Folder) -> None:
    """S2-5: the run is there before its time; S0-4: a clean stop gives everything back."""
    fleetcron = with_examples  # the node is a process; looking at what it does needs none
    fleetcron("apply", "-f", "jobs.yaml")
    with fleetcron.serving("--log-level", "debug") as node:
        assert "serves sqlite:///fleetcron.db as" in node.until("serves")
        # a minute may begin between the two commands
        assert re.search("5 active jobs; (the next tick is|ticks since) 20", node.until("active jobs"))
        assert "executes those of the pool default (10 at a time)" in node.until("It plans runs")
        assert "fleetcron jobs, fleetcron runs" in node.until("Look at it")
        node.until("jobs planned")
        [run] = fleetcron.json("runs", "--job", "heartbeat", "--planned")["runs"][:1]
        assert (run["state"], run["covers"], run["lane"]) == ("planned", 1, "live")
        assert run["idempotency_key"] == f"job:{run['job_id']}:scheduled_for:{run['scheduled_for']}"
        [seen] = fleetcron.json("nodes")["nodes"]
        assert seen["alive"]
        assert "0 to 15" in fleetcron("nodes").stdout
        said = node.stop()
    assert "SIGTERM: stopping" in said
    assert fleetcron.json("nodes")["nodes"] == []
    assert "Nothing is planned" not in fleetcron("jobs").stdout
    assert "No node is running, so nothing is planned. Start one: fleetcron serve" in fleetcron("nodes").stdout
    assert sorted(path.name for path in fleetcron.path.iterdir()) == ["fleetcron.db", "jobs.yaml"]


def test_an_outage_ends_in_runs_and_the_ledger(quick: Folder) -> None:
    """S2-16 … S2-19: skip, latest and all after six hours without a scheduler, with every tick answered."""
    policies = {"skips": "skip", "latest": "latest", "all": "{policy: all, limit: 3, window: 5h}"}
    job = '  - {{name: {}, schedule: {{cron: "0 * * * *"}}, run: {{command: [x]}}, misfire: {}}}'
    given = "\n".join(["jobs:", *(job.format(name, misfire) for name, misfire in policies.items())])
    quick("apply", "-", given=given, shift_s=-6 * HOUR)
    with quick.serving("--log-level", "debug") as node:
        node.until("1 gaps decided")
        node.stop()

    ledger = {name: quick.json("ledger", "--job", name)["ledger"] for name in policies}
    runs = {name: quick.json("runs", "--job", name, "--to", "1s")["runs"] for name in policies}
    [skipped] = ledger["skips"]
    assert (skipped["answer"], skipped["reason"], runs["skips"]) == ("skipped", "misfire", [])
    assert skipped["ticks"] in (5, 6)  # depends on the minute at which the test runs
    [covered], [run] = ledger["latest"], runs["latest"]
    assert (covered["answer"], covered["reason"]) == ("skipped", "covered")
    assert covered["covered_by"] == run["scheduled_for"]
    assert run["covers"] == covered["ticks"] + 1
    assert (run["lane"], run["window"]["to"]) == ("catchup", run["scheduled_for"])
    assert len(runs["all"]) == 3
    assert {entry["reason"] for entry in ledger["all"]} <= {"too_old", "over_limit"}
    assert sum(entry["ticks"] for entry in ledger["all"]) + 3 == skipped["ticks"]
    shown = quick("ledger").stdout
    assert "late, and the job skips late ticks (misfire: skip)" in shown
    assert f"the run of a later tick stands for them: {run['scheduled_for']}" in shown
    assert f"{run['covers']} ticks, " in quick("runs", "--job", "latest").stdout


def test_a_second_start_applies_the_same_files_again(with_examples: Folder) -> None:
    for _ in range(2):
        with with_examples.serving("-f", "jobs.yaml", "--log-level", "debug") as node:
            applied = node.until("jobs of the files")
            node.until(" took ")
            node.stop(signal.SIGINT)
    assert "5 unchanged" in applied
    runs = with_examples.json("runs")["runs"]
    assert len({(run["job_id"], run["scheduled_for"]) for run in runs}) == len(runs)


def test_mistakes_keep_it_from_starting(quick: Folder) -> None:
    quick.write("jobs.yaml", "jobs:\n  - name: a\n    schedule: {every: 5x}\n")
    said = quick("serve", "-f", "jobs.yaml", code=2)
    assert "error: jobs.yaml:3:16: /jobs/0/schedule/every: '5x' is not a duration" in said.stderr
    assert "error: jobs.yaml:2:5: /jobs/0/run: is missing" in said.stderr
    assert [path.name for path in quick.path.iterdir()] == ["jobs.yaml"]


def test_flags_that_cannot_be(quick: Folder) -> None:
    said = quick("serve", "--shards", "none", "--lookahead", "1ms", "--log-format", "xml", code=2)
    assert "error: --shards: 'none' is not a whole number" in said.stderr
    assert "error: --lookahead: 1ms is too short" in said.stderr
    assert "error: --log-format: 'xml' is not one of them" in said.stderr


def test_another_number_of_shards_is_refused_and_can_be_changed(quick: Folder) -> None:
    quick("apply", "-", given="jobs: [{name: a, schedule: {every: 1h}, run: {command: [x]}}]")
    assert "this fleet has 16 shards and this node is set to 1" in quick("serve", "--shards", "1", code=2).stderr
    assert "exclude each other" in quick("shards", "--set", "1", "--watch", code=2).stderr
    assert "The fleet has 1 shards." in quick("shards", "--set", "1").stdout
    with quick.serving("--shards", "1") as node:
        node.until(" took */0")
        assert "schedulers are at work" in quick("shards", "--set", "2", code=2).stderr
        node.stop()


@pytest.mark.parametrize("flag", ["--pool", "--pools"])
def test_a_pool_that_cannot_be_is_told_by_its_option(quick: Folder, flag: str) -> None:
    for command in ("serve", "worker"):
        said = quick(command, flag, "default=two", code=2).stderr
        assert said.startswith("error: --pool: 'default=two' cannot be in the list\n")


def test_json_for_machines(with_examples: Folder) -> None:
    with with_examples.serving("-f", "jobs.yaml", FLEETCRON_NODE__LOG_FORMAT="json") as node:
        assert " took */0 to 15 (term 1)" in node.until(" took ")
        node.stop()
    entries = [json.loads(line) for line in node.lines]
    assert all(entry.keys() == {"at", "level", "logger", "message"} for entry in entries)
    assert any("5 active jobs; the next tick is" in entry["message"] for entry in entries)


def test_a_fleet_on_postgres(on_postgres: Folder) -> None:
    """S3-13: no single node is a hard dependency."""
    on_postgres("apply", "jobs.yaml")
    with on_postgres.serving("--name", "one") as one:
        one.until(" took ")
        with on_postgres.serving("--name", "two", "--log-level", "debug") as two:
            two.until(" took ")
            nodes = on_postgres.json("nodes")["nodes"]
            assert {seen["node_id"].split("-")[0] for seen in nodes} == {"one", "two"}
            one.stop()
            while "0 to 15" not in on_postgres("nodes").stdout:
                two.until(" took ")
            two.stop()
    assert "acme/nightly-report   0 2 * * * America/New_York" in on_postgres("jobs").stdout
    assert on_postgres.json("runs", "--job", "heartbeat", "--planned")["runs"][0]["state"] == "planned"
    assert on_postgres.json("ledger", "--job", "heartbeat")["ledger"] == []
    kinds = {event["kind"] for event in on_postgres.json("events")["events"]}
    assert {"schema_migrated", "job_created", "node_joined", "shard_taken", "node_left"} <= kinds


AWAY = "postgresql://me:secret@127.0.0.1:1/jobs"


def test_it_waits_for_a_postgres_that_is_not_there_yet(fleetcron: Folder) -> None:
    with fleetcron.serving("--database", AWAY) as node:
        line = node.until("waiting for the database")
        assert "cannot be reached" in line
        assert "secret" not in line
        node.stop()


def test_it_does_not_wait_if_told_so(quick: Folder) -> None:
    said = quick("serve", "--no-wait", "--database", AWAY, code=3)
    assert said.stderr.startswith("error: PostgreSQL at postgresql://me:***@127.0.0.1:1/jobs cannot be reached")
    assert "hint: is it running, and is the address in the URL right?" in said.stderr


def test_nodes_with_one_role(quick: Folder) -> None:
    """S0-14: a scheduler decides when, a worker does the work; each alone in its process."""
    quick("apply", "-", given="jobs: [{name: hi, schedule: {at: 2099-01-01T00:00:00Z}, run: {command: [echo, hello]}}]")
    with quick.serving(command="scheduler") as planning, quick.serving(command="worker") as working:
        assert "workers execute them: fleetcron worker" in planning.until("It plans runs")
        said = working.until("It executes runs of the pool default (10 at a time), and plans none")
        assert "that is for: fleetcron scheduler, or fleetcron serve" in said
        run_id = quick.json("jobs", "trigger", "hi")["run_id"]
        shown = quick("runs", "log", str(run_id), "--follow").stdout
        assert shown.splitlines()[0] == "hello"
        roles = {node["node_id"]: node["roles"] for node in quick.json("nodes")["nodes"]}
        assert sorted(roles.values()) == [["scheduler"], ["worker"]]
    assert quick.json("runs", "show", str(run_id))["state"] == "succeeded"


def test_a_worker_tells_which_pools_nobody_serves(with_examples: Folder) -> None:
    """Nothing fails in such a pool, and nothing ever starts."""
    line = "1 job is in the pool reports, which no worker serves: --pool reports=2"
    with with_examples.serving("-f", "jobs.yaml") as node:
        node.until("Look at it")
        assert " warning " in node.until(line)
        assert any("no worker of the pool default can run python:shop.jobs:bill" in each for each in node.lines)
    with with_examples.serving("--pool", "default=2", "--pool", "reports=2", command="worker") as node:
        said = node.until("jobs wait for a scheduler")
        assert "those without a region (start fleetcron scheduler, or serve)" in said
        assert line not in "".join(node.lines)

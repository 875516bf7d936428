"""Dead letters from the command line: the list, and what people do to one or to many of them."""

import re

import pytest

from tests.cli.folder import Folder
from tests.cli.test_steering_runs import ready as ready
from tests.cli.test_steering_runs import sql, state


def dead(folder: Folder, name: str = "sync", code: str = "boom") -> int:
    """A run that has failed for good, as a worker would have left it."""
    run_id = int(folder.json("jobs", "trigger", name)["run_id"])
    sql(folder, "DELETE FROM upcoming WHERE run_id = ?", run_id)
    ended = "state = 'dead', finished_ms = created_ms, attempt = 2, failures = 2"
    sql(folder, f"UPDATE runs SET {ended} WHERE run_id = ?", run_id)
    columns = "run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, log_bytes"
    sql(
        folder,
        f"INSERT INTO attempts ({columns}) VALUES (?, 2, 'w1', 1, 2, 'failed', ?, 'it\nbroke', 0)",
        run_id,
        code,
    )
    return run_id


def test_the_list_of_dead_letters(ready: Folder) -> None:
    assert ready("dead").stdout.startswith("No dead letters")
    first, second = dead(ready), dead(ready, "acme/report", "timeout")
    lines = ready("dead").stdout.splitlines()
    assert lines[0].split() == ["RUN", "JOB", "SCHEDULED", "FOR", "DIED", "ATTEMPTS", "ERROR"]
    assert lines[1].split()[:2] == [str(second), "acme/report"]
    assert lines[2].endswith(r"boom: it\x0abroke")
    [letter] = ready.json("dead", "--error", "boom")["dead"]
    assert letter.keys() == {
        *("run_id", "tenant", "name", "job_id", "type", "kind", "scheduled_for", "died_at", "attempt", "failures"),
        *("losses", "round", "outcome", "error", "node_id"),
    }
    assert (letter["run_id"], letter["error"]) == (first, {"code": "boom", "text": "it\nbroke"})

    def found(*words: str) -> list[int]:
        return [each["run_id"] for each in ready.json("dead", *words)["dead"]]

    assert found() == [second, first]
    assert found("--tenant", "acme") == found("--type", "report") == found("--job", "acme/report") == [second]
    assert found("--tenant", "acme", "--name", "report", "--since", "1h") == [second]
    assert found("--before", str(second)) == [first]
    assert found("--error", "other") == []
    assert ready.json("dead", "--limit", "1")["before"] == second
    assert "No dead letter is like that" in ready("dead", "--error", "other").stdout
    assert "did you mean default/sync" in ready("dead", "--job", "snyc", code=2).stderr


def test_dead_letters_are_replayed(ready: Folder) -> None:
    runs = [dead(ready), dead(ready), dead(ready, "acme/report", "timeout")]
    assert ready("dead", "replay", "--all", "--dry-run").stdout == "3 runs would be replayed.\n"
    assert [state(ready, run_id) for run_id in runs] == ["dead"] * 3
    assert ready("dead", "replay", str(runs[0])).stdout.split()[-1] == "replayed"
    done = ready.json("dead", "replay", "--tenant", "acme", "--error", "timeout")
    assert done == {"dead": 1, "can_be_replayed": 1, "replayed": 1, "dry_run": False}
    assert [state(ready, run_id) for run_id in runs] == ["planned", "dead", "planned"]
    more = [dead(ready, "acme/report"), dead(ready)]
    ready("jobs", "delete", "acme/report")
    said = ready("dead", "replay", "--all", "--limit", "1").stdout.splitlines()
    assert said == ["1 run replayed.", "1 run of deleted or cancelled jobs stays dead."]
    assert [state(ready, run_id) for run_id in (runs[1], *more)] == ["planned", "dead", "dead"]
    assert ready("dead", "replay", "--since", "1h").stdout.startswith("1 run replayed.")
    assert ready("dead", "replay", "--error", "other").stdout == "No dead letter is like that: nothing to replay.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Which ones? Give numbers of runs, options such as --job NAME, or --all."),
        (["--all", "--error", "boom"], "--all and other options exclude each other."),
        (["1", "--all"], "Give numbers of runs, or options that choose them; not both."),
        (["1", "--error", "boom"], "Give numbers of runs, or options that choose them; not both."),
        (["sync"], "'sync' is not the number of a run, such as 812. Numbers are in: fleetcron runs --job sync"),
    ],
)
def test_a_replay_says_which_ones(ready: Folder, words: list[str], message: str) -> None:
    assert message in ready("dead", "replay", *words, code=2).stderr


def test_dead_letters_are_discarded(ready: Folder) -> None:
    run_id = dead(ready)
    assert "Missing option '--reason'" in ready("dead", "discard", str(run_id), code=2).stderr
    done = ready("dead", "discard", str(run_id), "--reason", "known bug", "--by", "eve")
    assert done.stdout.split() == [str(run_id), "default/sync", "discarded"]
    assert ready.json("dead")["dead"] == []
    assert state(ready, run_id) == "dead"
    assert re.search(r"\n  discarded     20\S+Z by eve: known bug\n", ready("dead", "show", str(run_id)).stdout)
    told = ready.json("runs", "show", str(run_id))["discarded"]
    assert (told.keys(), told["by"], told["reason"]) == ({"at", "by", "reason"}, "eve", "known bug")
    [event] = ready.json("events", "--kind", "run_discarded")["events"]
    assert (event["by"], event["detail"]) == ("eve", {"runs": [run_id], "reason": "known bug"})
    ready("dead", "discard", str(run_id), "--reason", "known bug")
    ready("runs", "replay", str(run_id))
    refused = ready("dead", "discard", str(run_id), "--reason", "known bug", code=1)
    assert "it is not over: only dead runs can be discarded" in refused.stdout


def test_many_dead_letters_are_discarded(ready: Folder) -> None:
    runs = [dead(ready), dead(ready), dead(ready, "acme/report", "timeout")]
    call = ("dead", "discard", "--job", "sync", "--error", "boom", "--since", "1h")
    assert "Missing option '--reason'" in ready(*call, code=2).stderr
    call = (*call, "--reason", "known bug")
    assert ready(*call, "--dry-run").stdout == "2 runs would be discarded.\n"
    assert "Discard 2 dead letters? [y/N]" in ready(*call, given="n\n", code=1).stderr
    assert len(ready.json("dead")["dead"]) == 3
    assert ready(*call, given="y\n").stdout == "2 runs discarded.\n"
    assert [each["run_id"] for each in ready.json("dead")["dead"]] == runs[2:]
    assert ready(*call, "--yes").stdout == "No dead letter is like that: nothing to discard.\n"
    rest = ("dead", "discard", "--all", "--reason", "old")
    assert "--json asks nobody" in ready(*rest, "--json", code=2).stderr
    assert ready.json(*rest, "--yes") == {"dead": 1, "discarded": 1, "dry_run": False}
    assert "Which ones?" in ready("dead", "discard", "--reason", "x", code=2).stderr
    assert "not both" in ready("dead", "discard", "1", "--all", "--reason", "x", code=2).stderr

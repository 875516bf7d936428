"""The command line as a user meets it: output, messages, exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleetcron.cli import main
from fleetcron.cli.main import COMMANDS

NEW_YORK = ("--timezone", "America/New_York")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Run = Callable[..., Said]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["fleetcron", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return call


def test_next_as_json_lists_utc_local_and_notes(run: Run) -> None:
    said = run("next", "30 2 * * *", *NEW_YORK, "--after", "2027-03-13T12:00:00Z", "--count", "2", "--json")
    assert said.code == 0
    assert json.loads(said.out) == [
        {
            "scheduled_for": "2027-03-14T07:00:00Z",
            "local": "2027-03-14T03:00:00-04:00",
            "notes": ["moved from 02:30: does not exist"],
        },
        {"scheduled_for": "2027-03-15T06:30:00Z", "local": "2027-03-15T02:30:00-04:00", "notes": []},
    ]


def test_next_for_people(run: Run) -> None:
    said = run("next", "30 2 * * *", *NEW_YORK, "--after", "2027-03-13T12:00:00Z", "-n", "1")
    assert said.out == (
        "UTC                   America/New_York\n"
        "2027-03-14T07:00:00Z  Sun 2027-03-14 03:00:00-04:00   moved from 02:30: does not exist\n"
    )


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        (("--dst-gap", "skip"), ["2027-03-15T06:30:00Z"]),
        (("--dst-gap", "shift"), ["2027-03-14T07:00:00Z"]),
    ],
)
def test_next_takes_the_gap_policy(run: Run, policies: tuple[str, ...], expected: list[str]) -> None:
    said = run("next", "30 2 * * *", *NEW_YORK, "--after", "2027-03-13T12:00Z", "-n1", "--json", *policies)
    assert [row["scheduled_for"] for row in json.loads(said.out)] == expected


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        ("first", ["2027-11-07T05:30:00Z", "2027-11-08T06:30:00Z"]),
        ("second", ["2027-11-07T06:30:00Z", "2027-11-08T06:30:00Z"]),
        ("both", ["2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z"]),
    ],
)
def test_next_takes_the_fold_policy(run: Run, fold: str, expected: list[str]) -> None:
    said = run("next", "30 1 * * *", *NEW_YORK, "--after", "2027-11-07T00:00Z", "-n2", "--json", "--dst-fold", fold)
    assert [row["scheduled_for"] for row in json.loads(said.out)] == expected


def test_next_takes_month_end(run: Run) -> None:
    said = run("next", "0 0 31 * *", "--month-end", "clamp", "--after", "2027-02-01T00:00Z", "-n1", "--json")
    assert json.loads(said.out)[0] == {
        "scheduled_for": "2027-02-28T00:00:00Z",
        "local": "2027-02-28T00:00:00+00:00",
        "notes": ["clamped from 31"],
    }


def test_an_instant_without_an_offset_is_local(run: Run) -> None:
    said = run("next", "0 2 * * *", *NEW_YORK, "--after", "2027-01-01T01:59", "-n1", "--json")
    assert json.loads(said.out)[0]["scheduled_for"] == "2027-01-01T07:00:00Z"


def test_intervals_and_instants(run: Run) -> None:
    every = run("next", "--every", "1d", "--tz", "Europe/Berlin", "--after", "2027-01-01T00:00Z", "-n1", "--json")
    assert json.loads(every.out)[0]["local"] == "2027-01-02T01:00:00+01:00"
    once = run("next", "--at", "2027-03-14 02:30", *NEW_YORK, "--after", "2027-01-01T00:00Z", "--json")
    assert json.loads(once.out) == [
        {
            "scheduled_for": "2027-03-14T07:00:00Z",
            "local": "2027-03-14T03:00:00-04:00",
            "notes": ["moved from 02:30: does not exist"],
        }
    ]
    past = run("next", "--at", "2020-01-01T00:00:00Z", "--after", "2027-01-01T00:00Z")
    assert (past.code, past.out) == (0, "No tick is left after that instant.\n")


def test_h_and_jitter_follow_the_job(run: Run) -> None:
    arguments = (
        "next",
        "H H * * *",
        "--job",
        "acme/report",
        "--jitter",
        "5m",
        "--after",
        "2027-01-01T00:00Z",
        "--json",
    )
    first, again = run(*arguments), run(*arguments)
    assert first == again
    assert "starts" in json.loads(first.out)[0]
    other = run(*arguments[:3], "acme/other", *arguments[4:])
    assert other.out != first.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("61 * * * *",), "error: minute: 61 is outside 0-59\n  61 * * * *\n  ^^\n"),
        (("0 24 * * *",), "error: hour: 24 is outside 0-23\n  0 24 * * *\n    ^^\nhint: midnight is hour 0\n"),
        (
            ("0 0 * * FRIDAY",),
            "error: day-of-week: 'FRIDAY' is not a value\n  0 0 * * FRIDAY\n          ^^^^^^\nhint: write FRI\n",
        ),
        (("0 0 * JNA *",), "hint: did you mean JAN?\n"),
        (("/15 * * * *",), "hint: write */15\n"),
        (
            ("0 2 * * *", "--tz", "EST"),
            "error: EST is ambiguous: use America/New_York\n  EST\n  ^^^\n"
            "hint: or America/Panama, which has no summer time\n",
        ),
        (
            ("0 2 * * *", "--tz", "America/NewYork"),
            "error: Invalid timezone: America/NewYork. Use IANA format (e.g., America/New_York)\n"
            "  America/NewYork\n  ^^^^^^^^^^^^^^^\nhint: did you mean America/New_York?\n",
        ),
        (("0 0 30 2 *",), "hint: with month_end=clamp the month's last day stands for it\n"),
        (("0 2 * * *", "--dst-gap", "shft"), "hint: did you mean shift?\n"),
        (("H * * * *",), "error: minute: H needs a job id\n"),
        (("CRON_TZ=Europe/Berlin 0 2 * * *",), "hint: give it as timezone: Europe/Berlin\n"),
        (("@every 5m",), "hint: that is an interval: Every('5m'), or every: 5m in a job\n"),
        (("0 2 * * *", "--after", "tomorrow"), "error: 'tomorrow' is not an instant\n"),
        ((), "error: one of EXPR, --every and --at is needed; nothing is given\n"),
        (("0 2 * * *", "--every", "5m"), "EXPR and --every are given"),
        (("--every", "soon"), "error: every: 'soon' is not a duration\n"),
    ],
)
def test_a_mistake_gets_a_message_and_exit_code_2(run: Run, arguments: tuple[str, ...], message: str) -> None:
    said = run("next", *arguments)
    assert said.code == 2
    assert message in said.err
    assert said.out == ""
    assert "Traceback" not in said.err


def test_explain(run: Run) -> None:
    said = run("explain", "30 2 * * *", *NEW_YORK, "--after", "2026-11-16T00:00Z")
    assert said.code == 0
    assert said.out.startswith("At 02:30 every day, America/New_York time.\n")
    assert "2027-03-14: 02:30 does not exist in America/New_York, runs at 03:00\n" in said.out
    assert "time-of-day job: dst_gap=shift, dst_fold=first, month_end=skip\n" in said.out
    data = json.loads(run("explain", "30 2 * * *", *NEW_YORK, "--after", "2026-11-16T00:00Z", "--json").out)
    assert data["schedule"]["class"] == "time-of-day job"
    assert data["clock_changes"][0]["date"] == "2027-03-14"


def test_lint_exit_codes(run: Run) -> None:
    warned = run("lint", "*/7 * * * *")
    assert warned.code == 1
    assert warned.out.startswith("warning uneven-step: ")
    assert [finding["code"] for finding in json.loads(run("lint", "*/7 * * * *", "--json").out)] == ["uneven-step"]
    clean = run("lint", "17 3 * * *")
    assert (clean.code, clean.out) == (0, "Nothing to remark.\n")
    assert json.loads(run("lint", "17 3 * * *", "--json").out) == []


def test_diff(run: Run) -> None:
    window = ("--after", "2027-01-01T00:00Z", "--until", "2027-01-03T00:00Z")
    said = run("diff", "0 2 * * *", "0 3,12 * * *", *window)
    assert said.code == 1
    assert said.out == (
        "~ 2027-01-01T02:00:00Z -> 2027-01-01T03:00:00Z\n"
        "+ 2027-01-01T12:00:00Z\n"
        "~ 2027-01-02T02:00:00Z -> 2027-01-02T03:00:00Z\n"
        "+ 2027-01-02T12:00:00Z\n"
        "2027-01-01T00:00:00Z to 2027-01-03T00:00:00Z: 2 appear, 0 vanish, 2 move, 0 stay\n"
    )
    same = run("diff", "0 0 * * 0", "@weekly", *window, "--json")
    assert same.code == 0
    assert json.loads(same.out)["move"] == []
    zones = run("diff", "0 2 * * *", "0 2 * * *", *NEW_YORK, "--new-timezone", "Europe/Berlin", *window, "--json")
    assert json.loads(zones.out)["move"][0] == {"from": "2027-01-01T07:00:00Z", "to": "2027-01-01T01:00:00Z"}
    backwards = run("diff", "0 2 * * *", "0 3 * * *", "--after", "2027-01-03T00:00Z", "--until", "2027-01-01T00:00Z")
    assert backwards.code == 2


def test_demo_says_what_it_is_and_what_to_do_next(run: Run) -> None:
    said = run("demo")
    assert said.code == 0
    assert "This shows WHEN jobs run" in said.out
    assert "Next steps" in said.out


def test_help_lists_every_command_and_a_typo_gets_a_suggestion(run: Run) -> None:
    shown = run("--help")
    assert all(name in shown.out for name in COMMANDS)
    typo = run("explian", "* * * * *")
    assert typo.code == 2
    assert "There is no command 'explian'. Did you mean explain?" in typo.err
    early = run("--database", "sqlite:///jobs.db", "jobs")
    assert early.code == 2
    assert "Options stand behind the command: fleetcron COMMAND --database" in early.err


def test_it_runs_as_a_module_in_an_empty_folder(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "fleetcron", "next", "0 2 * * *", "--after", "2027-01-01T00:00Z", "-n1", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(said.stdout)[0]["scheduled_for"] == "2027-01-01T02:00:00Z"
    assert said.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("next", "0 * * * *", "--after", "0001-01-01T00:00:00+05:00"),
        ("next", "0 * * * *", "--after", "9999-12-31T23:59:59-05:00"),
        ("next", "H * * * *", "--job", "\udcff"),
        ("next", "0 * * * *", "--jitter", "5m", "--job", "\udcff"),
        ("next", "--every", "1h", "--dst-gap", "skip"),
        ("next", "0 0 * * *", "--anchor", "2027-01-01T00:00:00Z"),
        ("next", "", "--every", "15m"),
    ],
)
def test_odd_input_is_a_message_too(run: Run, arguments: tuple[str, ...]) -> None:
    said = run(*arguments)
    assert said.code == 2
    assert said.err.startswith("error: ")


def test_the_ends_of_time(run: Run) -> None:
    first = run("next", "0 * * * *", *NEW_YORK, "--after", "0001-01-01T00:00:00Z", "-n1", "--json")
    assert json.loads(first.out)[0]["scheduled_for"] == "0001-01-01T00:56:02Z"
    last = run("diff", "0 2 * * *", "0 3 * * *", "--after", "9999-12-15T00:00Z")
    assert last.code == 1


def test_a_full_disk_is_a_message() -> None:
    with open("/dev/full", "w") as full:
        said = subprocess.run(
            [sys.executable, "-m", "fleetcron", "next", "* * * * *"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert said.returncode == 2
    assert "No space left on device" in said.stderr
    assert "Traceback" not in said.stderr


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    def colours(**environment: str) -> bool:
        terminal, other = os.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "fleetcron", "lint", "*/7 * * * *"],
            stdout=other,
            stderr=other,
            env={**os.environ, "TERM": "xterm", **environment},
        ) as process:
            os.close(other)
            shown = b""
            while True:
                try:
                    part = os.read(terminal, 4096)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                shown += part
            process.wait()
        os.close(terminal)
        assert b"uneven-step" in shown
        return b"\x1b[" in shown

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colours()
    assert not colours(NO_COLOR="1")


def test_explain_keeps_the_policies_beside_the_jitter(run: Run) -> None:
    said = run("explain", "30 2 * * *", *NEW_YORK, "--jitter", "5m", "--job", "acme/report", "--json")
    told = json.loads(said.out)["schedule"]
    assert (told["dst_gap"], told["dst_fold"], told["jitter"]) == ("shift", "first", "5m")

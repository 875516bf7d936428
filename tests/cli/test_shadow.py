"""`fleetcron ping` and `fleetcron shadow`, from a crontab to the hand-over.

On SQLite the machine's clock is the fleet's. It is moved so that each test begins in the middle of a minute."""

import asyncio
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from fleetcron.clock import HandClock
from fleetcron.config import StoreConfig
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.store import Store
from tests.cli.folder import Folder, alive
from tests.store.floor import ok

TAB = """\
MAILTO=ops
# report
* * * * * echo "it's \\% here" >> "$LOG"; exit 3
# fed
* * * * * cat >> "$LOG"%first%second
@reboot /srv/boot
"""
JOBS = """\
jobs:
  - {name: report, schedule: {cron: "* * * * *"}, run: {command: ["true"]}, shadow: true}
  - {name: daily, schedule: {cron: "0 2 * * *"}, run: {command: ["true"]}}
"""


def middle() -> int:
    """How many seconds the clock has to be moved to be in the middle of a minute."""
    return 30 - time.time_ns() // 10**9 % 60


def plan(folder: Folder, shift_s: int) -> None:
    """One round of a scheduler."""

    async def once() -> None:
        clock = HandClock(time.time_ns() // 10**6 + shift_s * 1000)
        store = await Store.open(StoreConfig(url=f"sqlite:///{folder.path / 'fleetcron.db'}"), clock)
        try:
            held = ok(await store.shards.take("*", range(16), "test", 60_000))
            await tick(store.cursors, Tables(store.almanac), held, lookahead_ms=60_000)
        finally:
            await store.close()

    asyncio.run(once())


def as_cron(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What cron does with a line: its own folder and environment, % is a line end, and the rest is input."""
    command, *given = line.split(" ", 5)[5].replace("\\%", "\0").split("%")
    env = {"SHELL": "/bin/sh", "HOME": str(folder), "PATH": "/usr/bin:/bin", "LOG": str(folder / "log")}
    text = command.replace("\0", "%")
    return subprocess.run(
        ["/bin/sh", "-c", text],
        cwd=folder,
        env=env,
        input="\n".join([*given, ""]),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_crontab_that_pings(quick: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The real command in the lines that the import has written, from a folder that knows nothing of us."""
    quick.write("tab", TAB)
    quick("import", "crontab", "tab", "--shadow", "--pings", "new", "-o", "jobs.yaml", "--apply", "--yes", code=1)
    jobs = yaml.safe_load((quick.path / "jobs.yaml").read_text())["jobs"]
    assert [(job["name"], job["shadow"]) for job in jobs] == [("report", True), ("fed", True)]
    said = quick("import", "crontab", "tab", "--shadow", "--pings", ".", "-o", "again.yaml", code=2).stderr
    assert "tab: would be written over with its own pings" in said
    assert (quick.path / "tab").read_text() == TAB
    lines = (quick.path / "new" / "tab").read_text().split("\n")
    assert [line for line in lines if "ping" not in line] == [line for line in TAB.split("\n") if line[:1] != "*"]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    first = as_cron(lines[2], elsewhere)
    assert (first.returncode, first.stdout, first.stderr) == (3, "", "")
    second = as_cron(lines[4], elsewhere)
    assert (second.returncode, second.stderr) == (0, "")
    assert (elsewhere / "log").read_text() == "it's % here\nfirst\nsecond\n"
    assert sorted(path.name for path in elsewhere.iterdir()) == ["log"]
    found = quick.json("shadow", "report", "fed")["jobs"]
    assert [each["verdict"] for each in found] == ["nothing yet"] * 2


@pytest.mark.parametrize(
    "options",
    [
        ("--database", "postgresql://127.0.0.1:1/none"),
        ("--database", "sqlite:////nowhere/at/all.db"),
        ("--config", "missing.toml"),
        ("--timeout", "soon", "--until", "never"),
    ],
)
def test_the_command_runs_whatever_becomes_of_the_ping(quick: Folder, options: tuple[str, ...]) -> None:
    said = quick("ping", "report", *options, "--", "sh", "-c", "echo ran >> log; exit 5", code=5)
    assert (quick.path / "log").read_text() == "ran\n"
    assert said.stderr.count("lost") == 1, "once for its start and its end"
    assert said.stdout == ""
    assert quick("ping", "report", "-q", *options[:2], "--", "true").stderr == ""
    assert quick("ping", "report", *options[:2], "--exit-code", "7", code=7).stderr


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("report --badopt", "No such option '--badopt'"),
        ("--exit-code 300 report", "300 is no exit code"),
        ("--exit-code x report", "'x' is not a valid integer"),
        ("report --host", "Option '--host' requires an argument"),
        ("", "Missing argument 'NAME'"),
        ("report twice", "and not 'twice'"),
        ("report --badopt --until never", "No such option '--badopt'"),
    ],
)
def test_the_command_runs_whatever_is_wrong_with_the_options(quick: Folder, own: str, said: str) -> None:
    line = ("--", "sh", "-c", "echo ran >> log; exit 5", "--", "--badopt")
    told = quick("ping", *own.split(), *line, code=5).stderr.splitlines()
    assert said in told[-1]
    assert told[-1].endswith("The command runs, and nobody is told of it.")
    assert len(told) == 1 + ("--until" in own)
    assert (quick.path / "log").read_text() == "ran\n"
    if own:
        assert quick("ping", "-q", *own.split(), *line, code=5).stderr == ""
        for until in (["--until", "2020-01-01T00:00:00Z"], ["--until=2020-01-01T00:00:00Z"]):
            assert quick("ping", *until, *own.split(), *line).stderr == "", "it is over"
    assert "No such file" in quick("ping", "--badopt", "--", "no-such-program", code=127).stderr
    assert (quick.path / "log").read_text() == "ran\n" * (2 if own else 1)
    quick("ping", "report", "--badopt", code=2)


def test_a_store_that_hangs_costs_the_timeout(fleetcron: Folder) -> None:
    """A port that takes connections and never says a word is asked once, and not for the start and the end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/x"
        line = ("sh", "-c", "echo ran > log")
        said = fleetcron("ping", "a", "--timeout", "300ms", "--database", url, "--", *line)
        assert said.stderr == "fleetcron ping a: lost: the store has not answered within 0.3 s\n"
        assert (fleetcron.path / "log").read_text() == "ran\n"
        silent.setblocking(False)
        with suppress(BlockingIOError):
            silent.accept()[0].close()  # none at all, if the timeout was over before the driver was imported
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_exit_codes_of_ping(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS)
    quick("apply", "-f", "jobs.yaml")
    assert quick("ping", "report").stderr == ""
    assert "did you mean default/report" in quick("ping", "reprot", code=2).stderr
    assert "not in shadow" in quick("ping", "daily", code=1).stderr
    assert quick("ping", "report", "--", "sh", "-c", "kill -9 $$", code=137).stderr == ""
    assert "no-such-program: No such file" in quick("ping", "report", "--", "no-such-program", code=127).stderr
    assert "Permission denied" in quick("ping", "report", "--", "/etc/passwd", code=126).stderr
    quick("ping", "report", "--until", "2020-01-01T00:00:00Z", "--", "sh", "-c", "echo ran > log")
    assert not (quick.path / "log").exists(), "the guard of a line whose hand-over is past"
    for shown, code in (("report", 0), ("daily", 0), ("nope", 0), ("report", 255)):
        quick("ping", shown, "--exit-code", str(code), code=code)  # as the crontab would have it without the ping
    for wrong in ("300", "256", "-1"):
        assert (
            f"{wrong} is no exit code: they are 0 to 255"
            in quick("ping", "report", "--exit-code", wrong, code=2).stderr
        )
    quick("ping", "report", "--start", "--exit-code", "0", code=2)
    quick("ping", "report", "--until", "2020-01-01T00:00:00Z", code=2)


def test_a_crontab_that_pings_already(quick: Folder) -> None:
    """Imported again it is the same jobs, and the same file."""
    quick.write("tab", TAB.replace("@reboot /srv/boot\n", "* * * * * x\n"))
    words = ("--shadow", "--tz", "UTC", "--json", "--prefix", "p-", "--tenant", "acme", "--pings")
    first = quick("import", "crontab", "tab", *words, "new").json
    again = quick("import", "crontab", "new/tab", *words, "newer").json
    assert again["crontabs"][0]["text"] == first["crontabs"][0]["text"] == (quick.path / "newer" / "tab").read_text()
    assert [each["job"]["name"] for each in again["jobs"]] == ["p-report", "p-fed", "p-x"]
    for old, new in zip(first["jobs"], again["jobs"], strict=True):
        assert new["job"] | {"description": ""} == old["job"] | {"description": ""}
        assert f"its line pings acme/{new['job']['name']} already" in str(new["findings"])


def test_a_password_is_not_written_and_what_the_ping_needs_instead_is_said(quick: Folder) -> None:
    quick.write("tab", "0 1 * * * a\n")
    words = ("import", "crontab", "tab", "--tz", "UTC", "--shadow")
    for url in ("postgresql://u:s3cret@db/x", "postgresql://u@db/x?password=s3cret"):
        for more, env in ((("--database", url), {}), ((), {"DATABASE_URL": url})):
            done = quick(*words, *more, **env)
            assert "s3cret" not in done.stdout + done.stderr
            assert "NOTE  the database URL has a password in it" in done.stderr
            assert "set FLEETCRON_DATABASE_URL above the lines" in done.stderr
            assert "FLEETCRON_API_KEY_FILE" in done.stderr
            assert "ping a -- " in done.stderr
    plain = quick(*words, "--database", "postgresql://u@db/x").stderr
    assert "ping --database postgresql://u@db/x a -- " in plain
    assert "has a password" not in plain
    quick.write("fleetcron.toml", '[store]\nurl = "postgresql://u:s3cret@db/x"\n')
    of_file = quick(*words).stderr
    assert f"ping --config {quick.path}/fleetcron.toml a -- " in of_file
    assert "has a password" not in of_file
    other = quick(*words, "--database", "postgresql://u:s3cret@other/x").stderr
    assert "--config" not in other.partition("WITH PING")[2], "it names another database"
    quick.write("fleetcron.toml", "")
    assert f"ping --database sqlite:///{quick.path}/fleetcron.db" in quick(*words).stderr


def test_nothing_is_written_over(quick: Folder) -> None:
    words = ("import", "crontab", "tab", "--tz", "UTC", "--shadow", "--pings", "new", "-o", "jobs.yaml")
    quick.write("tab", "0 1 * * * a\n")
    quick(*words)
    quick(*words)  # the same again
    written = {name: (quick.path / name).read_text() for name in ("jobs.yaml", "new/tab")}
    quick.write("tab", "0 1 * * * b\n")
    said = quick(*words, code=2).stderr
    for name, text in written.items():
        assert f"{name}: is there already, and says something else" in said
        assert (quick.path / name).read_text() == text
    assert "--force" in said
    (quick.path / "new" / "tab").unlink()
    quick(*words, "--apply", "--yes", code=2)
    assert not (quick.path / "new" / "tab").exists(), "all or none"
    assert not (quick.path / "fleetcron.db").exists()
    quick(*words, "--force")
    assert "b" in yaml.safe_load((quick.path / "jobs.yaml").read_text())["jobs"][0]["name"]


def test_from_the_report_to_the_hand_over_and_back(quick: Folder) -> None:
    now = middle()
    quick.write("jobs.yaml", JOBS)
    applied = quick("apply", "-f", "jobs.yaml", shift_s=now - 300)
    assert "in shadow" in applied.stdout
    assert "(shadow)" in quick("jobs", shift_s=now).stdout
    assert "in shadow" in quick("jobs", "trigger", "report", code=2, shift_s=now).stderr
    assert "in shadow" in quick("jobs", "backfill", "report", "--from", "10m", code=2, shift_s=now).stderr
    assert "nothing to compare yet" in quick("shadow", shift_s=now).stdout
    plan(quick, now)
    assert "no ping: does its line say fleetcron ping?" in quick("shadow", "report", code=1, shift_s=now).stdout
    for minute in range(-4, 1):
        quick("ping", "report", "--start", "--host", "web1", "--id", f"p{minute}", shift_s=now + minute * 60)
    [report] = quick.json("shadow", "report", shift_s=now)["jobs"]
    assert (report["verdict"], report["ticks"], report["matched"]) == ("same", 5, 5)
    assert report["hand_over_at"] is not None
    quick("ping", "report", "--host", "web2", "--exit-code", "9", "--duration", "1s", code=9, shift_s=now)
    [twice] = quick.json("shadow", "report", code=1, shift_s=now)["jobs"]
    assert (twice["verdict"], twice["doubled"], twice["failed"], twice["hosts"]) == ("differs", 1, 1, ["web1", "web2"])
    assert twice["hand_over_at"] is None
    shown = quick("shadow", "report", code=1, shift_s=now).stdout
    assert "by web1, web2" in shown
    assert "(exit code 9)" in shown
    assert "Name the instant yourself" in quick("shadow", "--hand-over", "report", code=2, shift_s=now).stderr
    assert "Nothing was handed over" in quick("shadow", "--hand-over", "--all", shift_s=now).stdout

    at = "2099-01-01T00:00:00Z"
    refused = quick("shadow", "--hand-over", "report", "--at", at, code=2).stderr
    assert "its ticks would not run: no worker serves the pool default" in refused
    assert "(--anyway" in refused
    assert "could not run here now: no worker serves" in quick("shadow", "report", code=1, shift_s=now).stdout
    done = quick.json("shadow", "--hand-over", "report", "--at", at, "--anyway")["jobs"][0]
    assert (done["done"], done["last_before"], done["first_after"]) == ("handed_over", "2098-12-31T23:59:00Z", at)
    assert "was handed over before" in quick("shadow", "--hand-over", "report", "--at", at).stdout
    assert quick.json("jobs", "show", "report")["definition"]["shadow"] == at
    assert "unchanged" in quick("apply", "-f", "jobs.yaml").stdout, "a file does not take it back"
    back = quick.json("shadow", "--back", "report")["jobs"][0]
    assert (back["done"], back["shadow"]) == ("shadowed", True)
    assert "hand_over" in quick("jobs", "history", "report").stdout
    assert "has passed" in quick("shadow", "--hand-over", "report", "--at", "2020-01-01T00:00:00Z", code=2).stderr
    assert "not in shadow" in quick("shadow", "--hand-over", "daily", code=2).stderr
    both = quick("shadow", "--hand-over", "--back", "report", code=2).stderr
    assert "exclude each other" in both
    assert "leave it out, or the names" in quick("shadow", "--hand-over", "--all", "report", code=2).stderr
    quick("shadow", "--back", "daily")
    refused = quick("shadow", "--hand-over", "report", "daily", "--at", at, code=2).stderr
    assert "default/report: no worker serves" in refused, "all are named, not only the first"
    assert "default/daily: no worker serves" in refused
    for wrong in (["--hand-over"], ["--back"], ["--anyway"], ["--at", at], ["--hand-over", "report", "--at", "soon"]):
        quick("shadow", *wrong, code=2)


def test_all_that_are_the_same_are_handed_over(quick: Folder) -> None:
    now = middle()
    quick.write("jobs.yaml", JOBS)
    quick("apply", "-f", "jobs.yaml", shift_s=now - 60)
    quick("shadow", "--back", "daily", shift_s=now - 60)
    quick("ping", "report", "--start", shift_s=now)
    plan(quick, now)
    assert [each["verdict"] for each in quick.json("shadow", shift_s=now)["jobs"]] == ["nothing yet", "same"]
    refused = quick("shadow", "--hand-over", "--all", code=2, shift_s=now).stderr
    assert "default/report is not handed over" in refused
    alive(quick, {"default": 1})
    said = quick("shadow", "--hand-over", "--all", shift_s=now).stdout
    assert "default/report: handed over, at" in said
    assert "daily" not in said
    assert "--until T -- COMMAND" in said

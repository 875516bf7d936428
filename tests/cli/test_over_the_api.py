"""The same commands, asked of a database and of the API of a real server: the same documents, words and exit codes."""

import json
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fleetcron import Client
from tests.cli.folder import Folder, InThisProcess

JOBS = """
calendars:
  - {name: holidays, tenant: acme, holidays: ["2030-12-24"]}
jobs:
  - {name: ok, schedule: {cron: "0 2 1 1 *", timezone: Europe/Berlin}, run: {command: [printf, "one\\ntwo\\n"]}}
  - {name: bad, schedule: {every: 300d}, run: {command: ["false"]}, retry: {max_attempts: 1}, type: breaks}
  - {name: nightly, tenant: acme, schedule: {cron: "0 2 1 1 *"}, run: {command: ["true"]}, pool: reports,
     calendars: [{name: holidays}]}
  - {name: twin-1, schedule: {cron: "30 4 1 1 *"}, run: {command: ["true"]}, pool: nobody}
  - {name: twin-2, schedule: {cron: "30 4 1 1 *"}, run: {command: ["true"]}, pool: nobody}
"""
# what is another instant or another number each time, or says who asked
MOVING = re.compile(
    r"20\d\d-\d\d-\d\d[T ][0-9:.]+(Z|[+-]\d\d:\d\d)|\b\d+ms\b|\+?\d+(\.\d+)?s\b|\b(in )?\d+[smhd]\b( ago)?|now"
)


class Fleet:
    """`fleet.database(...)` and `fleet.api(...)` are the two ways to call the same command."""

    def __init__(self, folder: Folder, url: str, key: str) -> None:
        self.folder, self.url, self.key = folder, url, key

    def database(self, *words: str, **more: Any) -> Any:
        return self.folder(*words, **more)

    def api(self, *words: str, **more: Any) -> Any:
        return self.folder(*words, **{"FLEETCRON_API_URL": self.url, "FLEETCRON_API_KEY": self.key, **more})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """A node with all roles; one run has succeeded, one is dead."""
    folder = Folder(tmp_path_factory.mktemp("fleet"))
    folder.write("jobs.yaml", JOBS)
    folder("apply", "-f", "jobs.yaml")
    key = folder.json("keys", "create", "ann", "--role", "admin")["key"]
    with folder.serving("--listen", "127.0.0.1:0", FLEETCRON_NODE__ROLES="scheduler,worker,api") as node:
        url = re.findall(r"http://\S+", node.until("the API listens on"))[0]
        with Client(url, key=key) as client:
            for name in ("ok", "bad"):
                client.runs.wait(client.jobs.trigger(name)["run_id"], timeout=60)
            client.holds.switch("type", "breaks", "looked at", percent=50)
            client.tenants.set("acme", {"weight": 3, "max_jobs": 5})
        yield folder.path, url, key


@pytest.fixture
def fleet(served: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fleet:
    path, url, key = served
    return Fleet(InThisProcess(path, monkeypatch, capsys), url, key)


LOOKS = """
jobs; jobs --tenant acme; jobs --limit 2; jobs --limit 2 --after default/ok; jobs --text TWIN; jobs --pool reports
jobs --state paused; jobs --type breaks; jobs show ok; jobs show acme/nightly; jobs history ok; jobs export ok
export; export --full --tenant acme
runs; runs --job ok; runs --state dead; runs --planned --limit 1; runs --from 1h --to 2099-01-01; runs show 1
runs show 2; runs log 1; runs log 1 --attempt 1; runs log 2; runs log 1 --follow; runs why 1
why 1; why 2; why ok@2030-01-01T02:00:00Z; why ok@2031-01-01T01:00:00Z
dead; dead --job bad; dead --type nothing; dead show 2; dead replay --all --dry-run
dead discard --all --dry-run --reason x; ledger; ledger --job ok; events --limit 3; events --job ok --kind job_created
tenants; tenants show acme; pools; holds; keys; keys --role admin; nodes; shards; top --once; top --once --limit 1
jobs backfill ok --from 2025-01-01 --to 2026-01-02 --dry-run; runs cancel --job ok --dry-run
"""
MISTAKES = """
jobs show okk; jobs pause nothing; jobs history okk; jobs trigger okk; runs show 99999; runs log 99999; runs --job okk
runs cancel --job okk; why 99999; why okk@2030-01-01; dead --job okk; export okk; tenants show acmee
runs log 1 --attempt 9
tenants set acme --weight 0; pools reset nothing; release tenant acme --percent 5; hold tenant acmee --reason x
keys revoke nobody --reason x; keys create ann --role viewer; keys create BAD! --role viewer
keys create w --role worker
"""


def commands(block: str) -> list[list[str]]:
    return [line.split() for line in re.split(r"[;\n]", block) if line.strip()]


def moving(document: Any) -> Any:
    """Without what has moved between two looks: leases are renewed, nodes and keys are seen again."""
    if isinstance(document, dict):
        gone = ("now", "seen_at", "expires_at", "clock_ahead_ms", "last_used_at", "at" if "now" in document else "")
        return {name: moving(value) for name, value in document.items() if name not in gone}
    return [moving(each) for each in document] if isinstance(document, list) else document


def test_every_look_is_the_same_document_and_the_same_words(fleet: Fleet) -> None:
    drawn: set[tuple[str, ...]] = set()
    for words in commands(LOOKS):
        if "log" in words:
            assert fleet.api(*words, "--json").stdout == fleet.database(*words, "--json").stdout, words
        else:
            here, there = fleet.database(*words, "--json").json, fleet.api(*words, "--json").json
            assert moving(there) == moving(here), words
        if (command := tuple(words[:2] if words[1:] and words[1].isalpha() else words[:1])) in drawn:
            continue
        drawn.add(command)
        here, there = fleet.database(*words), fleet.api(*words)
        assert MOVING.sub("T", there.stdout).split() == MOVING.sub("T", here.stdout).split(), words
        assert there.stderr == here.stderr, words
    assert "one\ntwo\n" in fleet.api("runs", "log", "1").stdout


def same(told: Any) -> str:
    """Without names, numbers and instants of their own, and without who did it."""
    text = json.dumps(told, sort_keys=True)
    text = re.sub(r"twin-\d|[0-9a-f]{8}-[0-9a-f-]{27}|\d{13}|20\d\d-[^\"]+|fck_\w+", "X", text)
    return re.sub(r'"(run_id|key_id|key|by|created_by|revoked_by)": [^,}]+|manual:\d+', "Y", text)


def test_every_change_is_the_same_on_twins(fleet: Fleet) -> None:
    """What is done to one twin through the database is done to the other through the API, and said alike."""
    calls = (fleet.database, "twin-1"), (fleet.api, "twin-2")

    def alike(line: str, code: int = 0, **more: Any) -> list[Any]:
        told = []
        for call, twin in calls:
            mine = {name: value[twin] if isinstance(value, dict) else value for name, value in more.items()}
            words = [word.format(twin=twin, **mine) for word in line.split()]
            told.append(call(*words, "--json", code=code).json)
        assert same(told[0]) == same(told[1]), line
        return told

    alike("jobs pause {twin} --on-resume latest")
    alike("jobs pause {twin}")
    alike("jobs resume {twin} --missed skip")
    made = alike("jobs trigger {twin} --key k-{twin}")
    again = alike("jobs trigger {twin} --key k-{twin}")
    assert [each["created"] for each in (*made, *again)] == [True, True, False, False]
    crossed = [calls[1][0]("jobs", "trigger", "twin-1", "--key", "k-twin-1", "--json").json]
    crossed.append(calls[0][0]("jobs", "trigger", "twin-2", "--key", "k-twin-2", "--json").json)
    assert crossed == again  # the key is the run's: it does not matter who asks, nor where
    runs = {"twin-1": made[0]["run_id"], "twin-2": made[1]["run_id"]}
    alike("runs cancel {run} --reason enough", run=runs)
    alike("runs cancel 999999", code=1)
    alike("runs replay {run}", run=runs)
    alike("runs cancel --job {twin} --yes")
    alike("jobs backfill {twin} --from 2025-01-01 --to 2026-01-02")
    alike("runs cancel --job {twin} --kind backfill --yes")
    alike("dead replay --job {twin}")
    alike("tenants set t-{twin} --weight 2 --rate 10/s")
    alike("tenants reset t-{twin}")
    alike("pools set p-{twin} --slots 3 --per-type export=2")
    alike("pools reset p-{twin}")
    held = [
        [call(*line.split(), "--json").json for line in (
            "hold pool nobody --reason r --for 2h", "hold pool nobody --reason r2 --percent 10", "release pool nobody",
            "slow type breaks --attempts 1 --reason slow", "release type breaks --percent 75", "release type breaks",
        )]
        for call, _ in calls
    ]  # fmt: skip
    assert same(held[0][:3]) == same(held[1][:3])
    assert [each[4]["after"]["percent"] for each in held] == [75, 75]
    keys = alike("keys create k-{twin} --role viewer --expires 1d --tenant acme")
    assert keys[1]["key"].startswith("fck_")
    alike("keys revoke acme/k-{twin} --reason done")
    alike("jobs cancel {twin}")
    alike("jobs delete {twin}")
    dead = fleet.api("dead", "replay", "2", "--json").json
    assert dead["runs"][0]["done"] == "replayed"


FILE = """
calendars: [{{name: c, tenant: {twin}, holidays: ["2030-12-24"]}}]
jobs:
  - {{name: load, tenant: {twin}, schedule: {{cron: "0 {hour} * * *", timezone: Europe/Berlin}}, run: {{command: [x]}}}}
"""
MORE = """
  - {{name: report, tenant: {twin}, schedule: {{cron: "30 9 * * 1"}}, run: {{command: [x]}}, depends_on: [load],
     calendars: [{{name: c}}]}}
  - {{name: once, tenant: {twin}, schedule: {{every: 1h}}, run: {{python: "shop.jobs:f"}}, pool: nobody}}
"""


def test_files_are_planned_and_applied_alike(fleet: Fleet) -> None:
    """First both ways what writes nothing, on one file; then each twin has a file of its own."""
    calls = (fleet.database, "files-1"), (fleet.api, "files-2")
    manager = ("--managed-by", "shop-{twin}", "--prune", "delete")

    def write(hour: int, more: str) -> None:
        for _, twin in calls:
            fleet.folder.write(f"{twin}.yaml", (FILE + more).format(twin=twin, hour=hour))

    def words(verb: str, twin: str, options: tuple[str, ...]) -> list[str]:
        return [verb, f"{twin}.yaml", *(each.format(twin=twin) for each in options)]

    def alike(verb: str, *options: str, code: int = 0) -> Any:
        looks = [call(*words(verb, "files-1", options), code=code) for call, _ in calls] if verb == "plan" else []
        assert len({MOVING.sub("T", look.stdout) + look.stderr for look in looks}) < 2, options
        told = [call(*words(verb, twin, options), "--json", code=code).json for call, twin in calls]
        assert re.sub(r"files-\d", "X", same(told[0])) == re.sub(r"files-\d", "X", same(told[1])), (verb, options)
        return told[1]

    write(2, MORE)
    assert [job["change"] for job in alike("plan", code=2)["jobs"]] == ["+", "+", "+"]
    assert alike("apply", "--dry-run")["counts"]["created"] == 3
    assert alike("apply", *manager, "--yes")["counts"]["created"] == 3
    alike("plan", *manager)
    write(3, "")
    plan = alike("plan", *manager, code=2)
    assert [job["change"] for job in plan["jobs"]] == ["~", "-", "-"]
    assert plan["jobs"][0]["ticks"]["words"]
    refused = [call(*words("apply", twin, manager), "--json", code=2).stderr for call, twin in calls]
    assert "--json asks nobody" in refused[0]
    assert refused[0] == refused[1]
    assert alike("apply", *manager, "--yes")["counts"] == {
        "created": 0, "changed": 1, "unchanged": 0, "refused": 0, "deleted": 2,
    }  # fmt: skip
    write(99, "")
    mistakes = [
        call(verb, "files-1.yaml", code=code).stderr for verb, code in (("apply", 2), ("plan", 1)) for call, _ in calls
    ]
    assert len(set(mistakes)) == 1
    assert "files-1.yaml:4:46: /jobs/0/schedule/cron" in mistakes[0]
    fleet.folder.write("shop_app.py", APP)
    for call, twin in calls:
        app = ("--app", "shop_app:app")
        for word in {"files-1": ("created", "unchanged"), "files-2": ("unchanged", "unchanged")}[twin]:
            assert call("apply", *app, "--json", PYTHONPATH=".").json["counts"][word] == 1
        call("plan", *app)


APP = """
from fleetcron import Fleetcron

app = Fleetcron(name="shop-app")


@app.job(every="1h")
def sell():
    pass
"""


def test_many_jobs_are_sent_in_parts(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is in the order of the files, whatever depends on what; and what came in another part is not gone."""
    job = "{{name: {name}, tenant: parts, schedule: {{every: 90d}}, run: {{command: [x]}}, depends_on: [{needs}]}}"
    names = ["a", "b", "c", "d", "e"]

    def applied(names: Sequence[str], *more: str) -> Any:
        lines = [
            job.format(name=name, needs=names[at + 1] if at + 1 < len(names) else "") for at, name in enumerate(names)
        ]
        fleet.folder.write("parts.yaml", "jobs: [" + ", ".join(lines) + "]")
        return fleet.api("apply", "parts.yaml", "--managed-by", "parts", "--yes", "--json", *more).json

    monkeypatch.setattr("fleetcron.cli.parts.MOST_JOBS", 2)
    made = applied(names, "--prune")
    assert [(each["name"], each["done"]) for each in made["jobs"]] == [(name, "created") for name in names]
    fewer = applied(names[:-1], "--prune", "delete")
    assert [(each["name"], each["done"]) for each in fewer["jobs"]][2:] == [
        ("c", "unchanged"), ("d", "changed"), ("e", "deleted"),
    ]  # fmt: skip
    monkeypatch.setattr("fleetcron.cli.parts.REHEARSED", 3)
    for command, code in (("plan",), 1), (("apply", "--dry-run"), 2):
        refused = fleet.api(*command, "parts.yaml", code=code).stderr
        assert "4 jobs (0 MiB) are too many to be rehearsed" in refused
        assert "apply sends any number" in refused
    assert applied(names[:1], "--prune", "delete")["counts"] == {
        "created": 0,
        "changed": 1,
        "unchanged": 0,
        "refused": 0,
        "deleted": 3,
    }


def test_a_look_starts_fast_both_ways() -> None:
    """Neither a list nor the client loads what takes longer than everything else: measured in bench/startup.py."""
    looks = "import fleetcron.cli.jobs, fleetcron.cli.show, fleetcron.cli.runs, fleetcron.client.blocking, sys"
    heavy = "print([name for name in ('pydantic', 'aiohttp', 'fastapi') if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", f"{looks}\n{heavy}"], check=True, capture_output=True, text=True)
    assert said.stdout == "[]\n"


def test_mistakes_are_told_alike(fleet: Fleet) -> None:
    """The same words and exit codes, whoever found out."""
    hidden = re.compile(r"by the key \w+")
    for words in commands(MISTAKES):
        here, there = fleet.database(*words, code=2), fleet.api(*words, code=2)
        assert hidden.sub("", there.stderr) == hidden.sub("", here.stderr), words


def test_a_ping_never_keeps_its_command(fleet: Fleet, tmp_path: Path) -> None:
    """The same words and exit codes both ways; whatever the API says, or does not say, the command has run."""
    fleet.folder.write("shadow.yaml", "jobs: [{name: old, schedule: {every: 300d}, run: {command: [x]}, shadow: true}]")
    fleet.api("apply", "-f", "shadow.yaml")
    pinger = fleet.api("keys", "create", "cron1", "--role", "ping", "--json").json["key"]
    for words, code in (
        ("old", 0), ("old --exit-code 7 --duration 90s --host web1 --id x", 7), ("old --start --id y", 0),
        ("old -- true", 0), ("old -- sh -c kill\t-9\t$$", 137), ("old -- no-such-program", 127), ("ok", 1),
        ("oldd", 2), ("oldd -q", 2), ("oldd -- true", 0),
        ("old --host \x07", 2), ("old --until 2020-01-01T00:00:00Z -- touch late", 0),
    ):  # fmt: skip
        line = ["ping", *(word.replace("\t", " ") for word in words.split(" "))]
        here, there = fleet.database(*line, code=code), fleet.api(*line, code=code)
        assert (there.stdout, there.stderr) == (here.stdout, here.stderr), words
        if "oldd" not in words:
            assert fleet.api(*line, code=code, FLEETCRON_API_KEY=pinger).stderr == here.stderr, words
    assert "there is no job oldd" in fleet.api("ping", "oldd", code=2, FLEETCRON_API_KEY=pinger).stderr
    fleet.api("ping", "old", "--id", "z", "--host", "web9", "--duration", "90s", "--exit-code", "3", code=3)
    with closing(sqlite3.connect(fleet.folder.path / "fleetcron.db")) as noted:
        [[*row]] = noted.execute("SELECT host, exit_code, finished_ms - started_ms FROM pings WHERE ping_id = 'z'")
    assert row == ["web9", 3, 90_000]
    silent = socket.create_server(("127.0.0.1", 0))
    hangs = f"http://127.0.0.1:{silent.getsockname()[1]}"
    for said, wrong in (
        ("onnection refused", {"FLEETCRON_API_URL": "http://127.0.0.1:9"}),
        ("is a database", {"FLEETCRON_API_URL": "sqlite:///fleetcron.db"}),
        ("key", {"FLEETCRON_API_KEY": "fck_wrong"}),
        ("cannot be read", {"FLEETCRON_API_KEY": "", "FLEETCRON_API_KEY_FILE": "nowhere"}),
    ):
        told = fleet.api("ping", "old", "--", "sh", "-c", f"echo ran >> {tmp_path}/log; exit 5", code=5, **wrong)
        assert told.stdout == ""
        assert told.stderr.count("\n") == told.stderr.count("lost: ") == 1, "once for its start and its end"
        assert said in told.stderr, told.stderr
        assert fleet.api("ping", "old", "-q", "--", "true", **wrong).stderr == ""
    # whoever knows only the API imports lines that ping it; the key is for the environment of the crontab
    fleet.folder.write("tab", "# old\n0 2 * * * /srv/old\n")
    said = fleet.api("import", "crontab", "tab", "--shadow", "--pings", "new", "-o", "old.yaml").stdout
    assert "the lines name the API and no key; each ping needs a key of the role ping" in said
    assert f"ping --api {fleet.url} old --" in (fleet.folder.path / "new" / "tab").read_text()
    named = {"FLEETCRON_DATABASE_URL": "sqlite:///fleetcron.db"}
    fleet.api("import", "crontab", "tab", "--shadow", "--pings", "other", "-o", "old.yaml", **named)
    assert "ping --database sqlite:///" in (fleet.folder.path / "other" / "tab").read_text()
    # the real command: it leaves although a thread of it still waits for an answer
    env = {"FLEETCRON_API_URL": hangs, "FLEETCRON_API_KEY": fleet.key}
    line = ["ping", "old", "--timeout", "200ms", "--", "sh", "-c", f"echo ran >> {tmp_path}/log; exit 5"]
    told = Folder(fleet.folder.path)(*line, code=5, **env)
    assert "the API has not answered within 0.2 s" in told.stderr
    silent.close()
    assert (tmp_path / "log").read_text() == "ran\n" * 5


SHADOWS = "jobs: [{}]"
SHADOW = '{{name: {}, schedule: {{cron: "0 {} * * *", timezone: Asia/Tokyo}}, run: {{command: [x]}}, shadow: true}}'
DAY_S = 86_400


def test_jobs_in_shadow_are_compared_and_handed_over_alike(fleet: Fleet) -> None:
    """Jobs of three days ago, whose ticks come at the other end of the day; `same-*` have all their pings."""
    hour, now_s = (time.gmtime().tm_hour + 12 + 9) % 24, time.time()
    twins = ("same-1", "same-2", "misses", "silent")
    fleet.folder.write("shadows.yaml", SHADOWS.format(", ".join(SHADOW.format(name, hour) for name in twins)))
    fleet.database("apply", "-f", "shadows.yaml", shift_s=-3 * DAY_S)
    with Client(fleet.url, key=fleet.key) as client:
        while sum(client.shadow.get(name)["ticks"] for name in twins) < 3 * len(twins):
            pass  # the node plans them
    tick_s = (int(now_s) // DAY_S) * DAY_S + (hour - 9) % 24 * 3600
    ticks = [at for at in range(tick_s - 4 * DAY_S, tick_s + DAY_S, DAY_S) if now_s - 3 * DAY_S < at < now_s]
    assert len(ticks) == 3
    for name, which in (("same-1", ticks), ("same-2", ticks), ("misses", ticks[1:])):
        for at in which:
            fleet.database("ping", name, "--start", "--host", "web1", shift_s=int(at - now_s) + 30)
    fleet.database("ping", "misses", "--host", "web2", "--exit-code", "4", code=4)

    def alike(*words: str, code: int = 0) -> Any:
        here, there = fleet.database(*words, "--json", code=code), fleet.api(*words, "--json", code=code)
        gone = ("since", "until", "done", "revision")
        told = [
            [{k: v for k, v in job.items() if k not in gone} for job in each.json["jobs"]] for each in (here, there)
        ]
        assert told[0] == told[1], words
        drawn = [call(*words, code=code) for call in (fleet.database, fleet.api)]
        assert drawn[0].stdout == drawn[1].stdout, words
        return there.json["jobs"]

    def refused(line: str) -> str:
        here, there = fleet.database(*line.split(), code=2), fleet.api(*line.split(), code=2)
        assert here.stderr == there.stderr, line
        return str(there.stderr)

    found = {each["name"]: each for each in alike("shadow", "--since", "5d", code=1)}
    assert [found[name]["verdict"] for name in twins] == ["same", "same", "differs", "differs"]
    assert [found["misses"][kind] for kind in ("missed", "doubled", "failed")] == [1, 1, 1]
    assert found["same-1"]["timezone"] == "Asia/Tokyo"
    assert "+09:00" in fleet.api("shadow", "misses", "default/silent", code=1).stdout
    alike("shadow", "misses", "silent", "misses", code=1)
    alike("shadow", "same-1")
    assert "Name the instant yourself" in refused("shadow --hand-over silent")
    assert "is not in shadow" in refused("shadow --hand-over ok")
    assert "has passed" in refused("shadow --hand-over silent --at 2020-01-01T00:00:00Z")
    assert "did you mean default/silent" in refused("shadow silnt")
    assert "did you mean default/silent" in refused("shadow --back silnt")
    assert "is not an instant" in refused("shadow --hand-over silent --at soon")
    piped = '{name: piped, schedule: {every: 1d}, run: {command: "a | b", shell: true}, shadow: true}'
    fleet.folder.write("piped.yaml", f"jobs: [{piped}]")
    fleet.database("apply", "-f", "piped.yaml")
    assert "this worker runs no shell" in refused("shadow --hand-over piped --at 2099-01-01T00:00:00Z")
    fleet.api("jobs", "delete", "piped")
    # each way one of the twins; then, repeated, both say of either that it is done
    first = fleet.database("shadow", "--hand-over", "same-1").stdout
    assert fleet.api("shadow", "--hand-over", "same-2").stdout == first.replace("same-1", "same-2")
    alike("shadow", "--hand-over", "same-1", "same-2")
    alike("shadow", "--hand-over", "silent", "--at", "2099-01-01T00:00:00Z")
    assert "key:" in fleet.api("jobs", "history", "same-2").stdout, "who did it"
    back = fleet.database("shadow", "--back", "same-1").stdout
    assert fleet.api("shadow", "--back", "same-2").stdout == back.replace("same-1", "same-2")
    assert {each["name"] for each in fleet.api("shadow", "--hand-over", "--all", "--json").json["jobs"]} == {
        "same-1", "same-2"
    }  # fmt: skip
    assert [each["done"] for each in alike("shadow", "--hand-over", "--all")] == ["unchanged"] * 2
    viewer = fleet.database("keys", "create", "sue", "--role", "viewer", "--json").json["key"]
    told = fleet.api("shadow", "--back", "same-1", code=2, FLEETCRON_API_KEY=viewer)
    assert "takes the role operator" in told.stderr


def test_what_only_an_api_can_say(fleet: Fleet) -> None:
    viewer = fleet.database("keys", "create", "eve", "--role", "viewer", "--tenant", "acme", "--json").json["key"]

    def wrong(*words: str, code: int = 2, **env: str) -> str:
        return str(fleet.api(*words, code=code, **env).stderr)

    assert "set FLEETCRON_API_KEY" in wrong("jobs", FLEETCRON_API_KEY="")
    assert "takes the role operator" in wrong("jobs", "pause", "acme/nightly", FLEETCRON_API_KEY=viewer)
    # who names no tenant means that of the key
    assert fleet.api("jobs", "show", "nightly", FLEETCRON_API_KEY=viewer).stdout.startswith("acme/nightly")
    assert "there is no job nightl of tenant acme; did you mean acme/nightly?" in wrong(
        "runs", "--job", "nightl", FLEETCRON_API_KEY=viewer
    )
    assert "belongs to the whole fleet" in wrong("nodes", FLEETCRON_API_KEY=viewer)
    assert "connection refused; is it" in wrong("jobs", code=3, FLEETCRON_API_URL="http://127.0.0.1:9").replace(
        "\nhint:", ";"
    )
    assert "is a database" in wrong("jobs", FLEETCRON_API_URL="sqlite:///x.db")
    assert "names the key that asks" in wrong("jobs", "pause", "ok", "--by", "me")
    assert "exclude each other" in fleet.database("jobs", "--api", fleet.url, "--database", "x", code=2).stderr
    before = sorted(path.name for path in fleet.folder.path.iterdir())
    for line in (
        "migrate", "simulate --past", "shards --set 4", "tenants signing-key acme", "serve", "scheduler", "worker",
        "api", "import crontab tab --apply",
    ):  # fmt: skip
        assert "works on the database itself" in fleet.database(*line.split(), "--api", fleet.url, code=2).stderr, line
        told = wrong(*line.split(), code=2).replace("\n", " ")
        assert "FLEETCRON_API_URL names an API: say --database URL, or set FLEETCRON_DATABASE_URL" in told, line
    assert "works on the database itself" in fleet.database("config", "show", "--api", fleet.url, code=2).stderr
    assert "store.url" in fleet.api("config", "show").stdout, "which is about this machine, and about no database"
    assert sorted(path.name for path in fleet.folder.path.iterdir()) == before
    # who names both means the database where only that will do
    assert fleet.api("migrate", "--status", FLEETCRON_DATABASE_URL="sqlite:///fleetcron.db").stdout
    # Tab asks the API too, and whoever gets no answer sees none
    asked = {"_FLEETCRON_COMPLETE": "bash_complete", "COMP_WORDS": "fleetcron jobs show o", "COMP_CWORD": "3"}
    assert "ok" in fleet.api(**asked).stdout
    assert "ok" not in fleet.api(**asked, FLEETCRON_API_URL="http://127.0.0.1:9").stdout
    # the flag before the name of the subcommand, a key in a file, and the database that a flag names
    (fleet.folder.path / "key").write_text(fleet.key)
    told = fleet.database("jobs", "--api", fleet.url, "show", "ok", FLEETCRON_API_KEY_FILE="key")
    assert told.stdout.startswith("default/ok")
    assert "acme/nightly" in fleet.api("jobs", "--database", "sqlite:///fleetcron.db", FLEETCRON_API_KEY="").stdout

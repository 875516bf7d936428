"""`fleetcron import`: a plan, YAML that `apply` reads, and nothing applied unless asked."""

import sqlite3
from pathlib import Path

import yaml

from tests.cli.folder import Folder, alive

DEBIAN = Path(__file__).parents[1] / "imports" / "debian"
TAB = "MAILTO=ops\n# Nightly report\n30 2 * * * /srv/report --full >/dev/null 2>&1\n@reboot /srv/boot\n"
MANIFEST = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: hello}
spec:
  schedule: "*/5 * * * *"
  jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b, command: [date]}]}}}}
"""
APP = """\
from celery import Celery
from celery.schedules import crontab
print("an app may print")
app = Celery("proj", broker="memory://")
app.conf.timezone = "Europe/London"
app.conf.beat_schedule = {"monday": {"task": "proj.add", "schedule": crontab(hour=7, minute=30, day_of_week=1)}}


@app.on_after_configure.connect
def more(sender, **kwargs):
    sender.add_periodic_task(10.0, add.s(1), name="ten")


@app.task
def add(x):
    return x
"""


def test_a_crontab_to_yaml_that_apply_reads(quick: Folder) -> None:
    quick.write("tab", TAB)
    done = quick("import", "crontab", "tab", "--tz", "Europe/Berlin", code=1)
    document = yaml.safe_load(done.stdout)
    assert [job["name"] for job in document["jobs"]] == ["nightly-report"]
    assert document["jobs"][0]["run"] == {"command": ["/srv/report", "--full"]}
    assert "# tab:3" in done.stdout
    assert "LEFT OUT" in done.stderr
    assert "tab:4" in done.stderr
    assert "MAILTO=ops" in done.stderr
    assert not (quick.path / "fleetcron.db").exists()
    quick.write("jobs.yaml", done.stdout)
    assert "1 created" in quick("apply", "-f", "jobs.yaml").stdout


def test_debian(quick: Folder) -> None:
    found = quick.json("import", "crontab", str(DEBIAN / "cron.d"), "--tz", "UTC")
    assert len(found["jobs"]) == 7
    assert {each["origin"].rpartition("/")[2] for each in found["jobs"]} >= {"mdadm:12", "sysstat:6"}
    system = quick(
        "import", "crontab", "--system", str(DEBIAN / "crontab"), "--tz", "UTC", "--pool-by-user", "-o", "j.yaml"
    )
    assert "4 jobs" in system.stdout
    jobs = yaml.safe_load((quick.path / "j.yaml").read_text())["jobs"]
    assert {job["pool"] for job in jobs} == {"root"}
    assert quick.json("apply", "-f", "j.yaml")["counts"]["created"] == 4


def test_standard_input_and_this_machines_zone(quick: Folder) -> None:
    found = quick.json("import", "crontab", "-", given="0 1 * * * a\n", TZ="Asia/Tokyo")
    away = quick("import", "crontab", "-", "-o", "no/dir/x.yaml", given="0 1 * * * a\n", code=2).stderr
    assert "error: no/dir/x.yaml: cannot be written: No such file or directory" in away
    assert "the folder has to be there" in away
    assert found["jobs"][0]["job"]["schedule"] == {"cron": "0 1 * * *", "timezone": "Asia/Tokyo"}
    assert found["findings"][0]["text"].endswith("as TZ says")


def test_apply_asks_first(quick: Folder) -> None:
    quick.write("tab", "0 1 * * * a\n")
    words = ("import", "crontab", "tab", "--tz", "UTC", "--apply")
    assert "Nothing was applied" in quick(*words, given="n\n").stdout
    assert not (quick.path / "fleetcron.db").exists()
    assert "1 created" in quick(*words, given="y\n").stdout
    assert "1 unchanged" in quick(*words, "--yes").stdout
    quick(*words, "--json", code=2)
    assert quick.json(*words, "--yes")["applied"][0]["done"] == "unchanged"


def test_what_all_imports_share(quick: Folder) -> None:
    quick.write("tab", "0 1 * * * a\n")
    words = ("--tenant", "acme", "--pool", "old", "--prefix", "web1-", "--hand-over", "2099-01-15T08:00:00+01:00")
    job = quick.json("import", "crontab", "tab", "--tz", "UTC", *words, "--defaults")["jobs"][0]["job"]
    assert (job["tenant"], job["pool"], job["name"]) == ("acme", "old", "web1-a")
    assert job["starts_at"] == "2099-01-15T07:00:00Z"
    assert "overlap" not in job
    assert "--hand-over" in quick("import", "crontab", "tab", "--hand-over", "tomorrow", code=2).stderr
    assert "has passed" in quick("import", "crontab", "tab", "--hand-over", "2020-01-01T00:00:00Z", code=2).stderr
    assert "cannot be read" in quick("import", "crontab", "nowhere", code=2).stderr
    quick("import", "crontab", "tab", "--anyway", code=2)
    assert "Mars" in quick("import", "crontab", "tab", "--tz", "Mars/Base", code=2).stderr


def test_an_import_with_a_hand_over_needs_workers_that_can_run_it(quick: Folder) -> None:
    """At the instant cron ends: what nobody could run then would be lost."""
    quick.write("tab", "0 1 * * * a | b\n0 2 * * * c\n")
    words = ("import", "crontab", "tab", "--tz", "UTC", "--hand-over", "2099-01-15T08:00:00Z", "--apply", "--yes")
    said = quick(*words, code=2).stderr
    assert "these would not run: a, c: no scheduler is at work, so nobody plans its ticks" in said
    assert "(--anyway" in said
    alive(quick, {"default": 2}, {"shell": "no shell here"})
    assert (
        "these would not run: a: no worker of the pool default can run a text for the shell"
        in quick(*words, code=2).stderr
    )
    assert "There is no job yet" in quick("jobs").stdout
    assert "warning no worker of the pool default can run a text for the shell" in quick(*words, "--anyway").stdout
    alive(quick, {"default": 1, "more": 1})
    assert "2 unchanged" in quick(*words).stdout


def test_k8s(quick: Folder) -> None:
    quick.write("a.yaml", MANIFEST)
    assert quick.json("import", "k8s", "a.yaml")["jobs"][0]["job"]["schedule"] == {"cron": "*/5 * * * *"}
    assert len(quick.json("import", "k8s", ".")["jobs"]) == 1
    assert quick.json("import", "k8s", "-", given=MANIFEST)["jobs"][0]["origin"] == "standard input:1 (hello)"
    words = quick.json("import", "k8s", "-", given=MANIFEST.replace("[date]", "[echo, true, 1]"))
    assert words["jobs"][0]["job"]["run"]["command"] == ["echo", "true", "1"]
    quick.write("bad.yaml", "a: [")
    assert "not YAML" in quick("import", "k8s", "bad.yaml", code=2).stderr


def test_celery(quick: Folder) -> None:
    quick.write("proj.py", APP)
    found = quick.json("import", "celery", "proj:app")
    assert {each["job"]["name"]: each["job"]["schedule"] for each in found["jobs"]} == {
        "monday": {"cron": "30 7 * * 1", "timezone": "Europe/London"},
        "ten": {"every": "10s"},
    }
    read = quick.json("import", "celery", "proj.py", code=1)
    assert [each["entry"] for each in read["findings"] if each["level"] == "left_out"] == ["ten"]
    assert [each["job"]["name"] for each in read["jobs"]] == ["monday"]
    assert read["jobs"][0]["job"]["run"] == {"command": ["celery", "-A", "proj", "call", "proj.add"]}
    quick.write("plain.py", "x = 1")
    for wrong, said in (("nowhere:app", "nowhere"), ("plain:nothing", "nothing"), ("a b", "neither an app")):
        assert said in quick("import", "celery", wrong, code=2).stderr
    quick.write("ends.py", "import os; os._exit(3)")
    assert "ended with 3" in quick("import", "celery", "ends:app", code=2).stderr
    assert "cannot be started" in quick("import", "celery", "proj:app", "--python", "/nowhere/python", code=2).stderr


def test_apscheduler(quick: Folder) -> None:
    with sqlite3.connect(quick.path / "jobs.db") as database:
        database.execute("CREATE TABLE apscheduler_jobs (id TEXT PRIMARY KEY, next_run_time REAL, job_state BLOB)")
        database.execute("INSERT INTO apscheduler_jobs VALUES ('bad', 1.0, x'63')")
    database.close()
    assert quick.json("import", "apscheduler", "jobs.db", code=1)["findings"][0]["entry"] == "bad"
    assert quick.json("import", "apscheduler", "sqlite:///jobs.db", code=1)["jobs"] == []
    assert "no such table" in quick("import", "apscheduler", "jobs.db", "--table", "x", code=2).stderr
    assert "not the name" in quick("import", "apscheduler", "jobs.db", "--table", "x; drop", code=2).stderr
    assert "export_jobs" in quick("import", "apscheduler", "postgresql://h/d", code=2).stderr
    quick.write("e.json", '{"version": 1, "jobs": []}')
    assert "0 jobs" in quick("import", "apscheduler", "e.json").stderr


def test_an_import_changes_only_what_it_has_made_from_the_same_file(quick: Folder) -> None:
    """Two machines with a `backup` each: the second one does not get the first one's."""
    for host, command in (("a", "/srv/a/backup"), ("b", "/srv/b/backup")):
        (quick.path / host).mkdir()
        quick.write(f"{host}/tab", f"0 1 * * * {command}\n")
    words = ("--tz", "UTC", "--apply")
    assert "1 created" in quick("import", "crontab", "a/tab", *words, "--yes").stdout
    owner = quick.json("jobs", "show", "backup")["definition"]["managed_by"]
    assert owner.startswith("import:")
    assert owner.endswith("/a/tab")
    said = quick("import", "crontab", "b/tab", *words, code=1).stdout
    assert "Apply them?" not in said, "there is nothing to ask about"
    assert f"refused default/backup: there is another job of this name already ({owner})" in said
    assert "--prefix NAME-" in said
    assert f"apply that with --managed-by {owner}" in said
    assert "1 refused" in said
    assert quick.json("jobs", "show", "backup")["definition"]["run"]["command"] == ["/srv/a/backup"]
    assert "1 created" in quick("import", "crontab", "b/tab", *words, "--yes", "--prefix", "b-").stdout
    # its own file may change, and what would change is shown before the question
    quick.write("a/tab", "# comes and goes\n\n0 3 * * * /srv/a/backup\n")
    asked = quick("import", "crontab", "a/tab", *words, given="n\n").stdout
    assert "schedule.cron: 0 1 * * * -> 0 3 * * *" in asked
    assert "Apply them? 1 to be changed" in asked
    assert "1 changed" in quick("import", "crontab", "a/tab", *words, "--yes").stdout
    # a file of it says whose it is, too
    quick("import", "crontab", "b/tab", "--tz", "UTC", "-o", "b.yaml")
    assert f"{owner} manages it" in quick("apply", "b.yaml", code=1).stdout
    assert "1 changed" in quick("apply", "b.yaml", "--dry-run", "--managed-by", owner).stdout
    # who writes a file is told before it is applied
    assert "the store has a job of this name" in quick("import", "crontab", "b/tab", "--tz", "UTC").stderr
    assert "store has" not in quick("import", "crontab", "a/tab", "--tz", "UTC").stderr


def test_what_nobody_has_marked_stays_as_it_is(quick: Folder) -> None:
    quick.write("tab", "0 1 * * * /srv/backup\n")
    quick("import", "crontab", "tab", "--tz", "UTC", "-o", "jobs.yaml")
    quick("apply", "-f", "jobs.yaml")
    words = ("import", "crontab", "tab", "--tz", "UTC", "--apply", "--yes")
    assert "1 unchanged" in quick(*words).stdout, "the very same job"
    assert quick.json("jobs", "show", "backup")["definition"]["managed_by"] is None
    quick.write("tab", "0 2 * * * /srv/backup\n")
    assert quick.json(*words, code=1)["applied"][0]["done"] == "refused"


def test_a_shadow_of_a_job_that_is_live_is_refused(quick: Folder) -> None:
    """It would run here and under the old scheduler; and no line of it pings."""
    quick.write("tab", "0 1 * * * /srv/backup\n0 2 * * * /srv/report\n")
    quick("import", "crontab", "tab", "--tz", "UTC", "--apply", "--yes")
    quick("jobs", "delete", "report")
    words = ("import", "crontab", "tab", "--tz", "UTC", "--shadow", "--apply", "--pings", "new")
    assert "nothing written" in quick(*words, given="n\n").stdout
    assert not (quick.path / "new").exists()
    said = quick(*words, "--yes", code=1).stdout
    assert "refused default/backup: is live already" in said
    assert "Written: new/tab." in said
    assert "Next:" not in said
    lines = (quick.path / "new" / "tab").read_text().splitlines()
    assert lines[0] == "0 1 * * * /srv/backup"
    assert " ping " in lines[1]
    assert quick.json("jobs", "show", "report")["definition"]["shadow"] is True


def test_nothing_is_no_import(quick: Folder) -> None:
    """A pipe whose first half has failed, or the wrong folder."""
    (quick.path / "empty").mkdir()
    quick.write("blank", "\n")
    for kind, given in (("k8s", "# nothing\n---\n"), ("crontab", "\n")):
        said = quick("import", kind, "-", code=2, given=given).stderr
        assert "standard input: is empty: there is nothing to import" in said
        assert "empty: is empty" in quick("import", kind, "empty", "blank", code=2).stderr
    assert "0 jobs" in quick("import", "crontab", "-", given="# only a comment\n").stderr


def test_a_folder_goes_on_past_what_cannot_be_read(quick: Folder) -> None:
    (quick.path / "cron.d" / "sub").mkdir(parents=True)
    quick.write("cron.d/fine", "0 1 * * * root /srv/fine\n")
    (quick.path / "cron.d" / "latin").write_bytes("0 1 * * * root /srv/ü\n".encode("latin-1"))
    found = quick.json("import", "crontab", "cron.d", "--tz", "UTC", code=1)
    assert [each["job"]["name"] for each in found["jobs"]] == ["fine"]
    findings = {each["file"]: (each["level"], each["text"]) for each in found["findings"]}
    assert findings["cron.d/latin"] == ("left_out", "is not UTF-8")
    assert findings["cron.d/sub"] == ("note", "cron does not look into folders: skipped")

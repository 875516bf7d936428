"""Crontabs: every form of line, and what is said about it."""

import subprocess
from pathlib import Path

import pytest

from fleetcron.imports.commands import split_input
from fleetcron.imports.crontab_jobs import CrontabFile, add_crontab, read_by_cron
from fleetcron.imports.plan import Plan, Wish
from fleetcron.model.reading import read_definitions
from tests.imports.jobs import crontab, has, said

DEBIAN = Path(__file__).parent / "debian"


def only(text: str, **options) -> dict:
    plan = crontab(text, **options)
    assert len(plan.jobs) == 1, said(plan)
    return plan.jobs[0].document


def test_the_crontab_of_debian() -> None:
    plan = Plan()
    add_crontab(plan, CrontabFile("/etc/crontab", (DEBIAN / "crontab").read_text(), True, "Europe/Berlin"))
    assert [(job.name, job.origin.line) for job in plan.jobs] == [
        ("cron.hourly", 18), ("cron.daily", 19), ("cron.weekly", 20), ("cron.monthly", 21),
    ]  # fmt: skip
    hourly, daily = plan.jobs[0].document, plan.jobs[1].document
    assert hourly["run"] == {"command": ["run-parts", "--report", "/etc/cron.hourly"], "cwd": "/"}
    assert hourly["schedule"] == {"cron": "17 * * * *", "timezone": "Europe/Berlin"}
    assert daily["run"]["shell"] is True
    assert daily["run"]["command"].startswith("test -x /usr/sbin/anacron || {")
    texts = said(plan)
    assert has(texts, "PATH", "/usr/local/sbin")
    assert has(texts, "runs as root")
    assert has(texts, "anacron runs these scripts itself")
    assert len(read_definitions(plan.as_document()).jobs) == 4
    assert {job.document["start_deadline"] for job in plan.jobs} == {"5m"}
    [late] = [each for each in plan.findings if "expires" in each.text]
    assert (late.level, late.origin and str(late.origin)) == ("note", "/etc/crontab")


def test_the_folder_of_debian() -> None:
    plan = Plan()
    names = sorted(path.name for path in (DEBIAN / "cron.d").iterdir() if read_by_cron(path.name))
    for name in names:
        add_crontab(plan, CrontabFile(name, (DEBIAN / "cron.d" / name).read_text(), True, "UTC", name))
    assert [job.name for job in plan.jobs] == [
        "anacron", "certbot", "e2scrub_all", "e2scrub_all-2", "mdadm", "sysstat", "sysstat-2",
    ]  # fmt: skip
    documents = {job.name: job.document for job in plan.jobs}
    assert "$(date +%d)" in documents["mdadm"]["run"]["command"], "an escaped percent sign is one"
    assert documents["mdadm"]["description"].startswith("By default, run at 00:57 on every Sunday")
    assert documents["sysstat"]["schedule"]["cron"] == "5-55/10 * * * *"
    assert len(read_definitions(plan.as_document()).jobs) == 7


def test_variables_hold_from_their_line_on() -> None:
    plan = crontab("0 1 * * * a\nKIND=full\nHOME=/srv\nTZ=Asia/Tokyo\n0 2 * * * b\nKIND='x y'\n0 3 * * * c\n")
    runs = [job.document["run"] for job in plan.jobs]
    assert runs[0] == {"command": ["a"]}
    assert runs[1] == {"command": ["b"], "env": {"KIND": "full", "HOME": "/srv", "TZ": "Asia/Tokyo"}, "cwd": "/srv"}
    assert runs[2]["env"]["KIND"] == "x y"
    assert all("timezone" not in job.document["schedule"] for job in plan.jobs), (
        "TZ is the command's, not the schedule's"
    )


def test_variables_that_a_job_may_not_set_are_said() -> None:
    plan = crontab("PATH=/opt/bin\nPYTHONPATH=/x\n0 1 * * * a\n")
    assert "env" not in plan.jobs[0].document["run"]
    assert has(said(plan, "differs"), "may not set PATH", "PATH=/opt/bin")
    assert has(said(plan, "differs"), "may not set PYTHONPATH")


def test_a_zone_of_the_schedule() -> None:
    plan = crontab("CRON_TZ=America/New_York\n30 2 * * * a\n", timezone="Europe/Berlin")
    assert plan.jobs[0].document["schedule"] == {"cron": "30 2 * * *", "timezone": "America/New_York"}
    assert has(said(plan, "differs"), "CRON_TZ", "Debian")
    assert has(said(crontab("CRON_TZ=Mars/Base\n0 1 * * * a\n"), "left_out"), "Mars/Base")


def test_input_after_a_percent_sign() -> None:
    assert split_input(r"date +\%d") == ("date +%d", None)
    # a backslash that is escaped escapes nothing, but in the input
    assert split_input(r"echo \\% | cat\\%b") == (r"echo \\", " | cat\\%b\n")
    assert split_input(r"echo \\\%") == (r"echo \\%", None)
    assert split_input("mail x%Dear all,%%bye") == ("mail x", "Dear all,\n\nbye\n")
    run = only("0 1 * * * cat -n%it's%two\n")["run"]
    assert run["shell"] is True
    fed = subprocess.run(["/bin/sh", "-c", run["command"]], capture_output=True, text=True, check=True).stdout
    assert fed == "     1\tit's\n     2\ttwo\n"
    assert run["command"] == "printf '%s\\n' 'it'\"'\"'s' two | {\ncat -n\n}"


@pytest.mark.parametrize(
    ("line", "fed"),
    [("cat%a%%b%", "a\n\nb\n"), ("cat%", ""), ("cat%%", "\n"), ("cat%a  ", "a  \n"), ("cat%1\\%2%3", "1%2\n3\n")],
)
@pytest.mark.parametrize("system", [False, True])
def test_input_is_what_cron_sends(line: str, fed: str, system: bool) -> None:
    run = only(f"0 1 * * * {'root ' if system else ''}{line}\n", system=system)["run"]
    given = subprocess.run(["/bin/sh", "-c", run["command"]], input="{}", capture_output=True, text=True, check=True)
    assert given.stdout == fed


@pytest.mark.parametrize("macro", ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"])
def test_macros(macro: str) -> None:
    assert only(f"{macro} a\n")["schedule"] == {"cron": macro}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("@reboot /bin/start", "a schedule has no boot"),
        ("@Daily a", "does not know @Daily"),
        ("5/15 * * * * a", "perhaps 5-59/15"),
        ("* 22-3 * * * a", "never runs"),
        ("* * 30 2 * a", "never fires"),
        ("61 * * * * a", "'61' is not a value"),
        ("* * * * monday a", "'monday' is not a value"),
        ("* * L * * a", "'L' is not a value"),
        ("*/0 * * * * a", "step of 0"),
        ("1,,2 * * * * a", "does not read ''"),
        ("hello", "neither a setting nor an entry"),
        ("0 0 * * * %input", "no command in front of the %"),
    ],
)
def test_what_is_left_out_says_why_and_where(line: str, reason: str) -> None:
    plan = crontab(f"# one\n{line}\n0 1 * * * fine\n")
    assert [job.name for job in plan.jobs] == ["fine"]
    left = [each for each in plan.findings if each.level == "left_out"]
    assert [str(each.origin) for each in left] == ["tab:2"]
    assert reason in str(left[0])


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("0 0 * * 7", "0 0 * * 7"),
        ("0 0 * * sun", "0 0 * * SUN"),
        ("0 0 * jan-mar mon,wed", "0 0 * JAN-MAR MON,WED"),
        ("0 0 1,15 * 5", "0 0 1,15 * 5"),
        ("0 0 */2 * mon", "0 0 */2 * MON"),
        ("*/90 * * * *", "0 * * * *"),
        ("0 */48 * * *", "0 0 * * *"),
        ("50-10,5 * * * *", "5 * * * *"),
    ],
)
def test_expressions(written: str, ours: str) -> None:
    assert only(f"{written} a\n")["schedule"]["cron"].upper() == ours


def test_chance() -> None:
    plan = crontab("RANDOM_DELAY=45\n0~30 ~ * * * a\n")
    document = plan.jobs[0].document
    assert document["schedule"]["cron"].upper() == "H(0-30) H * * *"
    assert (document["jitter"], document["start_deadline"]) == ("45m", "50m")
    assert has(said(plan, "differs"), "chooses anew")


def test_cron_never_waits_retries_or_catches_up_and_so_do_its_jobs() -> None:
    document = only("0 1 * * * a\n")
    assert (document["overlap"], document["misfire"], document["retry"]) == ("allow", "skip", {"max_attempts": 1})
    plain = only("0 1 * * * a\n", wish=Wish(defaults=True))
    assert not {"overlap", "misfire", "retry", "timeout", "start_deadline"} & plain.keys()
    assert not has(said(crontab("0 1 * * * a\n", wish=Wish(defaults=True))), "expires")


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("/bin/a >/dev/null 2>&1", {"command": ["/bin/a"]}),
        ("/bin/a > /dev/null", {"command": ["/bin/a"]}),
        ("cd /srv/shop && ./report --all 2>&1", {"command": ["./report", "--all"], "cwd": "/srv/shop"}),
        ("A=1 /bin/a", {"command": ["/bin/a"], "env": {"A": "1"}}),
        ("PATH=/x /bin/a", {"command": "PATH=/x /bin/a", "shell": True}),
        ("cd srv && ./a", {"command": "cd srv && ./a", "shell": True}),
        ("a >/tmp/log", {"command": "a >/tmp/log", "shell": True}),
        ("echo ' >/dev/null 2>&1", {"command": "echo ' >/dev/null 2>&1", "shell": True}),
    ],
)
def test_commands(line: str, run: dict) -> None:
    assert only(f"0 1 * * * {line}\n")["run"] == run


def test_another_shell_goes_through_the_shell_that_the_operator_allows() -> None:
    run = only("SHELL=/bin/bash\n0 1 * * * a <(b) '$'\n")["run"]
    assert run == {"command": "exec /bin/bash -c 'a <(b) '\"'\"'$'\"'\"''", "shell": True}
    assert only("SHELL=/bin/bash\n0 1 * * * a b\n")["run"] == {"command": ["a", "b"]}


def test_names() -> None:
    plan = crontab(
        "# Nightly report (EU)\n0 1 * * * /bin/a\n\n"
        "# this line and\n# this one are a long story\n0 1 * * * nice -n 19 python3 /srv/clean_up.py\n"
        "0 1 * * * test -x /bin/z && /bin/z -q\n0 1 * * * /bin/z\n# 0 5 * * * old thing\n0 2 * * * [ -d /x ]\n"
    )
    assert [job.name for job in plan.jobs] == ["nightly-report-eu", "clean_up", "z", "z-2", "job"]
    assert has(said(plan, "note"), "commented out", "line 9")


def test_users() -> None:
    text = "0 1 * * * www-data /bin/a\n"
    plan = Plan()
    add_crontab(plan, CrontabFile("tab", text, True, "UTC"), pool_by_user=True)
    assert plan.jobs[0].document["pool"] == "www-data"
    assert has(said(crontab(text)), "begins with a user", "--system")
    assert has(said(crontab("0 1 * * * root\n", system=True), "left_out"), "no command after the user")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("/usr/bin/flock -n /tmp/l /srv/poll.sh", "poll"),
        ("chronic timeout -k 5 30m flock -w 5 /x/y /usr/bin/real --a", "real"),
        ("env A=1 ionice -c 2 -n7 nice -n 19 sudo -u bob /srv/q", "q"),
        ("FOO=zz nice -n 19 /srv/nice", "nice"),
    ],
)
def test_names_behind_other_programs(line: str, name: str) -> None:
    assert only(f"0 1 * * * {line}\n")["name"] == name


@pytest.mark.parametrize("line", ["/srv/nouser arg", "/srv/nouser", "$HOME/x y", "(cd x; y)"])
def test_a_line_of_the_user_form_is_no_user_of_the_system_form(line: str) -> None:
    plan = crontab(f"0 1 * * * {line}\n0 2 * * * root fine\n", system=True)
    assert [job.name for job in plan.jobs] == ["fine"]
    assert has(said(plan, "left_out"), f"'{line.split()[0]}' is no user name", "leave out --system")


@pytest.mark.parametrize(
    ("line", "differs"),
    [
        ("./rel.sh", "./rel.sh is looked for"),
        ("A=1 bin/report", "bin/report is looked for"),
        ("/srv/a >> cron.log 2>&1", "cron.log is looked for"),
        ("/srv/a && ../b", "../b is looked for"),
        ("/srv/a $HOME/x", "it uses HOME"),
        (". ~/.profile; a", "it uses HOME"),
        ("/srv/a ${LOGNAME}", "it uses LOGNAME"),
        ("cd /srv && ./a | b", None),
        ("/srv/a 2>&1 | awk '$1 > 5'", None),
        ("/srv/a --to=b/c >/dev/null </dev/null", None),
    ],
)
def test_the_folder_and_the_variables_that_cron_begins_with(line: str, differs: str | None) -> None:
    texts = said(crontab(f"0 1 * * * {line}\n"), "differs")
    if differs is None:
        assert not has(texts, "looked for")
        assert not has(texts, "it uses")
    else:
        assert has(texts, differs, "HOME=FOLDER")
        assert not has(said(crontab(f"HOME=/h\nLOGNAME=me\n0 1 * * * {line}\n"), "differs"), differs)


def test_lines_of_windows_are_said_once() -> None:
    plan = crontab("# a\r\n0 1 * * * /srv/a x\r\n0 2 * * * /srv/b\r\n", wish=Wish(shadow=True))
    assert [job.document["run"]["command"] for job in plan.jobs] == [["/srv/a", "x"], ["/srv/b"]]
    assert sum("CR LF" in text for text in said(plan, "differs")) == 1
    assert all(line.endswith("\r") for line in plan.pinged[0].lines.values())


def test_twice_the_same_and_a_line_without_end() -> None:
    plan = crontab("0 1 * * * /bin/a\n0 1 * * * /bin/a")
    assert has(said(plan, "note"), "the same as line 1")
    assert has(said(plan, "differs"), "no line end")


def test_mail_is_said_once() -> None:
    plan = crontab("MAILTO=ops@example.com\n0 1 * * * a\n0 2 * * * b\n")
    assert sum("MAILTO" in text for text in said(plan)) == 1


def test_a_hand_over_bounds_every_job() -> None:
    document = only("0 1 * * * a\n", wish=Wish(hand_over_ms=1_800_000_000_000))
    assert document["starts_at"] == "2027-01-15T08:00:00Z"

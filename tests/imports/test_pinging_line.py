"""Lines that ping already: what pinging.py writes is taken apart again, and so is what people write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.cli.ping import command as ping
from fleetcron.imports.dialect import Unreadable
from fleetcron.imports.pinging_line import FLAGS, PingingLine, read_pinging
from fleetcron.imports.plan import Wish
from tests.imports.jobs import crontab, has, said


@pytest.mark.parametrize(
    ("line", "name", "command"),
    [
        ("fleetcron ping report -- /srv/report --full", "report", "/srv/report --full"),
        ("/usr/bin/fleetcron ping --config /etc/f.toml a -- \"$SHELL\" -c 'x | y'", "a", "x | y"),
        ("/opt/py/bin/python3.11 -m fleetcron ping --api http://h a --until T -- $SHELL -c x", "a", "x"),
        ("'/my dir/fleetcron' ping acme/a -q --host=h -- x", "acme/a", "x"),
        ("cd /srv && fleetcron ping a -- ./x", "a", "cd /srv && ./x"),
        ("cd /srv && fleetcron ping a -- \"$SHELL\" -c 'x; y'", "a", "cd /srv && /bin/sh -c 'x; y'"),
        ("FLEETCRON_API_KEY_FILE=/k DATABASE_URL=u A=1 nice fleetcron ping a -- x", "a",
         "FLEETCRON_API_KEY_FILE=/k DATABASE_URL=u A=1 nice x"),
        ("A=1 FLEETCRON_API_KEY_FILE=/k fleetcron ping a -- x", "a", "A=1 x"),
        ("fleetcron ping a -- \"$SHELL\" -c \"x $HOME\"", "a", "/bin/sh -c \"x $HOME\""),
        ("fleetcron ping a -- \"$SHELL\" -c 'x' >> log 2>&1", "a", "/bin/sh -c 'x' >> log 2>&1"),
        ("fleetcron ping a -- x >> log && y", "a", "x >> log && y"),
        ("fleetcron ping a -- date +\\%s%in%put", "a", "date +\\%s%in%put"),
        ("/srv/report --full; fleetcron ping report --exit-code $?", "report", "/srv/report --full"),
        ("x; y ; /usr/bin/fleetcron ping --exit-code=\"$?\" a -q >/dev/null 2>&1", "a", "x; y"),
        ("x -- 'y z' && fleetcron ping a", "a", "x -- 'y z'"),
        ("x; FLEETCRON_API_URL=http://h fleetcron ping a --exit-code $?%in", "a", "x%in"),
    ],
)  # fmt: skip
def test_a_ping_is_taken_off(line: str, name: str, command: str) -> None:
    found = read_pinging(line, "/bin/sh")
    assert found == PingingLine(name, command, ends="--until" in line)


@pytest.mark.parametrize("line", ["x", "fleetcron apply -f ping", "notfleetcron ping a -- x", "x fleetcron pings a"])
def test_others_do_not_ping(line: str) -> None:
    assert read_pinging(line, "/bin/sh") is None


@pytest.mark.parametrize(
    "line",
    [
        "fleetcron ping a",
        "x; fleetcron ping a --exit-code $rc",
        "x; fleetcron ping a --start",
        "fleetcron ping a --start; x; fleetcron ping a",
        "fleetcron ping a -- fleetcron ping b -- x",
        "bash -c 'fleetcron ping a -- x'",
        "bash -c 'x; fleetcron ping a'",
        "fleetcron ping -- x",
        "fleetcron ping a b -- x",
        'fleetcron ping "$NAME" -- x',
        "x || fleetcron ping a",
    ],
)
def test_what_cannot_be_taken_apart_is_left_out(line: str) -> None:
    with pytest.raises(Unreadable, match="pings already"):
        read_pinging(line, "/bin/sh")
    plan = crontab(f"0 1 * * * {line}\n0 2 * * * y\n", wish=Wish(shadow=True))
    assert [job.name for job in plan.jobs] == ["y"]
    assert has(said(plan, "left_out"), "it pings already", "fleetcron ping NAME -- COMMAND")
    assert [*plan.pinged[0].lines] == [2]


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1).filter(lambda text: "fleet" not in text))
def test_what_the_import_writes_it_reads(text: str) -> None:
    """Whatever the command is, with its input."""
    written = crontab(f"0 1 * * * {text}\n", wish=Wish(shadow=True))
    if not written.jobs:
        return
    again = crontab(written.pinged[0].text, wish=Wish(shadow=True))
    assert again.pinged[0].text == written.pinged[0].text
    assert [job.document for job in again.jobs] == [job.document for job in written.jobs]


def test_names_that_are_pinged_are_kept_for_their_lines() -> None:
    plan = crontab("# a\n0 1 * * * x\n0 2 * * * fleetcron ping a -- y\n0 3 * * * fleetcron ping a -- z\n")
    assert [(job.name, job.document["run"]["command"]) for job in plan.jobs] == [("a-2", ["x"]), ("a", ["y"])]
    assert has(said(plan, "left_out"), "it pings a, as another line does")


def test_a_tenant_and_an_instant() -> None:
    text = "0 1 * * * fleetcron ping beta/a -- x\n0 2 * * * fleetcron ping a --until T -- y\n"
    plan = crontab(text, wish=Wish(tenant="acme", shadow=True, hand_over_ms=1_800_000_000_000, prefix="p-"))
    assert [(job.document["tenant"], job.name) for job in plan.jobs] == [("beta", "a"), ("acme", "a")]
    assert has(said(plan, "note"), "pings beta/a already", "put --until 2027-01-15T08:00:00Z in front of its --")
    assert not has(said(plan, "note"), "pings a already", "--until")
    assert has(said(plan, "differs"), "pings a and names no tenant", "write acme/a")


def test_the_flags_are_those_of_the_command() -> None:
    flags = {name for one in ping.params if getattr(one, "is_flag", False) for name in one.opts}
    assert flags == FLAGS


def test_a_line_that_would_be_too_long_for_cron_stays_as_it_is() -> None:
    """998 characters, says crontab(5) of Debian."""
    text = f"0 1 * * * /srv/long {'x' * 960}\n0 2 * * * /srv/short\n"
    plan = crontab(text, wish=Wish(shadow=True))
    assert [*plan.pinged[0].lines] == [2]
    assert plan.pinged[0].text.split("\n")[0] == text.split("\n")[0]
    assert [job.name for job in plan.jobs] == ["long", "short"]
    assert has(said(plan, "differs"), "cron takes 998", "into a script")
    room = 998 - len('fleetcron ping a -- "$SHELL" -c ')
    for size, fits in ((room, True), (room + 1, False)):
        pinged = crontab(f"# a\n0 1 * * * {'x' * size}\n", wish=Wish(shadow=True)).pinged[0]
        assert bool(pinged.lines) == fits

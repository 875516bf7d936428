"""fleetcron.testing: a fleet on virtual time, as users' tests see it."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from fleetcron.errors import DefinitionError, FleetcronError, RefusedError, ScheduleError
from fleetcron.testing import World, world
from tests.rehearsal import shop

NEW_YORK = "America/New_York"


def yaml(*jobs: str) -> str:
    return "jobs:\n" + "\n".join(f"  - {{{job}}}" for job in jobs)


def job(name: str, schedule: str, *more: str) -> str:
    return ", ".join([f"name: {name}", f"schedule: {{{schedule}}}", 'run: {command: ["true"]}', *more])


# -- clock changes


def test_the_day_that_has_no_half_past_two() -> None:
    with world(shop.app, tz=NEW_YORK, start="2027-03-13 12:00") as w:
        w.run_until("2027-03-15 12:00")
        assert w.runs("nightly-report") == ["2027-03-14 03:00", "2027-03-15 02:30"]
        assert w.runs("nightly-report") == ["03:00 succeeded", "02:30 succeeded"]
        assert [each.result for each in w.runs("nightly-report")] == [{"rows": 42}] * 2
        assert w.runs("nightly-report")[0] == datetime(2027, 3, 14, 7, tzinfo=UTC)


def test_a_time_that_does_not_exist_is_no_time_to_wait_for() -> None:
    with world(shop.app, tz=NEW_YORK, start="2027-03-13 12:00") as w:
        told = "2027-03-14 02:30 does not exist in America/New_York"
        for act in ("w.run_until('2027-03-14 02:30')", "w.outage('2027-03-14 02:30', '2027-03-14 05:00')"):
            assert told in refused(act, w)
            assert "write 2027-03-14 03:00" in refused(act, w)
        assert w.now == datetime(2027, 3, 13, 17, tzinfo=UTC)
        w.run_until("2027-03-14 01:00")
        # not a day later, which nobody has meant
        for act in ("w.run_until('02:30')", "w.outage('02:30', '05:00')", "w.outage('01:30', '2:30')"):
            assert f"{told}: the clock goes forward" in refused(act, w)
            assert "write 2027-03-14 03:00" in refused(act, w)
        w.run_until("03:00")
        w.run_until("02:30")  # that day has had its gap
        assert w.now == datetime(2027, 3, 15, 6, 30, tzinfo=UTC)
        assert "succeeded" in w.why("nightly-report", "2027-03-14 02:30")  # a tick may be meant for it
    with pytest.raises(ScheduleError, match="does not exist"):
        world(shop.app, tz=NEW_YORK, start="2027-03-14 02:30")


def test_the_hour_that_comes_twice() -> None:
    text = yaml(job("often", f'cron: "*/30 * * * *", timezone: {NEW_YORK}'))
    with world(text, tz=NEW_YORK, start="2027-11-07 00:45") as w:
        w.run_until("2027-11-07 02:10")
        assert w.runs("often") == ["01:00-04:00", "01:30-04:00", "01:00-05:00", "01:30-05:00", "02:00-05:00"]


def test_a_tick_at_the_very_start_is_one() -> None:
    with world(yaml(job("daily", 'cron: "0 2 * * *"')), start="2027-01-04 02:00") as w:
        assert w.runs("daily") == []
        w.run_for("1s")
        assert w.runs("daily") == ["2027-01-04 02:00 succeeded"]


def test_no_tick_before_the_start_is_one() -> None:
    text = yaml(job("daily", 'cron: "0 2 * * *"'), job("often", 'cron: "* * * * * *"'), job("interval", "every: 2s"))
    with world(text, start="2027-01-04 02:00:00.700") as w:
        w.run_until("02:00:03")
        assert w.runs("daily") == []
        assert w.runs("often") == ["02:00:01", "02:00:02", "02:00:03"]
        assert w.runs("interval") == ["02:00:02"]


def test_what_is_changed_before_the_start_is_changed_at_the_start() -> None:
    with world(yaml(job("a", 'cron: "0 * * * *"'), job("b", 'cron: "0 * * * *"'))) as w:
        w.pause("b")
        w.apply(yaml(job("a", 'cron: "*/30 * * * *"'), job("new", "every: 20m")))
        w.run_until("01:00")
        assert w.runs("a") == ["00:00", "00:30", "01:00"]
        assert w.runs("b") == []
        assert w.runs("new") == ["00:20", "00:40", "01:00"]


# -- overlaps


def test_a_tick_waits_for_a_triggered_run_and_those_after_it_are_skipped() -> None:
    """As docs/learn/overlap.md counts it."""
    with world(yaml(job("a", 'cron: "* * * * *"', "overlap: skip")), start="2027-01-04 10:00:30") as w:
        w.handler("a", seconds=210)
        w.trigger("a")
        w.run_until("10:08")
        ticks = [run for run in w.runs("a") if run.kind == "tick"]
        assert ticks[0] == "10:01 succeeded"
        assert (ticks[0].started or w.now).strftime("%H:%M") == "10:04"
        assert ticks[1:-1] == [f"10:0{minute} skipped" for minute in range(2, 8)]
        assert ticks[-1] == "10:08 running"


# -- outages


@pytest.mark.parametrize(
    ("misfire", "runs", "ledger"),
    [
        ("skip", ["01:00", "06:00"], ["02:00 to 05:00 skipped"]),
        ("latest", ["01:00", "05:00", "06:00"], ["02:00 to 04:00 skipped"]),
        ("all", ["01:00", "02:00", "03:00", "04:00", "05:00", "06:00"], []),
    ],
)
def test_an_outage_under_each_misfire_policy(misfire: str, runs: list[str], ledger: list[str]) -> None:
    text = yaml(job("hourly", 'cron: "0 * * * *"', f"misfire: {misfire}", "overlap: queue"))
    with world(text, start="2027-01-04 00:30") as w:
        w.outage("01:30", "05:30")
        w.run_until("06:30")
        assert w.runs("hourly") == runs
        assert w.ledger("hourly") == ledger
        late = [each for each in w.runs("hourly") if each.lane == "catchup"]
        assert all(each.started and each.started.strftime("%H:%M") == "05:30" for each in late)
        assert len(late) == len(runs) - 2


def test_an_outage_beyond_the_window_is_missed_and_why_says_so() -> None:
    text = yaml(job("hourly", 'cron: "0 * * * *"', "misfire: {policy: all, window: 2h}"))
    with world(text, start="2027-01-04 00:30") as w:
        w.outage("01:30", "06:30")
        w.run_until("06:45")
        assert w.runs("hourly") == ["01:00", "05:00", "06:00"]
        assert w.ledger("hourly") == ["02:00 to 04:00 missed"]
        assert "older than the misfire window" in w.why("hourly", "02:00")
        assert w.why("hourly", "05:00").startswith("succeeded")


def test_why_of_a_tick_of_which_nothing_is_written() -> None:
    """As the command says it."""
    with world(yaml(job("hourly", 'cron: "0 * * * *"'))) as w:
        w.run_until("00:30")
        w.pause("hourly", on_resume="all")
        w.run_until("05:30")
        assert w.why("hourly", "2027-01-04 02:00").startswith("the job is paused: what becomes of this tick is decided")
        assert "is no tick of default/hourly; the nearest are" in w.why("hourly", "2027-01-04 02:17")
        w.resume("hourly")
        w.outage("05:40", "09:00")
        w.run_until("08:30")
        assert w.why("hourly", "2027-01-04 08:00").startswith("not planned yet, though it is due")
        assert w.why("hourly", "2027-01-04 23:00").startswith("not planned yet: a scheduler makes its run")


def test_who_is_queued_begins_when_the_one_before_has_ended() -> None:
    """To the millisecond, also when a worker has heard nothing from its database for a quarter of an hour."""
    with world(yaml(job("slow", 'cron: "*/10 * * * *"', "overlap: queue", "timeout: 1h"))) as w:
        w.handler("slow", seconds="15m")
        w.run_until("06:00")
        over = [run for run in w.runs("slow") if run.finished is not None]
        assert len(over) == 24  # the last one at this very instant
        assert all(b.started and a.finished and b.started >= a.finished for a, b in pairwise(over))


def test_nobody_begins_in_an_outage() -> None:
    with world(yaml(job("often", 'cron: "* * * * *"', "overlap: queue", "misfire: all")), slots=1) as w:
        w.handler("often", seconds="50s")
        w.outage("01:01", "01:20")
        w.run_until("02:00")
        tries = sorted((each.started, each.finished) for run in w.runs("often") for each in run.tries if each.finished)
        begun = [begin.strftime("%H:%M") for begin, _ in tries]
        assert not [each for each in begun if "01:01" <= each < "01:20"]
        assert "01:20" in begun


@pytest.mark.parametrize("start", ["1960-01-01 00:00", "9999-12-31 12:00"])
def test_a_time_that_nobody_can_play(start: str) -> None:
    with pytest.raises(RefusedError, match=r"from 1970-01-02T00:00:00Z to 9999-12-30T00:00:00Z"):
        world(yaml(job("a", 'cron: "0 * * * *"')), start=start)
    last = world(yaml(job("a", 'cron: "0 * * * *"')), start="9999-12-29 23:00")
    with last, pytest.raises(RefusedError, match="9999-12-30"):
        last.run_for("2h")


def test_a_time_of_day_asks_why_about_the_latest_day() -> None:
    """Of runs and of ticks without one together."""
    with world(yaml(job("daily", 'cron: "0 2 * * *"', "retry: {max_attempts: 1}", "misfire: skip"))) as w:
        w.handler("daily", fails=True)
        w.run_until("2027-01-05 01:00")
        assert w.why("daily", "02:00").startswith("dead")
        w.outage("2027-01-05 01:30", "2027-01-05 06:00")
        w.run_until("2027-01-05 07:00")
        assert "dead" not in w.why("daily", "02:00")
        w.handler("daily")
        w.run_until("2027-01-07 01:00")
        assert w.why("daily", "02:00").startswith("succeeded at 2027-01-06")


def test_what_ran_when_the_fleet_died_is_tried_again() -> None:
    """Half a minute after the end: nobody else may take it before the lease is known to be over."""
    with world(yaml(job("long", 'cron: "0 1 * * *"', "timeout: 3h")), start="2027-01-04 00:30") as w:
        w.handler("long", seconds="2h")
        w.outage("02:00", "02:10")
        w.run_until("06:00")
        [run] = w.runs("long")
        assert run == "01:00 succeeded"
        assert [each.outcome for each in run.tries] == ["lost", "succeeded"]
        again = run.tries[1].started
        assert datetime(2027, 1, 4, 2, 10, 28, tzinfo=UTC) < again < datetime(2027, 1, 4, 2, 10, 40, tzinfo=UTC)


# -- overlap


@pytest.mark.parametrize(
    ("overlap", "lasts", "expected"),
    [
        ("skip", "14m", ["00:30 succeeded", "00:40 skipped", "00:50 succeeded", "01:00 skipped"]),
        ("queue", "14m", ["00:30 succeeded", "00:40 succeeded", "00:50 succeeded", "01:00 running"]),
        ("collapse", "25m", ["00:30 succeeded", "00:40 merged", "00:50 running", "01:00 waiting"]),
        ("allow", "14m", ["00:30 succeeded", "00:40 succeeded", "00:50 succeeded", "01:00 succeeded"]),
        ("cancel_previous", "14m", ["00:30 cancelled", "00:40 cancelled", "00:50 cancelled", "01:00 succeeded"]),
    ],
)
def test_overlap_policies(overlap: str, lasts: str, expected: list[str]) -> None:
    text = yaml(job("slow", 'cron: "*/10 * * * *"', f"overlap: {overlap}", "ends_at: 2027-01-04T01:05:00Z"))
    with world(text, start="2027-01-04 00:25") as w:
        w.handler("slow", seconds=lasts)
        w.run_until("01:18")
        assert w.runs("slow") == expected


# -- dependencies, retries, pauses


def test_dependencies_wait_and_follow_a_failure() -> None:
    text = yaml(
        job("load", 'cron: "0 * * * *"', "retry: {max_attempts: 1}"),
        job("report", 'cron: "0 * * * *"', "depends_on: [load]"),
    )
    with world(text, start="2027-01-04 00:30") as w:
        w.handler("load", seconds="5m")
        w.run_until("01:02")
        assert w.runs("report") == ["01:00 waiting"]
        assert "load" in w.why("report", "01:00")
        w.run_until("01:30")
        assert w.runs("report") == ["01:00 succeeded"]
        started = w.runs("report")[0].started
        assert started is not None
        assert started >= datetime(2027, 1, 4, 1, 5, tzinfo=UTC)
        w.handler("load", raises=ValueError("no orders"))
        w.run_until("02:30")
        assert w.runs("load")[-1] == "02:00 dead"
        assert w.runs("report")[-1] == "02:00 skipped"


def test_retries_come_when_the_rule_says() -> None:
    with world(shop.app, start="2027-01-04 11:59") as w:
        w.run_until("12:05")
        [run] = w.runs("fragile")
        assert (run.state, run.attempts) == ("succeeded", 3)
        assert [each.error for each in run.tries] == ["ConnectionError: the shop is closed"] * 2 + [None]
        moments = [each.started.replace(microsecond=0).strftime("%H:%M:%S") for each in run.tries]
        assert moments == ["12:00:00", "12:00:10", "12:01:10"]


def test_a_scripted_handler_fails_so_often_and_then_returns() -> None:
    text = yaml(job("a", 'cron: "0 1 * * *"', "retry: {max_attempts: 5, backoff: [10s], jitter: 0}"))
    with world(text, start="2027-01-04 00:30") as w:
        w.handler("a", seconds=30, fails=2, raises=OSError, returns={"ok": True})
        w.run_until("02:00")
        [run] = w.runs("a")
        assert [each.outcome for each in run.tries] == ["failed", "failed", "succeeded"]
        assert run.result == {"ok": True}
        w.handler("a", fails=True)
        w.run_until("2027-01-05 02:00")
        assert w.runs("a")[-1] == "01:00 dead"


def test_pause_resume_and_trigger() -> None:
    with world(yaml(job("hourly", 'cron: "0 * * * *"')), start="2027-01-04 00:30") as w:
        w.run_until("01:30")
        w.pause("hourly", on_resume="all")
        w.run_until("03:30")
        assert w.runs("hourly") == ["01:00"]
        by_hand = w.trigger("hourly", {"kind": "full"})
        assert (by_hand.kind, by_hand.scheduled_for.strftime("%H:%M")) == ("manual", "03:30")
        w.resume("hourly")
        w.run_until("04:30")
        assert [each.kind for each in w.runs("hourly")].count("manual") == 1
        assert [each for each in w.runs("hourly") if each.kind == "tick"] == ["01:00", "02:00", "03:00", "04:00"]


def test_a_job_is_paused_after_so_many_failures() -> None:
    text = yaml(job("bad", "every: 10m", "retry: {max_attempts: 1}", "pause_after_failures: 3"))
    with world(text, start="2027-01-04 00:00") as w:
        w.handler("bad", raises=ValueError)
        w.run_for("3h")
        assert [each.state for each in w.runs("bad")] == ["dead"] * 3


@pytest.mark.parametrize("wished_s", [None, 0, 61, 180])
def test_it_is_paused_as_soon_as_in_a_real_fleet_whenever_the_wish_comes(wished_s: int | None) -> None:
    """From the first minute on: nobody looked for ten minutes who had nothing to look for when the world began, and a
    job of every minute died nine times. `wished_s`: a deploy brings it so much later, and it counts from there. None:
    the job has it from the beginning."""
    plain = ("bad", "every: 1m", "retry: {max_attempts: 1}")
    wish = "pause_after_failures: 2"
    with world(yaml(job(*plain) if wished_s is not None else job(*plain, wish))) as w:
        w.handler("bad", fails=True)
        w.run_for(wished_s or 0)
        if wished_s is not None:
            w.apply(yaml(job(*plain, wish)))
        w.run_for("30m")
        assert [each.state for each in w.runs("bad")] == ["dead"] * ((wished_s or 0) // 60 + 2)


# -- functions that are really called


def test_functions_are_called_on_virtual_time() -> None:
    shop.seen.clear()
    with world(shop.app, start="2027-01-04 00:30") as w:
        w.run_until("01:00:30")
        assert w.runs("load-orders") == ["01:00 running"]
        w.run_until("02:30")
        first, _ = w.runs("load-orders")
        assert first.finished is not None
        assert first.finished - first.scheduled_for < timedelta(seconds=60.1)
    tick = datetime(2027, 1, 4, 1, tzinfo=UTC)
    loaded = [("loaded", tick), ("load-orders", 1), ("loaded", tick + timedelta(hours=1))]
    assert shop.seen == [("load-orders", 1), *loaded]


def test_a_timeout_ends_a_coroutine_and_a_script_may_call_the_function_after_a_while() -> None:
    shop.seen.clear()
    with world(shop.app, start="2027-01-04 00:30") as w:
        w.handler("load-orders", seconds="15m")
        w.run_until("01:20")
        [run] = w.runs("load-orders")
        assert (run.state, run.tries[0].outcome) == ("dead", "timed_out")
        w.handler("load-orders", seconds="5m", call=True)
        w.run_until("02:20")
        last = w.runs("load-orders")[-1]
        assert last.finished is not None
        assert last.finished - last.scheduled_for >= timedelta(minutes=6)
    assert shop.seen[0] == ("load-orders", 1)


def test_inside_another_event_loop() -> None:
    """Users' tests may be coroutines."""

    async def test() -> list[str]:
        with world(shop.app, start="2027-01-04 00:30") as w:
            w.run_until("01:30")
            await asyncio.sleep(0)
            w.run_until("02:30")
            return [each.state for each in w.runs("load-orders")]

    assert asyncio.run(test()) == ["succeeded", "succeeded"]


# -- the same story every time, and errors


def test_the_same_calls_give_the_same_story() -> None:
    text = yaml(job("a", "every: 7m", "retry: {max_attempts: 3}"), job("b", 'cron: "*/5 * * * *"', "overlap: queue"))

    def story() -> list[str]:
        with world(text, start="2027-01-04 00:30", slots=1) as w:
            w.handler("a", seconds="3m", fails=1)
            w.handler("b", seconds="2m")
            w.outage("02:00", "02:30")
            w.run_until("05:00")
            return [f"{each} {each.run_id} {each.started} {each.finished}" for each in w.runs()]

    assert story() == story()


def refused(act: str, w: World) -> str:
    with pytest.raises(FleetcronError) as caught:
        eval(act, {"w": w})
    return str(caught.value)


def test_mistakes_say_what_is_wrong() -> None:
    with world(yaml(job("report", 'cron: "0 * * * *"')), start="2027-01-04 10:00") as w:
        w.run_until("11:30")
        assert refused("w.runs('repot')", w) == "there is no job 'repot'; did you mean report?"
        assert "it is 2027-01-04 11:30" in refused("w.run_until('2027-01-04 11:00')", w)
        assert "is over" in refused("w.outage('2027-01-04 09:00', '12:00')", w)
        assert "ends before it begins" in refused("w.outage('13:00', '2027-01-04 12:00')", w)
        assert "is not an instant" in refused("w.run_until('soon')", w)
        assert "is not a duration" in refused("w.run_for('soon')", w)
        assert "not longer than 0" in refused("w.run_for(-5)", w)
        w.outage("13:00", "14:00")
        assert "overlap" in refused("w.outage('13:30', '15:00')", w)
        assert "fails" in refused("w.handler('report', fails=-1)", w)
        assert "such as ValueError('boom')" in refused("w.handler('report', raises='boom')", w)


def test_words_that_nobody_knows_are_refused_at_once() -> None:
    with world(yaml(job("a", "every: 15m"))) as w:
        assert "on_resume='zzz' says nothing: it is one of skip, latest, all" in refused("w.pause('a', 'zzz')", w)
        w.pause("a", on_resume="latest")
        assert "missed='zzz' says nothing" in refused("w.resume('a', missed='zzz')", w)
        w.resume("a", missed="all")
        w.run_for("1h")
        assert len(w.runs("a")) == 4


def test_jobs_that_cannot_be() -> None:
    with pytest.raises(DefinitionError, match="every"):
        world(yaml(job("a", "every: 15x")))
    with pytest.raises(DefinitionError, match="cannot be read"):
        world("no-such-file.yaml")
    with pytest.raises(DefinitionError, match="a Fleetcron app"):
        world(17)  # type: ignore[arg-type]
    for empty in ("", " "):
        with pytest.raises(DefinitionError, match="the text is empty"):
            world(empty)
    with pytest.raises(DefinitionError, match="is a folder"):
        world(Path())
    with pytest.raises(ScheduleError, match="Mars"):
        world(yaml(job("a", "every: 15m")), tz="Mars/Phobos")
    with pytest.raises(RefusedError, match="at least one worker"):
        world(yaml(job("a", "every: 15m")), workers=0)
    for slots in (0, "3", 1.5, True, {"default": "3"}):
        with pytest.raises(RefusedError, match="one slot in each pool: not"):
            world(yaml(job("a", "every: 15m")), slots=slots)  # type: ignore[arg-type]


def test_a_pool_that_no_job_is_in_is_refused_unless_it_is_one_more() -> None:
    two = yaml(job("a", "every: 15m"), job("b", "every: 15m", "pool: reports"))
    for slots in ({"defualt": 1, "reports": 1}, {"x": 1}):
        with pytest.raises(RefusedError, match=r"no job is in a pool \w+; there are: default, reports;"):
            world(two, slots=slots)
    with world(yaml(job("a", "every: 15m")), slots={"default": 1, "later": 1}) as w:
        w.apply(yaml(job("a", "every: 15m", "pool: later")))
        w.run_for("20m")
        assert w.runs("a") == ["00:15 succeeded"]


def test_no_more_than_ten_years_pass_at_once() -> None:
    with world(yaml(job("a", 'at: "2028-01-01T00:00:00Z"'))) as w:
        assert "2027-01-04 00:00 to 9999-01-01 00:00 it is longer than ten years" in refused(
            "w.run_until('9999-01-01')", w
        )
        assert "longer than ten years" in refused("w.run_for('3661d')", w)
        assert w.now == datetime(2027, 1, 4, tzinfo=UTC)


def test_a_time_of_day_to_start_at_is_that_of_the_ordinary_day() -> None:
    for tz in ("UTC", NEW_YORK):
        with world(yaml(job("a", "every: 15m")), tz=tz, start="02:30") as w:
            assert w.now.isoformat()[:16] == "2027-01-04T02:30"
        with world(yaml(job("a", "every: 15m")), tz=tz, start="00:00") as w:
            assert w.now.isoformat()[:16] == "2027-01-04T00:00"


def test_a_function_that_cannot_be_imported_is_told_before_anything_runs() -> None:
    text = "jobs: [{name: a, schedule: {every: 1h}, run: {python: 'no.such:thing'}}]"
    with world(text) as w:
        with pytest.raises(RefusedError, match=r"no\.such"):
            w.run_for("2h")
        w.handler("a")
        w.run_for("2h")
        assert [each.state for each in w.runs("a")] == ["succeeded", "succeeded"]


def test_an_interval_counts_from_the_start() -> None:
    """The jobs are made a second before it, which nobody is to see."""
    text = yaml(job("a", "every: 15m"), job("b", "every: 1h, anchor: '2027-01-01T00:20:00Z'"), job("c", "every: 1s"))
    with world(text) as w:
        w.run_for("5s")
        assert w.runs("c") == ["00:00:01", "00:00:02", "00:00:03", "00:00:04", "00:00:05"]
        w.pause("c")
        w.run_until("00:40")
        w.apply(text)  # as it was: nothing moves
        w.run_until("01:00")
        assert w.runs("a") == ["00:15", "00:30", "00:45", "01:00"]
        assert w.runs("b") == ["00:20"]
        w.apply(yaml(job("a", "every: 20m"), job("later", "every: 7m")))
        w.run_until("02:00")
        assert w.runs("a")[4:] == ["01:20", "01:40", "02:00"]
        assert w.runs("later")[:2] == ["01:07", "01:14"]
    two = 'name: a, schedule: [{every: 25m}, {cron: "%s * * * *"}], run: {command: ["true"]}'
    for minute, first in (("0", ["00:00"]), ("5", ["00:05"])):
        with world(yaml(two % minute)) as w:
            w.run_until("00:55")
            w.apply(yaml(two % minute))  # as it was: nothing moves
            w.run_until("00:59")
            assert w.runs("a") == [*first, "00:25", "00:50"]
    with world(yaml(job("a", "every: 15m", "starts_at: '2027-01-04T01:00:00Z'"))) as w:
        w.run_until("01:15")
        assert w.runs("a") == ["01:00", "01:15"]


def test_what_is_shown_can_be_compared_with() -> None:
    text = yaml(job("a", 'cron: "*/15 * * * * *"', "misfire: skip"))
    with world(text) as w:
        w.outage("00:05", "00:10")
        w.run_until("00:11")
        for each in [*w.runs("a"), *w.ledger("a")]:
            shown = repr(each).removeprefix("<a ").partition(" (")[0].removesuffix(">")
            assert each == shown
        assert "00:09:45+00:00 skipped (misfire" in repr(w.ledger("a"))
        w.trigger("a")  # at some millisecond
        [by_hand] = [each for each in w.runs("a") if each.kind == "manual"]
        assert by_hand == repr(by_hand).removeprefix("<a ").removesuffix(">")


def test_what_could_not_start_in_time_is_told_so_then() -> None:
    """Also while the only slot is taken, and nobody comes who would look."""
    text = yaml(job("long", 'cron: "0 * * * *"'), job("due", 'cron: "1 * * * *"', "start_deadline: 5m"))
    with world(text, slots=1) as w:
        w.handler("long", seconds="50m")
        w.run_until("00:05:59")
        assert w.runs("due") == ["00:01 planned"]
        w.run_for("1s")
        assert w.runs("due") == ["00:01 expired"]
        assert "could not start in time" in w.why("due", "00:01")
        w.outage("00:55", "00:56")  # others do it then
        w.run_until("01:07")
        assert w.runs("due") == ["00:01 expired", "01:01 expired"]

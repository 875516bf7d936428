"""The calm fleet of rehearsals is the ordinary one, only more patient: the same story, at a tenth of the cost."""

from dataclasses import replace

import pytest

from fleetcron.config import Config
from fleetcron.errors import RefusedError
from fleetcron.simulate import stage
from fleetcron.simulate.rehearsed import Cast
from fleetcron.testing import world

JOBS = """
jobs:
  - {name: often, schedule: {cron: "*/10 * * * *"}, run: {command: ["true"]}, misfire: latest}
  - {name: slow, schedule: {every: 25m}, run: {command: ["true"]}, overlap: queue, misfire: all}
  - {name: after, schedule: {cron: "0 * * * *"}, run: {command: ["true"]}, depends_on: [often]}
  - {name: fails, schedule: {cron: "15 * * * *"}, run: {command: ["true"]}, retry: {max_attempts: 2, backoff: [3m], jitter: 0}}
"""  # noqa: E501


def story() -> list[str]:
    with world(JOBS, start="2027-01-04 00:05", workers=2) as w:
        w.handler("often", seconds="2m")
        w.handler("slow", seconds="40m")
        w.handler("fails", seconds=30, fails=True)
        w.outage("01:00", "01:45")
        w.outage("02:20", "02:20:20")
        w.run_until("03:05")
        lines = [f"{each} {each.started and each.started.replace(second=0, microsecond=0)}" for each in w.runs()]
        return lines + [repr(each) for each in w.ledger()]


def test_patience_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calm = story()

    def ordinary(config: Config) -> Config:
        return replace(config, worker=replace(config.worker, drain_s=0))

    monkeypatch.setattr(stage, "patient", ordinary)
    assert story() == calm
    assert any("lost" in each or "after 2 attempts" in each for each in calm)


def test_an_idle_day_costs_little() -> None:
    idle = stage.Stage(Cast(lambda _: None), 1_800_000_000_000)
    idle.up()
    idle.move_to(1_800_000_000_000 + 86_400_000)
    assert idle.turns < 5_000
    idle.close()


def test_a_closed_stage_leaves_nothing_behind() -> None:
    closed = stage.Stage(Cast(lambda _: None), 1_800_000_000_000)
    closed.up()
    closed.down()
    closed.close()
    closed.close()
    with pytest.raises(RefusedError, match="closed"):
        closed.do(closed.store.shards.number())

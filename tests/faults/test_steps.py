"""kill -9 at every step boundary, then a restart: nothing is missing and nothing is there twice."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from signal import SIGKILL

import pytest

from tests.faults import truth
from tests.faults.copies import Copy, postgres_copies, sqlite_copies
from tests.faults.marks import PLANNING, STORE, marked
from tests.faults.nursery import Ended, Nursery, nursery
from tests.faults.story import CLOCK_SQL
from tests.services.guard import Guard
from tests.services.postgres import execute
from tests.soak.rounds import Soak, Tally
from tests.store.conftest import give_it_tables

MANY = 1000  # kills of the long suite, on each store
A_ROUND = 40  # lives of it that are written down together
STEPS = sorted(marked(*PLANNING, STORE))


@dataclass
class Stage:
    """A database in which one whole life was lived, as often as a test needs it."""

    name: str
    nursery: Nursery
    copy: Copy
    times: int  # how many times of a step count here; a life on PostgreSQL takes four times as long
    whole: Ended  # the second life, when nobody was killed: which steps it passes, how often

    @property
    def passed(self) -> dict[str, int]:
        return dict(self.whole.said["passed"])

    def judged(self, url: str, *faults: str) -> truth.Verdict:
        """Lives that are cut short, one after the other, and a whole one."""
        for number, fault in enumerate(faults, start=1):
            ended = live(self.nursery, url, number, fault)
            assert ended.signal == SIGKILL, f"{fault} was never reached"
        last = live(self.nursery, url, len(faults) + 1)
        return truth.judge(truth.read(url), last.said["now_ms"])

    def survives(self, url: str, *faults: str) -> truth.Verdict:
        verdict = self.judged(url, *faults)
        assert verdict.wrong == [], faults
        assert verdict.undecided == 0, faults
        assert verdict.events["run_conflict"] == 0
        return verdict


def live(cradle: Nursery, url: str, number: int, fault: str = "kill never 1") -> Ended:
    return cradle.lived(url=url, number=number, fault=fault)


@pytest.fixture(scope="module")
def cradle(guard: Guard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with nursery(guard, tmp_path_factory.mktemp("lives"), "tests.faults.story", waits=True) as found:
        yield found


@pytest.fixture(scope="module")
def sqlite_stage(cradle: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    copy = sqlite_copies(tmp_path_factory.mktemp("sqlite"), lambda url: live(cradle, url, 0))
    return stage("sqlite", cradle, copy, times=2)


@pytest.fixture(scope="module")
def postgres_stage(cradle: Nursery, postgres18_server: str) -> Iterator[Stage]:
    def prepare(url: str) -> None:
        give_it_tables(url)
        execute(url, CLOCK_SQL)
        live(cradle, url, 0)

    with postgres_copies(postgres18_server, prepare) as copy:
        yield stage("postgres", cradle, copy, times=1)


def stage(name: str, cradle: Nursery, copy: Copy, times: int) -> Stage:
    with copy() as url:
        return Stage(name, cradle, copy, times, live(cradle, url, 1))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Stage:
    found = request.getfixturevalue(f"{request.param}_stage")
    assert isinstance(found, Stage)
    return found


def test_the_story_passes_every_step(store: Stage) -> None:
    """A step that nobody reaches is a place where nobody was ever killed."""
    assert sorted(store.passed) == STEPS


@pytest.mark.parametrize("four", [STEPS[at : at + 4] for at in range(0, len(STEPS), 4)], ids=" ".join)
def test_killed_at_every_step_and_started_again(store: Stage, four: list[str]) -> None:
    """S4-3, S2-9: one life after the other dies at a step, the first or second time it passes it; the last one lives.

    What one death loses or doubles no later life can mend, so one look at the end is enough. `make soak` looks after
    every single death.
    """
    faults = [f"kill {step} {nth}" for step in four for nth in range(1, min(store.times, store.passed[step]) + 1)]
    with store.copy() as url:
        store.survives(url, *faults)


@pytest.mark.parametrize("step", ["store.began", "store.commit", "store.committed", "desk.decided", "amend.written"])
def test_killed_in_the_first_life(cradle: Nursery, sqlite_file_url: str, step: str) -> None:
    """While the tables are made, and the first jobs."""
    for number, nth in enumerate((1, 2)):
        assert live(cradle, sqlite_file_url, number, f"kill {step} {nth}").signal == SIGKILL
    last = live(cradle, sqlite_file_url, 2)
    assert truth.judge(truth.read(sqlite_file_url), last.said["now_ms"]).wrong == []


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_thousand_kills(store: Stage, soak: Soak) -> None:
    """Every step × every time it is passed, then several deaths in a row, by lot. Each is judged by itself."""
    suite = soak.suite("schedulers are killed at a step", store.name, goal={"kill": MANY}, seed=1)
    lives = list(deaths(store.passed, Random(suite.seed)))
    rounds = [lives[at : at + A_ROUND] for at in range(0, len(lives), A_ROUND)]
    for number in suite.rounds(len(rounds)):
        tally, kills = Tally(), 0
        for faults in rounds[number]:
            with store.copy() as url:
                tally.add(store.judged(url, *faults))
            kills += len(faults)
            suite.tell(kills)
        suite.over({"kill": kills}, tally)
    suite.check()


def deaths(passed: dict[str, int], chance: Random) -> Iterator[list[str]]:
    places = [f"kill {step} {nth}" for step, times in sorted(passed.items()) for nth in range(1, times + 1)]
    yield from ([place] for place in places)
    kills = len(places)
    early = [place for place in places if int(place.split()[-1]) <= 2]  # after a death a step may be passed less often
    while kills < MANY:
        faults = chance.choices(early, k=chance.randint(2, 5))
        kills += len(faults)
        yield faults

"""A long suite goes on where it was, and the page says what was found."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.soak import page
from tests.soak.code import ROOT, VARIANTS, WORLDS, fingerprint, loaded
from tests.soak.plugin import Watcher
from tests.soak.rounds import Now, Soak, Suite, Tally, begun, read
from tests.soak.sums import bound, known


@dataclass
class Found:
    kinds: Mapping[str, int] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=lambda: {"runs": 7, "attempts": 9})

    @property
    def wrong(self) -> list[str]:
        return [f"a <run> was {kind}" for kind in self.kinds]

    def violations(self) -> Mapping[str, int]:
        return self.kinds


def one(made_of: str) -> str:
    """The code that is there."""
    return f"one{made_of}"


def kills(folder: Path, code: str = "one", store: str = "sqlite") -> Suite:
    return Suite(folder, code, "workers are <killed>", store, {"kill": 30}, 4)


def play(suite: Suite, *, until: int = 3) -> list[int]:
    done: list[int] = []
    for number in suite.rounds(3):
        if len(done) == until:
            break
        suite.over({"kill": 10}, Found())
        done.append(number)
    return done


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    assert play(kills(tmp_path), until=2) == [0, 1]
    assert play(kills(tmp_path, store="postgres")) == [0, 1, 2]
    assert play(kills(tmp_path)) == [2]
    kills(tmp_path).check()
    assert kills(tmp_path).counted() == {"runs": 21, "attempts": 27}
    assert play(kills(tmp_path, code="another")) == [0, 1, 2]


def test_a_bad_round_is_told_written_down_and_done_again(tmp_path: Path) -> None:
    suite = kills(tmp_path)
    for _ in suite.rounds(3):
        with pytest.raises(AssertionError, match="lost"):
            suite.over({"kill": 10}, Found({"lost": 2}))
        break
    assert [each.violations for each in read(tmp_path)] == [{"lost": 2}]
    assert play(kills(tmp_path)) == [0, 1, 2]
    kills(tmp_path).check()
    assert kills(tmp_path).counted() == {"runs": 21, "attempts": 27}  # its last word counts once
    [suite] = known(read(tmp_path), begun(tmp_path), one).suites()  # and its first one stays in the report
    assert (suite.good, suite.bad, suite.unjudged, suite.sum("faults")) == (3, 1, 0, {"kill": 40})
    text = page.write(tmp_path, [], 0, one).read_text()
    assert "<b class=bad>2 lost</b>" in text
    assert "2 in 40<" in text
    assert "round 0: 2 lost</b> (good when it was played again)<pre>a &lt;run&gt; was lost" in text


def test_a_round_without_a_verdict_is_told_too(tmp_path: Path) -> None:
    for _ in kills(tmp_path).rounds(3):
        break  # as if the test had a fault of its own
    play(kills(tmp_path), until=2)
    [suite] = known(read(tmp_path), begun(tmp_path), one).suites()
    assert (suite.good, suite.bad) == (2, 0)
    assert suite.unjudged == 2  # the one above, and the one in which `play` stopped


def test_too_few_faults_are_not_enough(tmp_path: Path) -> None:
    play(kills(tmp_path), until=2)
    with pytest.raises(AssertionError):
        kills(tmp_path).check()


def test_many_verdicts_are_one() -> None:
    tally = Tally()
    tally.add(Found({"early": 1}))
    tally.add(Found())
    assert tally.counted == {"runs": 14, "attempts": 18}
    assert tally.violations() == {"early": 1}


def test_code_is_what_is_loaded(tmp_path: Path) -> None:
    """Worlds are played again when something changes that they are made of, and not when a command or a page does."""
    of_worlds = {str(path.relative_to(ROOT)) for path in loaded(WORLDS)}
    assert of_worlds > {
        "src/fleetcron/store/sql/shared/fleet_now.sql",
        "src/fleetcron/worker/loop.py",
        "src/fleetcron/policy/settle.py",
        "tests/simulate/laws_of_work.py",
        "tests/scheduler/enumerator.py",
        "tests/times/reference.py",
    }
    assert not [
        path for path in of_worlds if path.startswith(("src/fleetcron/cli", "src/fleetcron/web", "tests/proof"))
    ]
    assert "tests/simulate/bad_ends.py" in {str(path.relative_to(ROOT)) for path in loaded(VARIANTS)}
    assert not {path for path in of_worlds if path.endswith(".md")}
    assert len({fingerprint(), fingerprint(WORLDS), fingerprint(VARIANTS)}) == 3
    suite = Soak(tmp_path).suite("worlds", "sqlite", goal={"world": 1}, seed=0, made_of=WORLDS)
    for _ in suite.rounds(1):
        suite.over({"world": 1}, Found())
    [played] = read(tmp_path)
    assert (played.made_of, played.code) == (WORLDS, fingerprint(WORLDS))
    assert known([played]).here == [played]


def test_none_in_n_is_less_than_three_in_n() -> None:
    assert bound(0, 0) == "nothing is known"
    assert bound(0, 2, "world") == "less than 100.00% break a law, at 95 % (0 in 2 × world)"
    assert bound(0, 10_000, "world") == "less than 0.030% break a law, at 95 % (0 in 10,000 × world)"
    assert bound(2, 10_000, "world") == "2 in 10,000 × world"


def test_the_page_says_what_was_found(tmp_path: Path) -> None:
    play(kills(tmp_path, code="old", store="postgres"))
    play(kills(tmp_path))
    text = page.write(tmp_path, [page.Test("tests/x.py::test_y", "failed", 61)], 3700, one).read_text()
    assert "workers are &lt;killed&gt; (sqlite)" in text
    assert "Rounds on earlier code, which count for nothing here: workers are &lt;killed&gt; (postgres): 3." in text
    assert "30 kill<" in text
    assert "less than 10.00% break a law, at 95 % (0 in 30 × fault)" in text
    assert "&lt; 10.00%<" in text
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text  # nothing from elsewhere
    assert text.index("tests/x.py::test_y") < text.index("1 m 01 s")
    assert "0 lost" in text
    assert next(iter(page.summary(tmp_path, one))).startswith("0 lost, 0 duplicated")
    debts = {debt.name: (debt.done, debt.earlier) for debt in known(read(tmp_path), now=one).owed()}
    assert (debts["kills on sqlite"], debts["kills on postgres"]) == ((30, 0), (0, 30))
    assert "Nothing has been played on this code yet" in page.write(tmp_path, [], 0, lambda _: "new").read_text()


def test_violations_are_on_the_page(tmp_path: Path) -> None:
    suite = kills(tmp_path)
    for _ in suite.rounds(3):
        with pytest.raises(AssertionError):
            suite.over({"kill": 10}, Found({"stale": 2}))
        break
    text = page.write(tmp_path, [], 0, one).read_text()
    assert "<b class=bad>2 stale</b>" in text
    assert "2 in 10<" in text
    assert "round 0: 2 stale</b><pre>a &lt;run&gt; was stale" in text
    assert "What broke on earlier code" in page.write(tmp_path, [], 0, lambda _: "new").read_text()


def test_whoever_watches_sees_where_it_is(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path)
    watcher.wanted = {"a", "b"}
    watcher.running = {"a": time.time()}
    suite = kills(tmp_path)
    for _ in suite.rounds(3):
        suite.tell(15)
        assert "0/2 tests" in watcher.line()
        assert "[######------------------]" in watcher.line()
        assert "workers are <killed> (sqlite): 15/30 kill, " in watcher.line()
        break
    assert "killed" not in watcher.line()  # it has ended
    (tmp_path / "now" / "x.json").write_text(json.dumps(asdict(Now("killed", "kill", 1, 2, os.getppid(), 0.0, 0))))
    assert "killed" not in watcher.line()  # that of another call
    (tmp_path / "now" / "x.json").unlink()
    assert not os.listdir(tmp_path / "now")

"""A long suite goes on where it was, and the page says what was found."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.soak import page
from tests.soak.plugin import Watcher
from tests.soak.rounds import Now, Soak, Suite, Tally, fingerprint, read


@dataclass
class Found:
    kinds: Mapping[str, int] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=lambda: {"runs": 7, "attempts": 9})

    @property
    def wrong(self) -> list[str]:
        return [f"a <run> was {kind}" for kind in self.kinds]

    def violations(self) -> Mapping[str, int]:
        return self.kinds


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


def test_another_code_is_another_one(tmp_path: Path) -> None:
    assert Soak(tmp_path).code == fingerprint()
    assert len(fingerprint()) == 16


def test_the_page_says_what_was_found(tmp_path: Path) -> None:
    play(kills(tmp_path, code="old", store="postgres"))
    play(kills(tmp_path))
    text = page.write(tmp_path, [page.Test("tests/x.py::test_y", "failed", 61)], 3700).read_text()
    assert "workers are &lt;killed&gt; (sqlite)" in text
    assert "(postgres)" not in text
    assert "3 rounds were done with other code" in text
    assert "30 kill<" in text
    assert "less than 10.00% break a law, at 95 % (0 in 30 × kill)" in text
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text  # nothing from elsewhere
    assert text.index("tests/x.py::test_y") < text.index("1 m 01 s")
    assert "0 lost" in text
    assert next(iter(page.summary(tmp_path))).startswith("0 lost, 0 duplicated")
    assert {name: done for name, _, done in page.owed(read(tmp_path))}["kills on sqlite"] == 30


def test_violations_are_on_the_page(tmp_path: Path) -> None:
    suite = kills(tmp_path)
    for _ in suite.rounds(3):
        with pytest.raises(AssertionError):
            suite.over({"kill": 10}, Found({"stale": 2}))
        break
    text = page.write(tmp_path, [], 0).read_text()
    assert "<b class=bad>2 stale</b>" in text
    assert "2 in 10 × kill" in text
    assert "round 0: a &lt;run&gt; was stale" in text


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

"""`python -m tests.simulate`: what it prints can be played, and what it cannot do it refuses."""

import sys

import pytest

from tests.simulate.__main__ import main
from tests.simulate.scoring import Score, wanted_of
from tests.simulate.variants import VARIANTS


@pytest.mark.parametrize("name", VARIANTS)
def test_who_is_caught_says_how_to_see_it_again(name: str) -> None:
    """The seed alone is another world, with other faults and another length."""
    told = str(Score(name, 3, ("I4",), 1002))
    assert told.startswith(f"{name}: caught by I4 in world 3: python -m tests.simulate 1002 ")
    assert told.endswith(wanted_of(name, 1002).command())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("7 --only foo", "there is no fault foo; there are aimed, asking, cut"),
        ("7 --only freeze,foo", "there is no fault foo"),
        ("7 --without foo", "invalid choice: 'foo'"),
        ("--seeds 9:3", "'9:3' is not A:B, the seeds from A to before B, such as 0:100"),
        ("--seeds 9:9", "'9:9' is not A:B"),
        ("--seeds 9", "'9' is not A:B"),
        ("--score foo", "there is no variant foo; there are"),
    ],
)
def test_what_does_not_exist_is_refused(words: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It played worlds without that fault, or none, and said that no law was broken."""
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert why in capsys.readouterr().err


def test_no_fault_at_all_can_be_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["tests.simulate", "7", "--only=", "--minutes=0.2"])
    assert main() == 0
    assert "seed 7: no law was broken" in capsys.readouterr().out

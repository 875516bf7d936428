"""Every capability that is built has a test that names it. The numbers are those of the list of capabilities owed."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
# What is built so far; a new room adds its items here.
OWED = {
    "S0": [*range(2, 12), *range(13, 29), *range(34, 45), *range(50, 54), *range(57, 63)],
    "S1": [*range(1, 17), *range(19, 29), 30, *range(33, 40)],
    "S2": [*range(5, 20), 21, *range(42, 46)],
    "S3": [*range(1, 17), *range(18, 22), *range(24, 63)],
    "S4": range(1, 28),
}


def named() -> set[str]:
    """S0-18, and ranges: S0-18 … S0-23, S0-18…S0-23, S0-18 to S0-23."""
    found = set()
    for path in TESTS.rglob("*.py"):
        text = path.read_text()
        found |= set(re.findall(r"S[0-4]-\d+", text))
        for source, first, last in re.findall(r"(S[0-4])-(\d+)\s*(?:…|to|–)\s*(?:S[0-4]-)?(\d+)", text):
            found |= {f"{source}-{number}" for number in range(int(first), int(last) + 1)}
    return found


def test_every_capability_has_a_test_that_names_it() -> None:
    owed = [f"{source}-{number}" for source, numbers in OWED.items() for number in numbers]
    known = named()
    assert [item for item in owed if item not in known] == []

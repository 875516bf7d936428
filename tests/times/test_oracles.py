"""Every case of the two oracle files gets our answer (time.md, Oracles).

ticks.jsonl holds what other projects' own tests and the real Debian daemon say, and we agree. differs.jsonl holds what
others decided differently: there `expected` is their answer and `ours` is the one to give.
Both files are read from ../shared/oracles where that exists (the source) and always from tests/oracles (the copy).
more.jsonl and more_differs.jsonl are further cases of the same kind, from the same projects' suites.
"""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from fleetcron import Cron, Once, ScheduleError
from tests.times import reference

REPOSITORY = Path(__file__).parents[2]
FOLDERS = {"copy": REPOSITORY / "tests" / "oracles", "shared": REPOSITORY.parent / "shared" / "oracles"}
JUST = timedelta(microseconds=1)

Case = dict[str, object]


def our_answer(case: Case) -> Case:
    """A case of differs.jsonl, rewritten so that it says what we say."""
    if "ours" not in case:
        return case
    ours = case["ours"]
    if isinstance(ours, list):
        return {**case, "expected": ours}
    if isinstance(ours, bool):
        return {**case, "kind": "match" if ours else "nomatch"}
    if ours == "accepted":
        return {**case, "kind": "valid"}
    if ours == "":
        assert case["kind"] == "not_equal"
        return {**case, "kind": "equal"}
    return {**case, "kind": "invalid", "message": ours}


def read(folder: Path, *names: str) -> list[Case]:
    lines = [line for name in names for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    return [our_answer(json.loads(line)) for line in lines]


CASES = {where: read(folder, "ticks", "differs") for where, folder in FOLDERS.items() if folder.is_dir()}
MORE = read(FOLDERS["copy"], "more", "more_differs")
EVERY_CASE = [
    pytest.param(case, id=f"{where}-{case['id']}-{case['kind']}")
    for where, cases in {**CASES, "more": MORE}.items()
    if where == "copy" or cases != CASES["copy"]  # the source too, where it is not the same
    for case in cases
]


def moment(text: object) -> datetime:
    return datetime.fromisoformat(str(text))


def moments(texts: object) -> list[datetime]:
    assert isinstance(texts, list)
    return [moment(text) for text in texts]


def schedule(case: Case, expression: str = "expr") -> Cron:
    return Cron(
        str(case[expression]), str(case.get("tz", "UTC")), dst_gap=case.get("dst_gap"), dst_fold=case.get("dst_fold")
    )


def test_the_files_hold_what_time_md_says():
    for cases in CASES.values():
        assert sum("ours" not in case for case in cases) == 1066
        assert sum("ours" in case for case in cases) == 139
    assert sum("ours" not in case for case in MORE) == 2892
    assert sum("ours" in case for case in MORE) == 53


def test_the_copy_is_the_source():
    assert all(cases == CASES["copy"] for cases in CASES.values())


@pytest.mark.parametrize("case", EVERY_CASE)
def test_oracle(case: Case):
    match case["kind"]:
        case "next":
            cron, at, expected = schedule(case), moment(case["from"]), moments(case["expected"])
            at = at - JUST if case["inclusive"] else at
            got = []
            while len(got) < len(expected):
                got.append(at := cron.next_after(at))
            assert got == expected
        case "prev":
            cron, at, expected = schedule(case), moment(case["from"]), moments(case["expected"])
            at = at + JUST if case["inclusive"] else at
            got = []
            while len(got) < len(expected):
                got.append(at := cron.prev_before(at))
            assert got == expected
        case "match":
            assert moment(case["at"]) in schedule(case)
        case "nomatch":
            assert moment(case["at"]) not in schedule(case)
        case "valid":
            schedule(case)
        case "invalid" | "never":
            with pytest.raises(ScheduleError) as refusal:
                schedule(case)
            assert str(case.get("message", "")).lower() in str(refusal.value).lower()
        case "equal":
            one, other = schedule(case), schedule(case, "other")
            assert one == other
            assert hash(one) == hash(other)
        case "not_equal":
            assert schedule(case) != schedule(case, "other")
        case "once":
            asked = {"dst_gap": case["dst_gap"], "dst_fold": case["dst_fold"]}
            if not case["expected"]:
                with pytest.raises(ScheduleError):
                    Once(case["local"], case["tz"], **asked)
                return
            once, at = Once(case["local"], case["tz"], **asked), moment("2000-01-01T00:00:00Z")
            got = []
            while (at := once.next_after(at)) is not None:
                got.append(at)
            assert got == moments(case["expected"])
        case kind:
            pytest.fail(f"no such kind of case: {kind}")


# --- the reference must satisfy them too, or it is no reference ------------------------------------------------------


def reference_says(case: Case) -> object:
    """What the reference answers to a case, in a form to compare with `reference_owes`."""

    def utc(text: object) -> datetime:
        return moment(text).replace(tzinfo=None)

    kind, expression = case["kind"], str(case.get("expr"))
    zone, policies = str(case.get("tz", "UTC")), (str(case.get("dst_gap")), str(case.get("dst_fold")))
    match kind:
        case "next" | "prev":
            step = reference.next_after if kind == "next" else reference.prev_before
            toward = JUST if kind == "prev" else -JUST
            at, got = utc(case["from"]) + (toward if case["inclusive"] else timedelta(0)), []
            while len(got) < len(moments(case["expected"])):
                got.append(at := step(expression, zone, at, *policies))
            return got
        case "match" | "nomatch":
            at = utc(case["at"])
            return reference.ticks(expression, zone, at - JUST, at, *policies) == [at]
        case "valid" | "invalid" | "never":
            try:
                return reference.never_fires(expression)
            except reference.BadExpressionError:
                return "refused"
        case "equal" | "not_equal":
            both = []
            for text in (expression, str(case["other"])):
                fields = reference.parse(text)
                days = [reference.matching_days(fields, 2023 + n // 12, n % 12 + 1, "skip") for n in range(72)]
                both.append((days, fields.seconds, fields.minutes, fields.hours))
            return both[0] == both[1]
        case "once":
            return list(reference.resolve(zone, utc(case["local"])).under(*policies))
        case _:
            pytest.fail(f"no such kind of case: {kind}")


def reference_owes(case: Case) -> object:
    match case["kind"]:
        case "next" | "prev" | "once":
            return [tick.replace(tzinfo=None) for tick in moments(case["expected"])]
        case "match" | "equal" | "never":
            return True
        case "invalid":
            return "refused"
        case _:
            return False


@pytest.mark.parametrize("step", [pytest.param(5, id="bounded"), pytest.param(1, id="all", marks=pytest.mark.soak)])
def test_reference_agrees_with_the_oracles(step: int):
    wrong = [
        (case["id"], case.get("expr"), owed, said)
        for case in CASES["copy"][::step]
        if (said := reference_says(case)) != (owed := reference_owes(case))
    ]
    assert wrong == []

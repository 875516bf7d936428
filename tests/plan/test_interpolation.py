"""`env: [NAME]` and `${NAME}`: declared, set, or a mistake with its place."""

import pytest

from fleetcron.model.interpolation import interpolated
from tests.plan.conftest import Moments

FILE = """env: [REGION, HOST_1]
jobs:
  - name: a
    schedule: {every: 1h}
    run: {command: [report, "--at=${HOST_1}.${REGION}", "$${HOME} $REGION"]}
    payload: {"${REGION}": ["${REGION}", 1]}
    pool: reports-${REGION}
"""


def test_declared_names_are_replaced_and_nothing_else(moments: Moments) -> None:
    moments.write("jobs.yaml", FILE)
    moments("apply", "jobs.yaml", REGION="eu", HOST_1="${REGION}")
    [job] = moments.json("export")["jobs"]
    assert job["run"]["command"] == ["report", "--at=${REGION}.eu", "${HOME} $REGION"]
    assert job["payload"] == {"${REGION}": ["eu", 1]}
    assert job["pool"] == "reports-eu"
    assert "pool: reports-eu -> reports-us" in moments("plan", "jobs.yaml", code=2, REGION="us", HOST_1="x").stdout


def test_what_is_not_declared_or_not_set_has_its_place(moments: Moments) -> None:
    moments.write("jobs.yaml", FILE.replace("env: [REGION, HOST_1]", "env: [REGION]"))
    said = moments("apply", "jobs.yaml", code=2, REGION="eu").stderr
    assert "error: jobs.yaml:5:29: /jobs/0/run/command/1: ${HOST_1} is not declared" in said
    assert "hint: env: [HOST_1] at the top declares it; $${ is a ${ that stays as it is" in said
    moments.write("jobs.yaml", FILE)
    said = moments("apply", "jobs.yaml", code=2, REGION="", HOST_1="x").stderr
    assert said.splitlines() == [
        "error: jobs.yaml:1:7: /env/0: REGION is not set",
        "hint: set it: REGION=… fleetcron …",
    ]
    assert not (moments.path / "fleetcron.db").exists()


def test_every_mistake_of_a_file_is_told_at_once(moments: Moments) -> None:
    """A name that is not set, a secret, and one that is not declared; of a declared name only that it is wrong."""
    moments.write("jobs.yaml", FILE.replace("env: [REGION, HOST_1]", "env: [REGION, DB_PASSWORD, 'A-B']"))
    said = moments("apply", "jobs.yaml", code=2, REGION="", DB_PASSWORD="canary-27b1").stderr
    errors = [line for line in said.splitlines() if line.startswith("error")]
    assert [line.rpartition("/")[2] for line in errors] == [
        "0: REGION is not set",
        "1: DB_PASSWORD looks like a secret, and what is put in here is stored and shown",
        "2: 'A-B' is not the name of a variable",
        "1: ${HOST_1} is not declared",
    ]
    assert "canary" not in said


@pytest.mark.parametrize("name", ["DB_PASSWORD", "api_key", "SHOP_TOKEN", "CLIENT_SECRET", "AWS_SECRET_ACCESS_KEY"])
def test_a_secret_cannot_be_declared(moments: Moments, name: str) -> None:
    """What is put in is stored and shown; the value itself is not even read."""
    moments.write("jobs.yaml", FILE.replace("HOST_1", name))
    said = moments("plan", "jobs.yaml", code=1, REGION="eu", **{name: "canary-27b1"})
    assert f"/env/1: {name} looks like a secret" in said.stderr
    assert f"write secret://{name.lower().replace('_', '-')}" in said.stderr
    assert "canary" not in said.stdout + said.stderr


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ("A", "must be a list, not 'A'"),
        (["A-B"], "'A-B' is not the name of a variable"),
        ([1], "1 is not the name of a variable"),
        ([{"name": "A"}], "is not the name of a variable"),
    ],
)
def test_bad_declarations(declared: object, reason: str) -> None:
    _, [mistake] = interpolated({"env": declared, "jobs": []}, {"A": "a"})
    assert reason in mistake.message


@pytest.mark.parametrize("text", ["${", "${A", "${}", "${A B}", "${a}", "${" + "x" * 500 + "}"])
def test_half_a_reference_is_a_mistake(text: str) -> None:
    _, [mistake] = interpolated({"env": ["A"], "jobs": [text]}, {"A": "a"})
    assert mistake.pointer == "/jobs/0"
    assert "is not declared" in mistake.message
    assert len(mistake.message) < 100


def test_without_a_declaration_nothing_happens() -> None:
    document = {"jobs": ["${A}", "$${A}"]}
    assert interpolated(document, {"A": "a"}) == (document, [])
    assert interpolated({"env": [], "jobs": ["$A $${A} $"]}, {}) == ({"jobs": ["$A ${A} $"]}, [])

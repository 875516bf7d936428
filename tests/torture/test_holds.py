"""The real thing: a short torture on each store, and long ones."""

import re
from pathlib import Path
from typing import Final

import pytest

from fleetcron.torture.evidence import kept
from fleetcron.torture.judge import judge
from fleetcron.torture.torment import KINDS
from fleetcron.torture.verdict import PROMISES
from tests.cli.folder import Folder
from tests.torture.places import schemas, sqlite_in

SHORT: Final = (
    "--for",
    "2s",
    "--rate",
    "3",
    "--seed",
    "9",
)  # by this seed the first two are a network fault and a stop
LONG: Final = ("--for", "3m", "--nodes", "3", "--rate", "1")


def test_promises_hold_on_sqlite(fleetcron: Folder, tmp_path: Path, evidence: Path) -> None:
    """The evidence that is kept gives the same verdict again."""
    said = fleetcron.json("torture", "--database", sqlite_in(tmp_path), *SHORT, "--nodes", "1", "--keep")
    assert (said["holds"], said["violations"], said["seed"]) == (True, [], 9)
    assert {each["promise"] for each in said["promises"]} == set(PROMISES)
    assert all(each["checked"] > 10 for each in said["promises"])
    assert (said["faults"]["stop"] > 0, said["faults"]["network"]) == (True, 0)
    assert said["notes"] == ["no faults of the network: a file has no network"]
    [folder] = evidence.iterdir()
    assert said["evidence"] == str(folder)
    verdict = judge(kept(folder))
    assert (verdict.holds, verdict.runs, verdict.attempts) == (True, said["runs"], said["attempts"])
    assert (tmp_path / f"{folder.name}.db").exists()


@pytest.mark.xdist_group("faults")  # where the other fleets are hurt: two cores are not enough for two
def test_promises_hold_on_postgres(fleetcron: Folder, postgres18_database: str, evidence: Path) -> None:
    """With a network that fails. Nothing is left behind."""
    url = postgres18_database
    done = fleetcron("torture", "--database", url, *SHORT, "--nodes", "2", "--faults", ",".join(KINDS))
    assert re.search(r"Makes the schema fleetcron_torture_\w{12},", done.stdout)
    assert "All promises hold." in done.stdout
    assert re.search(r"^every tick has an answer +\d+ ticks +0$", done.stdout, re.MULTILINE)
    assert re.search(r"\d+ faults? \(.*network fault", done.stdout)
    assert "the nodes are hurt" in done.stderr
    assert url.split("@")[0].rpartition(":")[2] not in done.stdout  # the password
    assert schemas(url) == set()
    assert list(evidence.iterdir()) == []


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("faults")
@pytest.mark.parametrize("database", ["sqlite", "postgres16_database", "postgres18_database"])
def test_promises_hold_for_minutes(
    fleetcron: Folder, tmp_path: Path, request: pytest.FixtureRequest, database: str
) -> None:
    url = sqlite_in(tmp_path) if database == "sqlite" else str(request.getfixturevalue(database))
    said = fleetcron.json("torture", "--database", url, *LONG)
    assert said["holds"], said["violations"]
    possible = set(KINDS) - ({"network"} if database == "sqlite" else set())
    assert all(said["faults"][kind] > 20 for kind in possible)
    assert said["attempts"]["lost"] > 20

"""What is told before anything is done: bad options, a database that is not there, rights and connections that are
missing."""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.torture.evidence import Sample
from fleetcron.torture.preflight import Server, facts_of
from tests.cli.folder import Folder
from tests.services.ports import free_port
from tests.torture.places import ask

WRONG = {
    "no database": ((), "Missing option '--database'"),
    "no URL": (("--database", "jobs.db"), "this is not a URL of a store"),
    "another store": (("--database", "mysql://host/name"), "there is no store for mysql"),
    "memory": (("--database", "sqlite:///:memory:"), "belongs to one process"),
    "no folder": (("--database", "sqlite:////nowhere/at/all/jobs.db"), "there is no folder /nowhere/at/all"),
    "no network": (("--database", "sqlite:///jobs.db", "--faults", "network,kill"), "a file has no network"),
    "another fault": (("--database", "sqlite:///jobs.db", "--faults", "kill,fire"), "'fire' is no fault"),
    "no fault": (("--database", "sqlite:///jobs.db", "--faults", ","), "'nothing' is no fault"),
    "no time": (("--database", "sqlite:///jobs.db", "--for", "soon"), "is not a duration"),
    "too short": (("--database", "sqlite:///jobs.db", "--for", "10ms"), "1s to 24h"),
    "no nodes": (("--database", "sqlite:///jobs.db", "--nodes", "0"), "--nodes"),
    "no rate": (("--database", "sqlite:///jobs.db", "--rate", "0"), "--rate"),
    "a rate that is no number": (("--database", "sqlite:///jobs.db", "--rate", "nan"), "--rate"),
    "somebody's schema": (("--database", "postgresql://u:secret@h/n?schema=fleetcron"), "names the schema fleetcron"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_tried(quick: Folder, what: str) -> None:
    arguments, message = WRONG[what]
    said = quick("torture", *arguments, code=2)
    assert message in said.stderr
    assert "secret" not in said.stderr
    assert list(quick.path.iterdir()) == []


def test_the_environment_does_not_choose_the_database(quick: Folder) -> None:
    """A torture of whatever DATABASE_URL happens to name would be a mistake."""
    said = quick("torture", code=2, DATABASE_URL="sqlite:///jobs.db")
    assert "--database" in said.stderr


def test_a_database_that_is_not_there(quick: Folder) -> None:
    said = quick("torture", "--database", f"postgresql://u:secret@127.0.0.1:{free_port()}/n", code=3)
    assert "cannot be reached" in said.stderr
    assert "secret" not in said.stderr


def test_json_asks_nobody(quick: Folder) -> None:
    (quick.path / "fleetcron_torture_0123456789ab.db").touch()
    said = quick("torture", "--database", "sqlite:///jobs.db", "--clean", "--json", code=2)
    assert "add --yes" in said.stderr
    assert (quick.path / "fleetcron_torture_0123456789ab.db").exists()


@pytest.fixture
def guest(postgres18_database: str) -> Iterator[str]:
    """The URL of a user who may connect, and nothing else."""
    name, parts = f"guest_{secrets.token_hex(4)}", urlsplit(postgres18_database)
    ask(postgres18_database, f"CREATE ROLE {name} LOGIN PASSWORD 'word' CONNECTION LIMIT 8")
    yield parts._replace(netloc=f"{name}:word@{parts.netloc.rpartition('@')[2]}").geturl()
    ask(postgres18_database, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_user_without_rights(quick: Folder, postgres18_database: str, guest: str) -> None:
    """What is told to grant is what is missing; then its connections are too few."""
    user, database = urlsplit(guest).username, urlsplit(guest).path.strip("/")
    said = quick("torture", "--database", guest, code=2).stderr
    assert f"the user {user} may not create a schema in the database {database}" in said
    grant = f'GRANT CREATE ON DATABASE "{database}" TO "{user}"'
    assert grant in said
    ask(postgres18_database, grant)
    said = quick("torture", "--database", guest, code=2).stderr
    assert f"3 nodes need 19 connections, and 7 are left (the limit of the user {user})" in said
    assert "--nodes" in said
    ask(postgres18_database, f'REVOKE CREATE ON DATABASE "{database}" FROM "{user}"')


SERVER = Server(
    version="18.0", database="app", user="ann", is_standby=False, may_create=True, fsync="on", synchronous_commit="on",
    most=97, used=10, most_of_user=-1, used_by_user=5, most_of_database=-1, used_in_database=5, fleets=None,
    pooled=False, round_trip_us=800,
)  # fmt: skip
CLOCK = Sample(0, -400, 400)


def changed(**fields: object) -> Server:
    return Server(**{name: fields.get(name, getattr(SERVER, name)) for name in Server.__slots__})  # type: ignore[arg-type]


def test_what_a_server_says_of_itself() -> None:
    facts = facts_of(SERVER, CLOCK, "postgresql://ann@host/app", 3, None)
    assert facts.database == "PostgreSQL 18.0 at postgresql://ann@host/app"
    assert facts.details == [
        "round trip 0.8 ms", "clocks 0 ms apart", "87 connections free", "fsync on, synchronous_commit on",
    ]  # fmt: skip
    assert facts.notes == []
    assert facts.lease_s == 2


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"fsync": "off"}, "can be lost when the server crashes"),
        ({"synchronous_commit": "off"}, "can be lost when the server crashes"),
        ({"fleets": "fleetcron, shop"}, "fleetcron, shop. They are not touched"),
        ({"round_trip_us": 300_000}, "leases are longer"),
    ],
)
def test_what_is_noted(fields: dict[str, object], note: str) -> None:
    [said] = facts_of(changed(**fields), CLOCK, "url", 3, None).notes
    assert note in said


def test_far_away_leases_are_longer() -> None:
    assert facts_of(changed(round_trip_us=300_000), CLOCK, "url", 3, None).lease_s == 6


@pytest.mark.parametrize(
    ("fields", "clock", "why"),
    [
        ({"is_standby": True}, CLOCK, "is a standby"),
        ({"most": 28}, CLOCK, "and 18 are left (max_connections of the server)"),
        ({"most_of_database": 10}, CLOCK, "and 5 are left (the limit of the database app)"),
        ({}, Sample(0, 400_000_000, 400_000_000), "400.0 s behind the database's"),
        ({}, Sample(0, -400_000_000, -400_000_000), "400.0 s ahead of the database's"),
    ],
)
def test_what_is_refused(fields: dict[str, object], clock: Sample, why: str) -> None:
    with pytest.raises(StoreError, match=re.escape(why)) as refused:
        facts_of(changed(**fields), clock, "url", 3, None)
    assert isinstance(refused.value, StoreUnavailable) == ("is_standby" in fields)


def test_behind_a_pooler_connections_are_not_counted() -> None:
    assert "behind a pooler" in facts_of(changed(most=5, pooled=True), CLOCK, "url", 3, None).details


def test_nothing_is_made_where_nothing_may_be_written(quick: Folder, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    said = quick("torture", "--database", f"sqlite:///{missing}/jobs.db", code=2)
    assert f"there is no folder {missing}" in said.stderr
    assert not missing.exists()

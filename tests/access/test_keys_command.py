"""`fleetcron keys`: for people, for machines, with mistakes; and the secret is shown once, and is nowhere else."""

import asyncio
import logging
import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from fleetcron.model.access import Credential, new_session, read_key
from fleetcron.policy.access import verify
from fleetcron.store.store import Store
from tests.cli.folder import Folder
from tests.store.engines import opened

SECRET = re.compile(r"fck_[0-9a-z]{10}_[0-9A-Za-z]{49}")


@pytest.fixture
def keys(quick: Folder) -> Folder:
    quick("migrate")
    return quick


def test_a_key_is_created_listed_and_revoked(keys: Folder) -> None:
    assert keys("keys").stdout.startswith("There is no key yet, so nobody can use the API. Create one: fleetcron keys")
    said = keys("keys", "create", "ci", "--role", "operator", "--expires", "90d", "--rate", "600", "--by", "ann").stdout
    [secret] = SECRET.findall(said)
    key_id = secret.split("_")[1]
    first, _, export, _, last = said.splitlines()
    assert first.startswith(f"Key ci ({key_id}): created. It is an operator of all tenants, expires 20")
    assert first.endswith("Z, 600 requests a minute at most.")
    assert export == f"  export FLEETCRON_API_KEY={secret}"
    assert last.startswith("It is shown only now")
    assert keys("keys").stdout.splitlines() == [
        "NAME  ID          ROLE      TENANT  LAST USED  EXPIRES  STATE",
        f"ci    {key_id}  operator  all     never      in 89d   active",
    ]
    assert keys("keys", "revoke", "ci", "--reason", "it was in a log", "--by", "bob").stdout == (
        f"Key ci ({key_id}): revoked.\n"
    )
    again = keys("keys", "revoke", key_id, "--reason", "again").stdout
    when = r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*"
    assert re.fullmatch(rf"Key ci \({key_id}\): unchanged. It was revoked at {when} by bob: it was in a log\n", again)
    assert keys("keys").stdout.splitlines()[1].endswith("revoked  it was in a log")
    events = keys.json("events")["events"][:2]
    assert [(each["kind"], each["by"]) for each in events] == [("key_revoked", "bob"), ("key_created", "ann")]


def test_keys_for_machines(keys: Folder) -> None:
    made = keys.json("keys", "create", "w", "--role", "worker", "--pool", "reports", "--pool", "mail", "--by", "ann")
    secret = made.pop("key")
    assert SECRET.fullmatch(secret)
    assert made == {
        "key_id": secret.split("_")[1], "name": "w", "role": "worker", "tenant": None, "pools": ["reports", "mail"],
        "rate_per_minute": None, "state": "active", "created_at": made["created_at"], "created_by": "ann",
        "expires_at": None, "last_used_at": None, "revoked_at": None, "revoked_by": None, "reason": None, "jobs": None,
    }  # fmt: skip
    del made["jobs"]
    assert keys.json("keys") == {"keys": [made], "after": None}
    done = keys.json("keys", "revoke", "w", "--reason", "x")
    assert (done["done"], done["state"], done["reason"]) == ("revoked", "revoked", "x")
    assert keys.json("keys", "revoke", "w", "--reason", "y")["done"] == "unchanged"


def test_keys_by_filter_and_page(keys: Folder) -> None:
    for name, *more in (["a"], ["b", "--tenant", "acme"], ["c", "--tenant", "acme", "--expires", "1h"]):
        keys("keys", "create", name, "--role", "viewer", *more)
    keys("keys", "revoke", "acme/b", "--reason", "x")

    def names(*options: str, shift_s: int | None = None) -> list[str]:
        return [each["name"] for each in keys.json("keys", *options, shift_s=shift_s)["keys"]]

    assert names() == ["a", "b", "c"]
    assert names("--tenant", "acme") == ["b", "c"]
    assert names("--state", "active") == ["a", "c"]
    assert names("--state", "expired", shift_s=3_601) == ["c"]
    assert "expired" in keys("keys", shift_s=7_300).stdout
    assert names("--role", "admin") == []
    page = keys.json("keys", "--limit", "1")
    assert names("--after", page["after"]) == ["b", "c"]
    assert f"1 shown, there are more: --after {page['after']}" in keys("keys", "--limit", "1").stdout
    assert keys("keys", "--role", "admin").stdout.startswith("No key is like that.")


def test_a_tenant_that_nobody_has_is_told(keys: Folder) -> None:
    said = keys("keys", "create", "ci", "--role", "admin", "--tenant", "amce").stdout
    assert "It is an admin of tenant amce, never expires." in said
    assert said.splitlines()[-1] == "No job has the tenant amce yet."
    assert keys.json("keys", "create", "b", "--role", "admin", "--tenant", "amce")["jobs"] == 0
    worker = keys("keys", "create", "w", "--role", "worker", "--pool", "*").stdout
    assert "It is a worker of every pool, never expires." in worker


def test_mistakes_about_keys(keys: Folder) -> None:
    create = ("keys", "create")
    said = keys(*create, "No Name", "--role", "worker", "--rate", "0", "--tenant", "A", code=2).stderr
    assert [line.split(": ")[1] for line in said.splitlines() if line.startswith("error")] == [
        *("NAME", "--tenant", "--rate", "--tenant", "--pool"),
    ]
    assert (
        "--expires: 'soon' is not a duration"
        in keys(*create, "a", "--role", "admin", "--expires", "soon", code=2).stderr
    )
    assert "Missing option '--role'" in keys(*create, "a", code=2).stderr
    assert "'root' is not one of 'viewer'" in keys(*create, "a", "--role", "root", code=2).stderr
    assert "'x' is not a whole number" in keys(*create, "a", "--role", "admin", "--rate", "x", code=2).stderr
    assert "--pool: are for workers" in keys(*create, "a", "--role", "admin", "--pool", "p", code=2).stderr
    assert keys.json("keys")["keys"] == []
    key_id = keys.json(*create, "ci", "--role", "admin")["key_id"]
    taken = keys(*create, "ci", "--role", "viewer", code=2).stderr
    assert taken == (
        f"error: the name ci is taken by the key {key_id}; revoke that one first, or choose another name\n"
    )
    revoke = ("keys", "revoke")
    nobody = keys(*revoke, "deploy", "--reason", "x", code=2).stderr
    assert nobody == "error: there is no key deploy; `fleetcron keys` lists them all\n"
    keys(*create, "deployer", "--role", "admin")
    near = keys(*revoke, "deploier", "--reason", "x", code=2).stderr
    assert near == "error: there is no key deploier; did you mean deployer?\n"
    assert "Missing option '--reason'" in keys(*revoke, "ci", code=2).stderr
    other = keys.json(*create, "ci", "--role", "viewer", "--tenant", "acme")["key_id"]
    both = keys(*revoke, "ci", "--reason", "x", code=2).stderr
    assert both == (f"error: 2 keys are called ci: {key_id} (all tenants), {other} (acme); say which by its id\n")
    assert keys.json(*revoke, "acme/ci", "--reason", "x")["key_id"] == other
    assert keys.json(*revoke, "ci", "--reason", "x")["key_id"] == key_id  # the other one is revoked already


def test_a_key_that_was_found_somewhere_is_revoked_as_it_is(keys: Folder) -> None:
    """Whoever finds one in a log has only the text; no message repeats it."""
    secret = keys.json("keys", "create", "ci", "--role", "admin")["key"]
    unknown = secret.replace(secret[4:14], "0" * 10)
    said = keys("keys", "revoke", unknown, "--reason", "leaked", code=2)
    assert said.stderr.startswith("error: there is no key 0000000000;")
    assert keys.json("keys", "revoke", secret, "--reason", "leaked")["state"] == "revoked"
    assert "fck" not in said.stdout + said.stderr
    assert "fck" not in keys("keys", "revoke", "fck_", "--reason", "x", code=2).stderr


def test_the_key_in_the_environment_is_no_setting(keys: Folder) -> None:
    """What `keys create` says to export must not stop the next command."""
    secret = keys.json("keys", "create", "ci", "--role", "admin")["key"]
    assert "ci" in keys("keys", FLEETCRON_API_KEY=secret).stdout
    assert secret not in keys("config", "show", FLEETCRON_API_KEY=secret).stdout
    refused = keys("keys", FLEETCRON_API_KEYS=secret, code=2).stderr
    assert "FLEETCRON_API_KEYS: is not a setting" in refused
    assert secret not in refused


def test_no_database_is_said(quick: Folder) -> None:
    assert "there is no database" in quick("keys", "create", "ci", "--role", "admin", code=2).stderr


# -- the canary


def test_a_secret_is_nowhere_but_with_its_owner(keys: Folder, caplog: pytest.LogCaptureFixture) -> None:
    """Not in any file of the database, any column, event, list, error or line of the log; its hash is, and opens it."""
    with caplog.at_level(logging.DEBUG):
        secret = keys.json("keys", "create", "canary", "--role", "admin")["key"]
        said = [
            keys("keys", "create", "canary", "--role", "admin", code=2).stderr,
            keys("keys").stdout,
            keys("keys", "--json").stdout,
            keys("events").stdout,
            keys("events", "--json").stdout,
        ]
        token = new_session()
        asyncio.run(logged_in(keys.path / "fleetcron.db", secret, token.digest))
        said += [keys("keys", "revoke", secret, "--reason", "x").stdout, keys("events", "--json").stdout]
    said += [record.getMessage() for record in caplog.records]
    parts = [secret, secret.split("_")[2], secret.split("_")[2][:20], token.text, token.text[4:24]]
    assert [part for part in parts for text in said if part in text] == []
    files = list(keys.path.glob("fleetcron.db*"))
    stored = b"".join(path.read_bytes() for path in files)
    assert sha256(secret.encode()).hexdigest().encode() in stored  # so that looking for it can find something
    assert token.digest.encode() in stored
    assert [part for part in parts if part.encode() in stored] == []
    with closing(sqlite3.connect(keys.path / "fleetcron.db")) as file:
        dump = "\n".join(file.iterdump())
    assert [part for part in parts if part in dump] == []


async def logged_in(path: Path, secret: str, digest: str) -> None:
    async with opened(f"sqlite:///{path}") as engine:
        store, key = Store(engine), read_key(secret)
        assert key is not None
        found = await store.keys.find(key.key_id)
        assert isinstance(verify(key, found.key, found.now_ms), Credential)
        await store.sessions.create(digest, key.key_id)
        await store.idempotency.begin(key.key_id, "k", "r", owner="a")

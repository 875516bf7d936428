"""`fleetcron keys`: who may use the API. A key is shown once, when it is created; nobody can show it again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import click

from fleetcron.cli.asking import Doc, paged
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.limits import figure, unknown
from fleetcron.cli.moments import distance, ms_of, now_ms, shown
from fleetcron.cli.names import by_option
from fleetcron.cli.run_steering import checked_reason
from fleetcron.cli.tables import coloured, limit_option, numbered, printable, say_more, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.client.errors import Refused
from fleetcron.errors import DefinitionError, Mistake, RefusedError
from fleetcron.model.access import EVERY_POOL, KeyState, KeyWish, Role, new_key
from fleetcron.store.keys import KeyFilter
from fleetcron.store.store import Store
from fleetcron.times.durations import duration_ms
from fleetcron.views.asking import answer
from fleetcron.views.cursors import cursor_of
from fleetcron.views.keys import key_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

K = TypeVar("K", bound=Doc)

COMMANDS: Table = {
    "create": ("fleetcron.cli.keys:create", "Create a key, and show it this once."),
    "revoke": ("fleetcron.cli.keys:revoke", "Revoke a key for good."),
}

VARIABLE: Final = "FLEETCRON_API_KEY"
_LOOKED_AT: Final = 1000
_FLAGS: Final[Mapping[str, str]] = {
    "/name": "NAME", "/tenant": "--tenant", "/pools": "--pool", "/rate_per_minute": "--rate",
    "/expires_in": "--expires",
}  # fmt: skip


@click.group("keys", cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@watchable
@click.option("--tenant", metavar="NAME", help="Only keys of this tenant.")
@click.option("--role", type=click.Choice([each.value for each in Role]), help="Only keys of this role.")
@click.option("--state", type=click.Choice(get_args(KeyState)), help="Only keys in this state.")
@click.option("--after", metavar="ID", help="The page after this key.")
@limit_option
@database_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    database: Database,
    tenant: str | None,
    role: str | None,
    state: KeyState | None,
    after: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List API keys, also those that were revoked or have expired. Secrets are not shown: nobody has them."""
    if context.invoked_subcommand is not None:
        return
    wanted = KeyFilter(tenant, None if role is None else Role(role), state, after=after)
    keys, is_cut, now = database.ask(
        lambda store: _of_store(store, wanted, limit), lambda client: _of_api(client, wanted, limit)
    )
    more = keys[-1]["key_id"] if is_cut else None
    if as_json:
        print_json({"keys": keys, "after": more})
    elif keys:
        heads = ("NAME", "ID", "ROLE", "TENANT", "POOLS", "LAST USED", "EXPIRES", "STATE", "REASON")
        click.echo(table(heads, [_row(each, now) for each in keys]))
        if more is not None:
            say_more(len(keys), f"--after {more}")
    elif wanted == KeyFilter():
        click.echo(
            "There is no key yet, so nobody can use the API. Create one: fleetcron keys create NAME --role admin"
        )
    else:
        click.echo("No key is like that. Without options, fleetcron keys lists them all.")


@click.command("create")
@click.argument("name")
@click.option(
    "--role",
    required=True,
    type=click.Choice([each.value for each in Role]),
    help="viewer < operator < admin; worker is apart.",
)
@click.option("--tenant", metavar="NAME", help="Only what belongs to this tenant. [default: all tenants]")
@click.option(
    "--pool", "pools", multiple=True, metavar="NAME", help="Of a worker: where it may claim; * is every pool."
)
@click.option("--expires", metavar="DURATION", help="It ends by itself after this, such as 90d. [default: never]")
@click.option("--rate", callback=figure, metavar="N", help="Requests a minute at most. [default: what the API allows]")
@by_option
@database_options
@json_option
def create(
    database: Database,
    name: str,
    role: str,
    tenant: str | None,
    pools: tuple[str, ...],
    expires: str | None,
    rate: int | None,
    by: str,
    as_json: bool,
) -> None:
    """Create a key called NAME, and show it this once: only a hash of it is kept."""
    lasts_ms = None if expires is None else duration_ms(expires, "--expires")
    wish = KeyWish(name, Role(role), tenant, tuple(dict.fromkeys(pools)), lasts_ms, rate)
    with _mistakes_as_flags():
        wish.check()

    async def of_store(store: Store) -> Doc:
        key = new_key()
        made = await answer(lambda: store.keys.create(key.key_id, key.digest, wish, actor=by))
        jobs = None if tenant is None else (await store.limits.tenant(tenant)).usage.jobs
        return {**key_json(made.credential, made.now_ms), "key": key.text, "jobs": jobs}

    def of_api(client: "Client") -> Doc:
        given: dict[str, Any] = {"tenant": tenant, "pools": wish.pools, "expires_in": expires, "rate_per_minute": rate}
        made = client.keys.create(name, wish.role.value, **given)
        return {**made, "jobs": None if tenant is None else client.tenants.get(tenant)["jobs"]}

    with _mistakes_as_flags():
        made = database.ask(of_store, of_api)
    if as_json:
        print_json(made)
        return
    click.echo(f"Key {name} ({made['key_id']}): {coloured('created')}. {_words(made)}.\n")
    click.echo(f"  export {VARIABLE}={made['key']}\n")
    click.echo("It is shown only now: fleetcron keeps a hash of it. If it is lost, revoke it and create another one.")
    if made["jobs"] == 0:
        click.echo(f"No job has the tenant {tenant} yet.")


@click.command("revoke")
@click.argument("which", metavar="ID|NAME")
@click.option("--reason", required=True, metavar="TEXT", callback=checked_reason, help="Why: the others read it too.")
@by_option
@database_options
@json_option
def revoke(database: Database, which: str, reason: str, by: str, as_json: bool) -> None:
    """Revoke a key for good, and with it every session that began with it.

    By its id, by NAME or TENANT/NAME, or by the whole key, if that is what was found somewhere.
    """

    async def of_store(store: Store) -> Doc:
        found = (await store.keys.find(_public(which))).key
        listed = [found.credential] if found else (await store.keys.list(KeyFilter(), _LOOKED_AT)).keys
        key_id = str(_the_key([key_json(each, 0) for each in listed], which)["key_id"])
        done = await answer(lambda: store.keys.revoke(key_id, reason, actor=by))
        word = "revoked" if done.changed else "unchanged"
        return {**key_json(done.credential, done.now_ms), "done": word}

    def of_api(client: "Client") -> Doc:
        return client.keys.revoke(_the_key(list(client.keys.list()), which)["key_id"], reason)

    done = database.ask(of_store, of_api)
    if as_json:
        print_json(done)
        return
    said = f"Key {_full_name(done)} ({done['key_id']})"
    if done["done"] == "revoked":
        click.echo(f"{said}: {coloured('revoked')}.")
    else:
        when, why = shown(done["revoked_at"]), printable(done["reason"] or "")
        click.echo(f"{said}: unchanged. It was revoked at {when} by {printable(done['revoked_by'] or '')}: {why}")


async def _of_store(store: Store, wanted: KeyFilter, limit: int) -> tuple[Sequence[Doc], bool, int]:
    page = await store.keys.list(wanted, limit + 1)
    return [key_json(each, page.now_ms) for each in page.keys[:limit]], len(page.keys) > limit, page.now_ms


def _of_api(client: "Client", wanted: KeyFilter, limit: int) -> tuple[Sequence[Doc], bool, int]:
    cursor = None if wanted.after is None else cursor_of(wanted.after)
    query = {"tenant": wanted.tenant, "role": wanted.role, "state": wanted.state}
    keys, more, _ = paged(client.keys.page, "keys", limit, cursor, **query)
    return keys, more, now_ms()


def _the_key(keys: Sequence[K], text: str) -> K:
    """The key that is meant. Of several with a name the one that is not revoked; a RefusedError if that leaves two."""
    text = _public(text)
    for key in keys:
        if key["key_id"] == text:
            return key
    tenant, slash, name = text.rpartition("/")
    alike = [each for each in keys if each["name"] == name and (not slash or each["tenant"] == tenant)]
    named = [each for each in alike if each["revoked_at"] is None]
    if not named:
        named = sorted(alike, key=lambda each: str(each["revoked_at"]))[-1:]
    if len(named) == 1:
        return named[0]
    if named:
        them = ", ".join(f"{each['key_id']} ({each['tenant'] or 'all tenants'})" for each in named)
        raise RefusedError(f"{numbered(len(named), 'key')} are called {name}: {them}; say which by its id")
    raise unknown("key", text, [_full_name(each) for each in keys], "`fleetcron keys` lists them all")


def _public(text: str) -> str:
    """Of a whole key its id: what follows is secret, and in no message."""
    return text.split("_")[1] if text.startswith("fck_") else text


def _full_name(key: Doc) -> str:
    return key["name"] if key["tenant"] is None else f"{key['tenant']}/{key['name']}"


@contextmanager
def _mistakes_as_flags() -> Iterator[None]:
    try:
        yield
    except (DefinitionError, Refused) as error:
        if not error.mistakes:
            raise
        flags = [Mistake(_FLAGS.get(each.pointer, each.pointer), each.message, each.hint) for each in error.mistakes]
        raise DefinitionError(flags) from None


def _words(key: Doc) -> str:
    """`operator of tenant acme, expires 2027-01-01T00:00:00Z, 600 requests a minute`."""
    if key["role"] == Role.WORKER:
        pools = "every pool" if EVERY_POOL in key["pools"] else f"the pools {', '.join(key['pools'])}"
        said = [f"It is a worker of {pools}"]
    else:
        whose = "all tenants" if key["tenant"] is None else f"tenant {key['tenant']}"
        said = [f"It is {_article(key['role'])} of {whose}"]
    said.append("never expires" if key["expires_at"] is None else f"expires {shown(key['expires_at'])}")
    if (rate := key["rate_per_minute"]) is not None:
        said.append(f"{numbered(rate, 'request')} a minute at most")
    return ", ".join(said)


def _article(role: str) -> str:
    return {"viewer": "a viewer", "ping": "for pings, and nothing else,"}.get(role, f"an {role}")


def _row(key: Doc, now: int) -> list[str]:
    used, ends = key["last_used_at"], key["expires_at"]
    return [
        key["name"],
        key["key_id"],
        key["role"],
        key["tenant"] or ("" if key["role"] == Role.WORKER else "all"),
        ", ".join(key["pools"]),
        "never" if used is None else distance(ms_of(used), now),
        "never" if ends is None else distance(ms_of(ends), now),
        coloured(key["state"]),
        printable(key["reason"] or ""),
    ]

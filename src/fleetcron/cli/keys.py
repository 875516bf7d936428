"""`fleetcron keys`: who may use the API. A key is shown once, when it is created; nobody can show it again."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, get_args

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.limits import figure, unknown
from fleetcron.cli.moments import distance, utc
from fleetcron.cli.names import by_option
from fleetcron.cli.run_steering import checked_reason
from fleetcron.cli.tables import coloured, limit_option, numbered, printable, say_more, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import DefinitionError, Mistake, RefusedError
from fleetcron.model.access import EVERY_POOL, Credential, KeyState, KeyWish, Role, new_key
from fleetcron.policy.access import state_of
from fleetcron.store.keys import CreatedKey, KeyFilter, RevokedKey
from fleetcron.store.store import Store
from fleetcron.times.durations import duration_ms
from fleetcron.views.asking import answer
from fleetcron.views.keys import key_json

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
    page = database.run(lambda store: store.keys.list(wanted, limit + 1))
    keys, more = page.keys[:limit], page.keys[limit - 1].key_id if len(page.keys) > limit else None
    if as_json:
        print_json({"keys": [key_json(each, page.now_ms) for each in keys], "after": more})
    elif keys:
        heads = ("NAME", "ID", "ROLE", "TENANT", "POOLS", "LAST USED", "EXPIRES", "STATE", "REASON")
        click.echo(table(heads, [_row(each, page.now_ms) for each in keys]))
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
    key = new_key()

    async def work(store: Store) -> tuple[CreatedKey, int | None]:
        made = await answer(lambda: store.keys.create(key.key_id, key.digest, wish, actor=by))
        return made, None if tenant is None else (await store.limits.tenant(tenant)).usage.jobs

    made, jobs = database.run(work)
    if as_json:
        print_json({**key_json(made.credential, made.now_ms), "key": key.text, "jobs": jobs})
        return
    click.echo(f"Key {name} ({key.key_id}): {coloured('created')}. {_words(made.credential)}.\n")
    click.echo(f"  export {VARIABLE}={key.text}\n")
    click.echo("It is shown only now: fleetcron keeps a hash of it. If it is lost, revoke it and create another one.")
    if jobs == 0:
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

    async def work(store: Store) -> RevokedKey:
        key = await _the_key(store, which)
        return await answer(lambda: store.keys.revoke(key.key_id, reason, actor=by))

    done = database.run(work)
    credential = done.credential
    if as_json:
        word = "revoked" if done.changed else "unchanged"
        print_json({**key_json(credential, done.now_ms), "done": word})
        return
    said = f"Key {credential.full_name} ({credential.key_id})"
    if done.changed:
        click.echo(f"{said}: {coloured('revoked')}.")
    else:
        ago = distance(credential.revoked_ms or 0, done.now_ms)
        why = printable(credential.revoked_why or "")
        click.echo(f"{said}: unchanged. It was revoked {ago} by {printable(credential.revoked_by or '')}: {why}")


async def _the_key(store: Store, text: str) -> Credential:
    """The key that is meant. Of several with a name the one that is not revoked; a RefusedError if that leaves two."""
    if text.startswith("fck_"):
        text = text.split("_")[1]  # what follows is secret, and in no message
    found = await store.keys.find(text)
    if found.key is not None:
        return found.key.credential
    tenant, slash, name = text.rpartition("/")
    keys = (await store.keys.list(KeyFilter(tenant=tenant if slash else None, name=name), _LOOKED_AT)).keys
    named = [each for each in keys if each.revoked_ms is None]
    if not named:
        named = sorted(keys, key=lambda each: each.revoked_ms or 0)[-1:]
    if len(named) == 1:
        return named[0]
    if named:
        them = ", ".join(f"{each.key_id} ({each.tenant or 'all tenants'})" for each in named)
        raise RefusedError(f"{numbered(len(named), 'key')} are called {name}: {them}; say which by its id")
    known = (await store.keys.list(KeyFilter(), _LOOKED_AT)).keys
    raise unknown("key", text, [each.full_name for each in known], "`fleetcron keys` lists them all")


@contextmanager
def _mistakes_as_flags() -> Iterator[None]:
    try:
        yield
    except DefinitionError as error:
        flags = [Mistake(_FLAGS.get(each.pointer, each.pointer), each.message, each.hint) for each in error.mistakes]
        raise DefinitionError(flags) from None


def _words(credential: Credential) -> str:
    """`operator of tenant acme, expires 2027-01-01T00:00:00Z, 600 requests a minute`."""
    if credential.role is Role.WORKER:
        pools = "every pool" if EVERY_POOL in credential.pools else f"the pools {', '.join(credential.pools)}"
        said = [f"It is a worker of {pools}"]
    else:
        said = [f"It is {_article(credential.role)} of {_tenant(credential)}"]
    said.append("never expires" if credential.expires_ms is None else f"expires {utc(credential.expires_ms)}")
    if credential.rate_per_minute is not None:
        said.append(f"{numbered(credential.rate_per_minute, 'request')} a minute at most")
    return ", ".join(said)


def _article(role: Role) -> str:
    return {Role.VIEWER: "a viewer", Role.PING: "for pings, and nothing else,"}.get(role, f"an {role}")


def _tenant(credential: Credential) -> str:
    return "all tenants" if credential.tenant is None else f"tenant {credential.tenant}"


def _row(credential: Credential, now_ms: int) -> list[str]:
    used, ends, state = credential.last_used_ms, credential.expires_ms, state_of(credential, now_ms)
    return [
        credential.name,
        credential.key_id,
        credential.role,
        credential.tenant or ("" if credential.role is Role.WORKER else "all"),
        ", ".join(credential.pools),
        "never" if used is None else distance(used, now_ms),
        "never" if ends is None else distance(ends, now_ms),
        coloured(state),
        printable(credential.revoked_why or ""),
    ]

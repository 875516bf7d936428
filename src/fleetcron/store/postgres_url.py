"""A PostgreSQL URL: what is ours in it, what is the driver's, and how to show it without the password."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from fleetcron.errors import StoreError

DEFAULT_SCHEMA: Final = "fleetcron"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_PASSWORD = re.compile(r"(://[^:/@]*):.*@", re.DOTALL)  # to the last @: a password that was not escaped may hold some
_OPTION = re.compile(r"((?:^|[?&])(?:password|sslpassword)=)[^&]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PostgresUrl:
    dsn: str  # for the driver; has the password
    shown: str  # for people
    schema: str
    pooled: bool  # behind a pooler that gives out a session per transaction


def parse(url: str) -> PostgresUrl:
    shown = masked(url)
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise unreadable(shown) from None
    ours = {name: value for name, value in options if name in ("schema", "pooler")}
    rest = urlencode([(name, value) for name, value in options if name not in ours])
    schema = ours.get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise StoreError(
            f"'{schema}' in {shown} cannot be the schema",
            hint="up to 40 of a-z, 0-9 and _, not beginning with a digit or pg_",
        )
    if ours.get("pooler", "transaction") != "transaction":
        raise StoreError(
            f"pooler={ours['pooler']} in {shown} is not known", hint="write pooler=transaction or leave it out"
        )
    return PostgresUrl(parts._replace(query=rest).geturl(), shown, schema, "pooler" in ours)


def channel_of(schema: str) -> str:
    """Where hints are told and heard."""
    return f"fleetcron:{schema}"


def unreadable(shown: str) -> StoreError:
    """Raise it `from None`: the text of its cause may hold a piece of the password."""
    hint = "look at its options, and write @ : / ? # % in a password as %40 %3A %2F %3F %23 %25"
    return StoreError(f"the database URL {shown} cannot be read", hint=hint)


def masked(url: str) -> str:
    """The URL for messages and logs: without its password."""
    return _OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))

"""Which jobs a list is about, and the statement that finds a page of them with the least to read."""

import re
from dataclasses import dataclass
from typing import Final

from fleetcron.store.engine import Call

_LAST: Final = "z" * 201  # no tenant comes after it, in whatever order a database has
# Which index a page is read from; the first that a filter names.
_PATHS: Final = (
    ("managed_by", "jobs_page_of_manager"), ("type", "jobs_page_of_type"), ("pool", "jobs_page_of_pool"),
    ("state", "jobs_page_of_state"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobFilter:
    tenant: str | None = None
    name: str | None = None
    state: str | None = None
    type: str | None = None
    pool: str | None = None
    text: str | None = None  # somewhere in the name
    after: tuple[str, str] | None = None  # (tenant, name) of the last line of the page before
    managed_by: str | None = None
    shadow: bool = False  # only those that are or were in shadow

    @property
    def is_one(self) -> bool:
        """Whether it asks for one job by its whole name, and for nothing else."""
        return None not in (self.tenant, self.name) and self == JobFilter(self.tenant, self.name)


def page_of(wanted: JobFilter, limit: int) -> Call:
    """The statement that reads the least: each has an index of its own, in the order of the list."""
    begin, pattern = ("", "") if wanted.tenant is None else (wanted.tenant, ""), _pattern(wanted.text)
    after = wanted.after if wanted.after is not None and wanted.tenant in (None, wanted.after[0]) else begin
    place = {"after_tenant": after[0], "after_name": after[1], "last_tenant": wanted.tenant or _LAST, "most": limit}
    filters = {"name": wanted.name, "state": wanted.state, "type": wanted.type, "pool": wanted.pool,
               "managed_by": wanted.managed_by}  # fmt: skip
    if wanted.shadow:
        return "jobs_page_of_shadow", {**place, **filters, "pattern": pattern}
    if wanted.text is not None and not any(filters.values()):
        return "jobs_page_of_text", {**place, "pattern": pattern}
    path = next((path for field, path in _PATHS if filters[field] is not None), "jobs_page")
    return path, {**place, **filters, "pattern": pattern}


def _pattern(text: str | None) -> str:
    """For LIKE. No name is as long as what is cut off, and SQLite takes no pattern of any length."""
    return "%" if text is None else "%" + re.sub("([!%_])", r"!\1", text[: len(_LAST)]) + "%"

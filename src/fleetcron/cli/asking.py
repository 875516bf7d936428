"""What several commands share when they ask an API."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Doc: TypeAlias = Mapping[str, Any]  # of the API and of --json
_MOST: Final = 500  # of a page


def paged(
    page: Callable[..., Any], key: str, limit: int, cursor: str | None = None, **query: Any
) -> tuple[list[Any], bool, Doc]:
    """As many as asked for from page to page, whether there are more, and the first page with all that it says."""
    found: list[Any] = []
    first: Doc = {}
    while len(found) <= limit:
        got = page(limit=min(_MOST, limit + 1 - len(found)), cursor=cursor, **query)
        first = first or got
        found += got[key]
        cursor = got["next"]
        if cursor is None:
            break
    return found[:limit], len(found) > limit, first

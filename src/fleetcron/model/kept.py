"""What the store kept, made again: a rule from its fields.

Old and new nodes work side by side while a fleet is renewed. A value that this release does not know was written by a
newer one, and is refused here, at the door: nobody behind it meets half a rule, and nobody else looks for one.
"""

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

# what reading a newer document can raise
UNREADABLE: Final = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
_PLAIN: Final[Mapping[Any, tuple[type, ...]]] = {
    int: (int,), str: (str,), bool: (bool,), float: (float, int), type(None): (type(None),),
}  # fmt: skip


def made(kind: type[T], given: Mapping[str, Any]) -> T:
    """A ValueError for a value, a TypeError for a field that is not known."""
    allowed = _allowed(kind)  # type: ignore[arg-type]
    for name, value in given.items():
        if name in allowed:
            types, words = allowed[name]
            if type(value) not in types and not (type(value) is str and value in words):
                raise ValueError(f"{name} is {value!r}")
    return kind(**given)


@cache
def _allowed(kind: type[Any]) -> dict[str, tuple[frozenset[type], frozenset[str]]]:
    """By field: types and words. Without those that are made of other rules."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        ways = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        words = [word for way in ways if get_origin(way) is Literal for word in get_args(way)]
        plain = [way for way in ways if get_origin(way) is not Literal]
        if all(way in _PLAIN for way in plain):
            found[name] = frozenset(each for way in plain for each in _PLAIN[way]), frozenset(words)
    return found

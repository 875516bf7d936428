"""A beat schedule in Python source, read without running it: literals, crontab(), schedule(), timedelta(), solar().

For whoever does not want, or is not able, to import the app here. What is not written out (a name from elsewhere, a
call of a function) is said, with its line.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.imports.beat import FIELDS

_SCHEDULES: Final = ("beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE")
_ZONES: Final = ("timezone", "CELERY_TIMEZONE")
_SUMS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_HINT: Final = "name the app instead of the file: it is imported then"
_LOOKS: Final = ("get", "items", "keys", "values", "copy")  # they change nothing
_CRONTAB: Final = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")  # the order of its arguments
_LARGEST: Final = 10**12  # of a number in a sum: nobody multiplies texts or waits for huge powers


class _NotWritten(ValueError):
    """A value that only the running program knows."""


def read_beat_source(text: str, source: str) -> dict[str, Any]:
    """The description that `add_beat` reads, or a DefinitionError if there is no schedule in it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise DefinitionError([Mistake(f"{source}:{line}" if line else source, f"not Python: {error}", None)]) from None
    reader = _Reader(tree)
    described = reader.described()
    if described is None:
        hint = "beat_schedule = {…}, app.conf.beat_schedule = {…} or CELERY_BEAT_SCHEDULE = {…}; or name the app"
        raise DefinitionError([Mistake(source, "there is no beat schedule in it", hint)])
    return described


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self._constants: dict[str, ast.expr] = {}
        self._schedules: list[ast.expr] = []
        self._zone: ast.expr | None = None
        self._tree = tree
        for name, value in _assignments(tree):
            self._constants[name] = value
            if name.rpartition(".")[2] in _SCHEDULES:
                self._schedules.append(value)
            elif name.rpartition(".")[2] in _ZONES:
                self._zone = value

    def described(self) -> dict[str, Any] | None:
        """The schedule that was set last, and whatever is put in beside it: nothing of it goes without a word."""
        entries: list[dict[str, Any]] = []
        written = self._followed(self._schedules[-1]) if self._schedules else None
        if isinstance(written, ast.Dict):
            entries += self._entries(written)
            for other in self._schedules[:-1]:
                entries.append(_trouble(other, "?", f"the schedule of line {written.lineno} takes its place"))
        added = [entry for node in _in_order(self._tree) for entry in self._added(node)]
        if not isinstance(written, ast.Dict) and written is not None and added:
            entries.append(_trouble(written, "?", "the schedule is not written out"))
        if not isinstance(written, ast.Dict) and not added:
            return None
        return {**self._timezone(), "entries": _last_of_each([*entries, *added])}

    def _entries(self, written: ast.Dict) -> list[dict[str, Any]]:
        return [self._entry(key, value) for key, value in zip(written.keys, written.values, strict=True)]

    def _added(self, node: ast.AST) -> list[dict[str, Any]]:
        """What a statement puts into the schedule: one entry, several, or one that says why it cannot be read."""
        match node:
            case ast.Assign(targets=[ast.Subscript(value=whole, slice=key)], value=value) if _is_schedule(whole):
                return [self._entry(key, value)]
            case ast.AugAssign(target=whole, op=ast.BitOr(), value=more) if _is_schedule(whole):
                return self._merged(node, [more])
            case ast.Call(func=ast.Attribute(value=whole, attr="update")) if _is_schedule(whole):
                named = [self._entry(_key(word), word.value) for word in node.keywords]
                return [*self._merged(node, node.args), *named]
            case ast.Call(func=ast.Attribute(value=whole, attr=verb)) if _is_schedule(whole) and verb not in _LOOKS:
                return [_trouble(node, "?", f"{verb}() on the schedule cannot be read")]
            case ast.Delete(targets=targets):
                gone = [each for each in targets if isinstance(each, ast.Subscript) and _is_schedule(each.value)]
                return [_trouble(each, "?", f"'{ast.unparse(each)[:60]}' is deleted, and imported") for each in gone]
            case ast.Call(func=ast.Attribute(attr="add_periodic_task"), keywords=keywords):
                names = [self._text(word.value) for word in keywords if word.arg == "name"]
                return [_trouble(node, names[0] if names else "?", "add_periodic_task() is only known when it runs")]
        return []

    def _merged(self, node: ast.stmt | ast.expr, given: Sequence[ast.expr]) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for each in given:
            more = self._followed(each)
            if isinstance(more, ast.Dict):
                entries += self._entries(more)
            else:
                entries.append(_trouble(node, "?", "what is merged into the schedule is not written out"))
        return entries

    def _text(self, node: ast.expr) -> str:
        try:
            return str(self._value(node))
        except _NotWritten:
            return "?"

    def _timezone(self) -> dict[str, Any]:
        try:
            return {"timezone": None if self._zone is None else self._value(self._zone)}
        except _NotWritten as why:
            return {"timezone": None, "unknown_timezone": str(why)}

    def _entry(self, key: ast.expr | None, value: ast.expr) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": "?", "line": value.lineno}
        try:
            if key is None:
                raise _NotWritten("a schedule from elsewhere is merged in (**)")
            entry["name"] = str(self._value(key))
            fields = self._followed(value)
            if not isinstance(fields, ast.Dict):
                raise _NotWritten("the entry is not written out")
            for each, inner in zip(fields.keys, fields.values, strict=True):
                name = "**" if each is None else str(self._value(each))
                entry[name] = self._when(inner) if name == "schedule" else self._value(inner)
            missing = [name for name in ("task", "schedule") if name not in entry]
            if missing:
                raise _NotWritten(f"the entry has no {' and no '.join(missing)}")
        except _NotWritten as why:
            entry["trouble"], entry["hint"] = str(why), _HINT
        return entry

    def _when(self, node: ast.expr) -> dict[str, Any]:
        node = self._followed(node)
        if not isinstance(node, ast.Call):
            value = self._value(node)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _NotWritten("the schedule is neither a number nor crontab(), schedule(), timedelta() or solar()")
            return {"kind": "interval", "seconds": value}
        called = _dotted(node.func).rpartition(".")[2]
        given = {word.arg: word.value for word in node.keywords}
        if None in given:
            raise _NotWritten(f"{called}(**…) is not written out")
        if called == "crontab":
            given |= dict(zip(_CRONTAB, node.args, strict=False))
            words = {name: self._value(given[name]) if name in given else "*" for name in FIELDS}
            return {"kind": "crontab"} | {name: _as_field(word) for name, word in words.items()}
        if called == "timedelta":
            return {"kind": "interval", "seconds": self._delta(node).total_seconds()}
        if called == "schedule":
            every = node.args[0] if node.args else given.get("run_every")
            if every is None:
                raise _NotWritten("schedule() without run_every")
            if "relative" in given and self._value(given["relative"]):
                return self._when(every) | {"relative": True}
            return self._when(every)
        if called == "solar":
            return {"kind": "solar", "event": ast.unparse(node)}
        raise _NotWritten(f"{called}() is not one of crontab(), schedule(), timedelta(), solar()")

    def _delta(self, node: ast.Call) -> timedelta:
        values = [self._value(each) for each in node.args]
        named = {str(word.arg): self._value(word.value) for word in node.keywords}
        try:
            return timedelta(*values, **named)
        except (TypeError, OverflowError, ValueError) as error:
            raise _NotWritten(f"timedelta: {error}") from None

    def _followed(self, node: ast.expr) -> ast.expr:
        """What a name stands for, if this file says so."""
        for _ in range(10):
            if not isinstance(node, ast.Name) or node.id not in self._constants:
                break
            node = self._constants[node.id]
        return node

    def _value(self, node: ast.expr) -> Any:
        node = self._followed(node)
        match node:
            case ast.Constant(value) if value is None or isinstance(value, str | int | float | bool):
                return value
            case ast.List(items) | ast.Tuple(items) | ast.Set(items):
                return [self._value(each) for each in items]
            case ast.Dict(keys, values) if None not in keys:
                return {
                    str(self._value(key)): self._value(each)
                    for key, each in zip(keys, values, strict=True)
                    if key is not None
                }
            case ast.UnaryOp(ast.USub(), inner):
                return -self._number(inner)
            case ast.BinOp(left, sign, right) if type(sign) in _SUMS:
                return self._sum(sign, self._number(left), self._number(right))
        raise _NotWritten(f"'{ast.unparse(node)[:60]}' is not written out")

    def _sum(self, sign: ast.operator, left: float, right: float) -> float:
        try:
            return float(found) if isinstance(found := _SUMS[type(sign)](left, right), float) else int(found)
        except ZeroDivisionError:
            raise _NotWritten("a division by zero") from None

    def _number(self, node: ast.expr) -> float:
        value = self._value(node)
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST:
            raise _NotWritten(f"'{ast.unparse(node)[:60]}' is not a number")
        return value


def _trouble(node: ast.stmt | ast.expr, name: str, why: str) -> dict[str, Any]:
    return {"name": name, "line": node.lineno, "trouble": why, "hint": _HINT}


def _last_of_each(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As in Python: of two entries of one name the last one counts. It says which one it replaces."""
    found: dict[object, dict[str, Any]] = {}
    for at, entry in enumerate(entries):
        key = at if entry["name"] == "?" else entry["name"]
        if (first := found.pop(key, None)) is not None:
            entry["replaces"] = first["line"]
        found[key] = entry
    return list(found.values())


def _is_schedule(node: ast.expr) -> bool:
    return _dotted(node).rpartition(".")[2] in _SCHEDULES


def _key(word: ast.keyword) -> ast.expr | None:
    return None if word.arg is None else ast.Constant(word.arg)


def _in_order(tree: ast.Module) -> list[ast.stmt | ast.expr]:
    """Statements and expressions as they stand in the file."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _as_field(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """`name = value`, `app.conf.name = value` and `app.conf.update(name=value)`, wherever they stand."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if name := _dotted(target):
                        yield name, value
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                if name := _dotted(target):
                    yield name, value
            case ast.Call(func=ast.Attribute(attr="update"), keywords=keywords):
                for word in keywords:
                    if word.arg is not None:
                        yield word.arg, word.value


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inside = _dotted(node.value)
        return f"{inside}.{node.attr}" if inside else ""
    return ""

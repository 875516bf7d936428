"""What a handler returned or raised, or what was done to it, as an outcome. Pure."""

import json
import signal
import traceback
from typing import Any, Final, Literal, TypeAlias

from fleetcron.executors.context import BadPayload, GiveUp, Retry, Snooze
from fleetcron.executors.outputs import printable
from fleetcron.model.outcome import WORKER_STOPPED, Cancelled, Failed, Fault, Lost, Outcome, Snoozed, TimedOut

Why: TypeAlias = Literal["timeout", "cancel", "closing"]  # that an attempt is asked to stop

LARGEST_RESULT: Final = 64 * 1024
_LONGEST_TEXT: Final = 4_000
_LONGEST_TRACE: Final = 16_000
_TOO_DEEP = "nested too deeply"

OVERDUE: Final = Lost(Fault("overdue", "the worker stood still longer than its lease, so its work was ended"))

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def written(value: object) -> str | Failed:
    """The result as JSON, or why it cannot be one."""
    try:
        text = _encode(value)
        if "\\u0000" in text or not _is_clean(text):  # no database takes these
            text = _encode(_cleaned(value))
    except (TypeError, ValueError) as error:
        return _no_result("result_not_json", f"the result is not JSON: {error}; return JSON values, or nothing")
    except RecursionError:
        return _no_result("result_not_json", f"the result is {_TOO_DEEP}; return less")
    if len(text) > LARGEST_RESULT or len(text.encode()) > LARGEST_RESULT:
        hint = "store it elsewhere and return its address"
        return _no_result("result_too_large", f"the result has more than {LARGEST_RESULT // 1024} KiB of JSON; {hint}")
    return text


def raised(error: BaseException) -> Outcome:
    match error:
        case Snooze(seconds=seconds):
            return Snoozed(seconds)
        case BadPayload():  # without a trace: nothing of the user's has run
            return Failed(Fault("bad_payload", limited(_said(error))))
        case GiveUp():
            return Failed(Fault("give_up", limited(_said(error)), trace_of(error)))
        case Retry(after=after):
            after_ms = None if after is None else round(after * 1000)
            return Failed(Fault("retry", limited(_said(error)), trace_of(error)), after_ms, is_exact=True)
    return Failed(Fault(name_of(type(error)), limited(_said(error)), trace_of(error)))


def stopped(why: Why, timeout_ms: int, reason: str, error: BaseException | None = None) -> Outcome:
    """What becomes of an attempt that was asked to stop, however it ended then. S1-26."""
    trace = trace_of(error) if error is not None else None
    match why:
        case "timeout":
            return TimedOut(Fault("timeout", f"Job timed out after {timeout_ms / 1000:g}s", trace))
        case "cancel":
            return Cancelled(reason)
        case "closing":
            return Lost(Fault(WORKER_STOPPED, reason, trace))


def name_of(kind: type) -> str:
    """`ValueError`, `shop.errors.Broken`: what `retry_on` and `give_up_on` name."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def trace_of(error: BaseException) -> str:
    """Its end, which is where the reason stands."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # an exception whose own text cannot be made
        text = f"{name_of(type(error))}: (its text cannot be shown)"
    return limited(text, _LONGEST_TRACE, keep_end=True)


def signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal
        return f"signal {number}"


def limited(text: str, longest: int = _LONGEST_TEXT, *, keep_end: bool = False) -> str:
    """Storable, and not long."""
    text = printable(text.encode("utf-8", "replace").decode())
    if len(text) <= longest:
        return text
    return f"… {text[-longest:]}" if keep_end else f"{text[:longest]} …"


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # somebody's __str__
        return ""


def _no_result(code: str, text: str) -> Failed:
    return Failed(Fault(code, limited(text)))


def _is_clean(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return printable(value.encode("utf-8", "replace").decode())
        case dict():
            return {_cleaned(key): _cleaned(each) for key, each in value.items()}
        case list() | tuple():
            return [_cleaned(each) for each in value]
    return value

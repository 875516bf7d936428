"""What an HTTP answer means for an attempt. Pure."""

import json
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from fleetcron.executors.performer import SUCCEEDED
from fleetcron.executors.verdicts import LARGEST_RESULT, limited, written
from fleetcron.model.outcome import Failed, Fault, Outcome
from fleetcron.times.instants import to_ms

_LONGEST_WAIT_MS: Final = 24 * 3_600_000
_EXCERPT: Final = 500


class Answer(NamedTuple):
    """`body` is cut after 64 KiB, and `is_whole` says whether it was."""

    status: int
    reason: str
    content_type: str
    retry_after: str | None
    body: bytes
    is_whole: bool = True


def outcome_of(answer: Answer, now_ms: int) -> tuple[Outcome, str]:
    """And the result: the answer's own JSON, or its status."""
    if 200 <= answer.status < 300:
        return SUCCEEDED, _result(answer)
    excerpt = limited(answer.body.decode("utf-8", "replace").strip(), _EXCERPT)
    text = f"the answer was {answer.status} {answer.reason}".rstrip()
    fault = Fault(f"http_{answer.status}", f"{text}: {excerpt}" if excerpt else text)
    return Failed(fault, retry_after_ms(answer.retry_after, now_ms)), ""


def retry_after_ms(header: str | None, now_ms: int) -> int | None:
    """Seconds, or a date. Nobody may ask for more than a day; nonsense is nobody's wish."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:9]) * 1000, _LONGEST_WAIT_MS)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(0, to_ms(moment) - now_ms), _LONGEST_WAIT_MS)


def _result(answer: Answer) -> str:
    if answer.is_whole and len(answer.body) <= LARGEST_RESULT and _is_json(answer.content_type):
        try:
            result = written(json.loads(answer.body))
        except (ValueError, RecursionError):
            result = None
        if isinstance(result, str):
            return result
    return json.dumps({"status": answer.status})


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")

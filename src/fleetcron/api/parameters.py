"""What routes take: names, instants, pages; and bodies with fields that are all known."""

import base64
import binascii
import json
from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError
from starlette.convertors import IntegerConvertor, register_url_convertor

from fleetcron.api.problems import wrong_parameter
from fleetcron.errors import ScheduleError
from fleetcron.model.document import CalendarShape, JobShape
from fleetcron.model.payload import is_storable
from fleetcron.times.durations import duration_ms
from fleetcron.times.instants import to_ms
from fleetcron.times.once import Once
from fleetcron.views.cursors import cursor_of as cursor_of

MOST: Final = 500  # of a page


class Asked(BaseModel):
    """A body. What is not known is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Shown(BaseModel):
    """An answer. Whatever has other fields than the document says is a fault of ours, and found by the tests."""

    model_config = ConfigDict(extra="forbid")


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("has a character that cannot be stored")
    return text


def _duration(text: str) -> str:
    try:
        duration_ms(text)
    except ScheduleError as error:
        told = {"mistake": error.mistake.removeprefix("duration: "), "hint": error.hint}
        raise PydanticCustomError("duration", "{mistake}", told) from None
    return text


class _Number(IntegerConvertor):
    """`{run_id:number}`: no more digits than a number has here. Starlette's own takes any, and fails at thousands."""

    regex = "[0-9]{1,19}"


register_url_convertor("number", _Number())
Words = Annotated[str, AfterValidator(_storable)]
Duration = Annotated[Words, Field(max_length=60), AfterValidator(_duration)]  # checked with all the rest of a body
RunId = Annotated[int, Path(ge=1, le=2**63 - 1, description="the number of a run")]
Limit = Annotated[int, Query(ge=1, le=MOST, description="how many at most")]
Cursor = Annotated[str | None, Query(max_length=2000, description="`next` of the page before")]
Instant = Annotated[str | None, Query(max_length=64, description="RFC 3339, such as 2027-01-01T09:00:00Z")]


def instant_ms(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return to_ms(Once(text, "UTC", "shift", "first").at)
    except ScheduleError:
        raise wrong_parameter(name, "is not an instant", "write it as 2027-01-01T09:00:00Z") from None


def from_cursor(cursor: str | None, *kinds: type) -> list[Any] | None:
    """The parts, if they are of these kinds. They are no secret and grant nothing: every page is asked with the
    tenant of whoever asks."""
    if cursor is None:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        found = None
    if (
        not isinstance(found, list)
        or len(found) != len(kinds)
        or any(type(part) is not kind for part, kind in zip(found, kinds, strict=True))
        or any(isinstance(part, int) and not 0 <= part < 2**63 for part in found)
        or any(isinstance(part, str) and not is_storable(part) for part in found)
    ):
        raise wrong_parameter("cursor", "is not one that a page gave", "send `next` of the page before as it is")
    return found


class _JobSchema:
    """In the document it is a job; it is read by `model/reading.py`, which knows all mistakes and what to say."""

    def __get_pydantic_json_schema__(self, _core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(JobShape.__pydantic_core_schema__)


class _CalendarSchema:
    def __get_pydantic_json_schema__(self, _core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(CalendarShape.__pydantic_core_schema__)


JobBody = Annotated[dict[str, Any], _JobSchema()]
CalendarBody = Annotated[dict[str, Any], _CalendarSchema()]

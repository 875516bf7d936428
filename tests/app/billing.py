"""Jobs whose functions say what they take."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from fleetcron import Fleetcron
from fleetcron.executors.context import Context

if TYPE_CHECKING:
    from collections.abc import Sequence as Unseen

app = Fleetcron(name="billing")


class Line(BaseModel):
    text: str
    price: Decimal


class Invoice(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Literal["invoice"] = "invoice"
    customer: str
    due: datetime
    lines: list[Line] = []


class Refund(BaseModel):
    kind: Literal["refund"]
    amount: int


@dataclass
class Report:
    day: datetime
    pages: int = 1


class Letter(TypedDict):
    to: str
    copies: int


@app.job(on_demand=True)
def send_invoice(ctx: Context, payload: Invoice) -> list[Any]:
    return [type(payload).__name__, payload.due.isoformat(), str(sum(line.price for line in payload.lines))]


@app.job(every="1h", payload=Report(datetime(2027, 1, 1, tzinfo=UTC), 3))
async def print_report(ctx: Context, payload: Report) -> list[Any]:
    return [type(payload).__name__, payload.day.year, payload.pages]


@app.job(every="1h", payload={"to": "{{ tenant }}", "copies": 2})
def write_letter(ctx: Context, payload: "Letter") -> Any:
    return payload


@app.job(every="1h", payload={"kind": "refund", "amount": 3})
def book(ctx: Context, payload: Annotated[Invoice | Refund, Field(discriminator="kind")]) -> str:
    return type(payload).__name__


@app.job(every="1h", payload={"any": ["thing"]})
def takes_all(ctx: Context, payload: Mapping[str, Any]) -> Any:
    return payload


def has_no_day(ctx: Context, payload: Report) -> None:
    pass


def is_unseen(ctx: Context, payload: "Unseen[int]") -> None:
    pass


def has_pydantic() -> bool:
    return "pydantic" in sys.modules

"""docs/learn/jobs.md says what is true: its documents can be read, and its table has every field and default."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from fleetcron.errors import DefinitionError
from fleetcron.model.definition import Definition
from fleetcron.model.reading import json_schema, read_definitions, read_job, read_yaml
from fleetcron.model.rules import CalendarUse, CronEntry
from tests.model.documents import SMALLEST, job

PAGE = (Path(__file__).parents[2] / "docs/learn/jobs.md").read_text("utf-8")
# what the page says in words, because it depends on the rest of the job
IN_WORDS = {
    "name": "required",
    "schedule": "required",
    "run": "required",
    "type": "the handler's name",
    "schedule.dst_gap": "from the expression",
    "schedule.dst_fold": "from the expression",
    "schedule.anchor": "the creation",
}
WRITTEN = {"starts_ms": "starts_at", "ends_ms": "ends_at"}


def table() -> dict[str, str]:
    rows = PAGE.split("## Every field")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `([a-z_.]+)` \|.*\| ([^|]+) \|$", rows, re.MULTILINE))


def flat(document: dict[str, Any], path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in document.items():
        if name in ("retry", "overlap", "misfire", "alerts", "retention"):
            found |= flat(value, f"{name}.")
        else:
            found[path + name] = value
    return found


def test_every_field_of_a_definition_is_in_the_table() -> None:
    """S0-18 … S0-22, S2-10 … S2-15, S4-9, S4-10: each field is there for whoever looks for it."""
    rows = {row.split(".")[0] for row in table()}
    named = {WRITTEN.get(field.name, field.name.removesuffix("_ms")) for field in fields(Definition)}
    assert rows == named
    shapes = json_schema()["$defs"]
    for rule in ("Retry", "Overlap", "Misfire", "Alert", "Retention"):
        prefix = "alerts" if rule == "Alert" else rule.lower()
        assert {f"{prefix}.{field}" for field in shapes[f"{rule}Shape"]["properties"]} <= set(table())


def test_every_default_in_the_table_is_the_real_one() -> None:
    defaults = flat(read_job(SMALLEST).as_document()) | {
        "schedule.timezone": CronEntry("").timezone,
        "schedule.month_end": CronEntry("").month_end,
        "calendars.use": CalendarUse("").use,
        "calendars.on": CalendarUse("").on,
    }
    assert {row: default for row, default in table().items() if not default.startswith("`")} == IN_WORDS
    shown = {row: read_yaml(default.strip("`"), "") for row, default in table().items() if row not in IN_WORDS}
    assert shown == {row: defaults[row] for row in shown}
    assert set(defaults) - set(table()) == {"derived"}


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_the_documents_of_the_page_can_be_read(text: str) -> None:
    found = read_definitions(read_yaml(text, "jobs.md"))
    assert found.jobs


@pytest.mark.parametrize("text", re.findall(r"^\| `(\{.*?\})` \|", PAGE, re.MULTILINE))
def test_the_handlers_of_the_page_can_be_read(text: str) -> None:
    assert read_job(job(run=read_yaml(text.replace("\\|", "|"), "jobs.md"))).run


def test_the_mistakes_of_the_page_are_what_is_said() -> None:
    raw = {
        "jobs": [
            job(schedule={"cron": "0 2 * * *", "timezone": "EST"}, retry={"backoff": ["30s", "2x"]}),
            job(name="b"),
            job(name="c"),
            job(name="d", tiemout="5m"),
        ]
    }
    with pytest.raises(DefinitionError) as caught:
        read_definitions(raw)
    assert str(caught.value) in PAGE

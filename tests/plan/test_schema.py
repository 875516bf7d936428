"""`fleetcron schema`: every example and every document of the docs is valid, and what is wrong is not."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fleetcron.model.reading import read_yaml
from tests.plan.conftest import Moments

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(ROOT.glob("examples/**/*.yaml"))
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
FENCE = re.compile(r"^```ya?ml\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture
def schema(moments: Moments) -> jsonschema.Draft202012Validator:
    printed = moments("schema").stdout
    assert moments("schema", "--json").stdout == printed
    jsonschema.Draft202012Validator.check_schema(json.loads(printed))
    return jsonschema.Draft202012Validator(json.loads(printed))


def documents(page: Path) -> list[Any]:
    """What begins as a file of jobs does: a part of one would be a mistake of the page."""
    found = [read_yaml(block, page.name) for block in FENCE.findall(page.read_text("utf-8"))]
    return [each for each in found if isinstance(each, dict) and each.keys() & {"jobs", "calendars"}]


def test_every_example_is_valid(schema: jsonschema.Draft202012Validator) -> None:
    assert len(EXAMPLES) >= 2
    for path in EXAMPLES:
        schema.validate(read_yaml(path.read_text("utf-8"), path.name))


def test_every_document_of_the_docs_is_valid(schema: jsonschema.Draft202012Validator) -> None:
    found = [(page.name, each) for page in PAGES for each in documents(page)]
    assert len(found) >= 10
    for name, document in found:
        assert [f"{name}: {error.message}" for error in schema.iter_errors(document)] == []


JOB = {"name": "a", "schedule": {"cron": "0 2 * * *"}, "run": {"command": ["x"]}}


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobs": [{**JOB, "tiemout": "5m"}]},
        {"jobs": [{**JOB, "name": 1}]},
        {"jobs": [{"name": "a"}]},
        {"jobs": [{**JOB, "overlap": "sometimes"}]},
        {"jobs": [{**JOB, "run": {"comand": ["x"]}}]},
        {"jobs": [{**JOB, "schedule": {"cron": "0 2 * * *", "every": "1h"}}]},
        {"jobs": [{**JOB, "priority": 101}]},
        {"jobs": [{**JOB, "pool": "Not A Name"}]},
        {"jobs": [JOB], "env": ["not-a-variable"]},
        {"jobs": {}},
        {"job": []},
    ],
)
def test_what_is_wrong_is_not_valid(schema: jsonschema.Draft202012Validator, wrong: Any) -> None:
    assert not schema.is_valid(wrong)
    assert schema.is_valid({"jobs": [JOB], "x-defaults": {"anything": 1}})
    assert schema.is_valid({"jobs": [{**JOB, "pool": "reports-${REGION}"}], "env": ["REGION"]})


def test_the_line_for_editors_names_the_file_of_the_docs() -> None:
    page = (ROOT / "docs/operate/config-as-code.md").read_text("utf-8")
    assert "fleetcron schema > fleetcron.schema.json" in page
    assert "\n# yaml-language-server: $schema=fleetcron.schema.json\n" in page

"""`fleetcron schema`: the JSON Schema of job files, for editors and other checkers."""

from typing import Any

import click

from fleetcron.cli.when import json_option, print_json
from fleetcron.model.reading import json_schema


@click.command("schema")
@json_option
def command(as_json: bool) -> None:  # noqa: ARG001
    """Print the JSON Schema of job files. It is JSON with --json and without.

    In a YAML file the line `# yaml-language-server: $schema=fleetcron.schema.json` makes editors check and complete it.
    """
    print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **_before_values_are_in(json_schema())})


def _before_values_are_in(schema: dict[str, Any]) -> dict[str, Any]:
    """An editor sees a file as it is written: `pool: reports-${REGION}` is no name yet."""
    return {name: _loosened(name, each) for name, each in schema.items()}


def _loosened(name: str, value: Any) -> Any:
    match value:
        case dict():
            return _before_values_are_in(value)
        case list():
            return [_loosened("", each) for each in value]
        case str() if name == "pattern":
            return rf"(?:{value})|\$\{{"
    return value

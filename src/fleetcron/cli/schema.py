"""`fleetcron schema`: the JSON Schema of job files, for editors and other checkers."""

import click

from fleetcron.cli.when import json_option, print_json
from fleetcron.model.reading import json_schema


@click.command("schema")
@json_option
def command(as_json: bool) -> None:  # noqa: ARG001
    """Print the JSON Schema of job files. It is JSON with --json and without.

    In a YAML file the line `# yaml-language-server: $schema=fleetcron.schema.json` makes editors check and complete it.
    """
    print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **json_schema()})

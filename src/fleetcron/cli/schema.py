"""`fleetcron schema`: the JSON Schema of job files, for editors and other checkers."""

from typing import Any, Final

import click

from fleetcron.cli.apps import app_of
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import RefusedError
from fleetcron.model.reading import json_schema

_DIALECT: Final = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


@click.command("schema")
@click.argument("job", required=False)
@click.option("--app", "app_name", metavar="MODULE:NAME", help="Of the payload that JOB of this app takes.")
@json_option
def command(job: str | None, app_name: str | None, as_json: bool) -> None:  # noqa: ARG001
    """Print the JSON Schema of job files. It is JSON with --json and without.

    In a YAML file the line `# yaml-language-server: $schema=fleetcron.schema.json` makes editors check and complete it.

    With --app and JOB it is the schema of a payload, from the type that the job's function says it takes.
    """
    if (job is None) != (app_name is None):
        raise click.UsageError(
            "write JOB and --app together, such as: fleetcron schema send-invoice --app shop.jobs:app"
        )
    app = app_of(app_name)
    if app is None or job is None:
        print_json({**_DIALECT, **_before_values_are_in(json_schema())})
        return
    tenant, _, name = job.rpartition("/")
    if all((each.name, tenant or each.tenant) != (name, each.tenant) for each in app.declared):
        raise RefusedError(f"{app_name} has no job {job}")
    schema = app.payload_schema(name, tenant=tenant or None)
    if schema is None:
        raise RefusedError(f"the function of {job} does not say what it takes: write def f(ctx, payload: SomeModel)")
    print_json({**_DIALECT, **schema})


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

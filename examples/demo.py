"""What `make run` serves, beside the commands of demo.yaml: functions.

The same in a project of your own:  fleetcron serve --app demo:app
"""

from fleetcron import Fleetcron

app = Fleetcron("sqlite:///demo.db", name="demo")


@app.job(every="10s", overlap="queue", misfire="skip")
def report(ctx):
    """A function that says how far it is, and returns a result that is stored with its run."""
    ctx.log(f"the report of {ctx.scheduled_for:%H:%M:%S}")
    ctx.progress(0.5, "half of the rows")
    return {"rows": 42}


@app.job(every="20s", retry={"max_attempts": 3, "backoff": ["2s"]}, misfire="skip")
def flaky(ctx):
    """Fails twice and succeeds the third time: `fleetcron runs show` shows the attempts."""
    if ctx.attempt < 3:
        raise ConnectionError("the other side is not there yet")


@app.job(every="30s", retry={"max_attempts": 2, "backoff": ["1s"]}, misfire="skip")
def broken(ctx):
    """Never succeeds: its runs are dead letters, which `fleetcron dead` lists."""
    raise ValueError(f"cannot work on {ctx.idempotency_key}")

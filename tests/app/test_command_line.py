"""`--app shop.jobs:app` in an empty folder. Nodes are processes of their own; looking at what they do needs none."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.folder import Folder

SHOP = """
from fleetcron import Fleetcron

app = Fleetcron("sqlite:///shop.db", name="shop")

@app.job(cron="0 2 * * *", timezone="America/New_York", pool="reports")
def nightly_report(ctx):
    pass

@app.job(every="1s")
async def load_orders():
    pass
"""


@pytest.fixture
def shop(quick: Folder) -> Folder:
    (quick.path / "shop").mkdir()
    quick.write("shop/__init__.py", "")
    quick.write("shop/jobs.py", SHOP)
    return quick


def test_apply_syncs(shop: Folder) -> None:
    dry = shop("apply", "--app", "shop.jobs:app", "--dry-run").stdout
    assert "2 jobs: 2 created." in dry
    assert not (shop.path / "shop.db").exists()
    assert shop("apply", "--app", "shop.jobs:app").stdout.splitlines() == [
        "+  default/nightly-report  created  0 2 * * * America/New_York",
        "+  default/load-orders     created  every 1s",
        "2 jobs: 2 created.",
        "Look at them: fleetcron jobs. Run them: fleetcron serve --app shop.jobs:app.",
    ]
    shop.database = "sqlite:///shop.db"  # for the other commands; the app has its own
    without = SHOP.replace("nightly_report", "report").replace('"1s"', '"2s"')
    shop.write("shop/jobs.py", without)
    rehearsed = shop.json("apply", "--app", "shop.jobs:app", "--dry-run")["counts"]
    assert rehearsed == {"created": 1, "changed": 1, "unchanged": 0, "refused": 0, "paused": 1}
    assert shop("apply", "--app", "shop.jobs:app", "--by", "ann").stdout.splitlines()[:4] == [
        "+  default/report          created  0 2 * * * America/New_York",
        "~  default/load-orders     changed  schedule.every: 1s -> 2s",
        "-  default/nightly-report  paused   no longer in the code",
        "3 jobs: 1 created, 1 changed, 1 paused.",
    ]
    [paused, _] = shop.json("jobs", "history", "nightly-report")["revisions"]
    assert (paused["action"], paused["by"]) == ("pause", "app:shop (ann)")
    shop.write("shop/jobs.py", SHOP)
    pruned = ("apply", "--app", "shop.jobs:app", "--prune", "delete")
    assert "Delete 1 job of app:shop that the code no longer has (default/report)?" in shop(*pruned, code=1).stderr
    assert "--json asks nobody" in shop(*pruned, "--json", code=2).stderr
    assert shop.json(*pruned, "--dry-run")["counts"]["deleted"] == 1
    assert shop.json("jobs", "show", "nightly-report")["state"] == "paused"  # nothing was written before the answer
    back = shop(*pruned, "--yes").stdout
    assert "+  default/nightly-report  resumed  in the code again" in back
    assert "-  default/report          deleted  no longer in the code" in back
    assert [job["name"] for job in shop.json("jobs")["jobs"]] == ["load-orders", "nightly-report"]


def test_files_come_first_and_keep_what_is_theirs(shop: Folder) -> None:
    shop.write(
        "jobs.yaml",
        "calendars: [{name: free, holidays: [12-25]}]\n"
        "jobs: [{name: load-orders, schedule: {every: 1h}, run: {command: [x]}}]\n",
    )
    shop.write("shop/jobs.py", SHOP.replace('pool="reports"', 'calendars=["free"]'))
    said = shop("apply", "-f", "jobs.yaml", "--app", "shop.jobs:app", "--database", "sqlite:///both.db", code=1).stdout
    assert "+  default/nightly-report  created" in said
    assert "!  default/load-orders     refused  there is another job of this name" in said
    shown = shop.json("jobs", "show", "load-orders", "--database", "sqlite:///both.db")
    assert shown["definition"]["run"]["command"] == ["x"]
    assert not (shop.path / "shop.db").exists()


@pytest.mark.parametrize("isolation", ["host", "inline"])
def test_serve_syncs_and_works(shop: Folder, isolation: str) -> None:
    shop.write("shop/jobs.py", SHOP.replace('every="1s"', 'every="1s", pool="orders"'))
    shop.write("fleetcron.toml", f'[executor]\nisolation = "{isolation}"\n')
    for said in ("jobs of app:shop: 2 created", "jobs of app:shop: 2 unchanged"):
        with shop.serving("--app", "shop.jobs:app") as node:
            node.until(said)
            before = len(succeeded(shop))
            while len(succeeded(shop)) <= before:
                pass  # each look takes a while
            node.stop()


def succeeded(shop: Folder) -> list[object]:
    found: list[object] = shop.json(
        "runs", "--job", "load-orders", "--state", "succeeded", "--database", "sqlite:///shop.db", "--limit", "1000"
    )["runs"]
    return found


def test_serve_allows_the_functions_of_the_app_and_serves_its_pools(shop: Folder) -> None:
    script = (
        "import sys; from fleetcron.cli import serve, main; import fleetcron.node\n"
        "async def start(config): print(config.executor.handlers, config.worker.pools); raise SystemExit\n"
        "serve.Node.start = start\n"
        "sys.argv = ['fleetcron', 'serve', '--app', 'shop.jobs:app']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=shop.path, capture_output=True, text=True, check=True)
    assert done.stdout == "('shop.jobs:nightly_report', 'shop.jobs:load_orders') ('default=10', 'reports')\n"


@pytest.mark.parametrize(
    ("text", "app", "reason", "hint"),
    [
        (SHOP, "a", "'a' is not the name of an app", "write module:attribute, such as shop.jobs:app"),
        (SHOP, "nope:app", "there is no module nope in", "start it in the folder that has nope"),
        (SHOP, "a.nope:app", "there is no module a.nope in", "start it in the folder that has a"),
        (SHOP, "a.py:app", "there is no module a.py in", "did you mean a:app?"),
        (SHOP, "./jobs/a.py:app", "'./jobs/a.py:app' is not the name of an app", "did you mean jobs.a:app?"),
        (SHOP, "a:application", "a has no application", "did you mean a:app?"),
        ("x = 1", "a:app", "a has no app", "write app = Fleetcron() there"),
        (SHOP, "a:load_orders", "a:load_orders is a function, not a Fleetcron", "did you mean a:app?"),
        (
            "import nope",
            "a:app",
            "a cannot be imported: ModuleNotFoundError: No module named 'nope'",
            "a.py, line 1",
        ),
        ("\n1/0", "a:app", "a cannot be imported: ZeroDivisionError: division by zero", "a.py, line 2"),
        ("def f(:", "a:app", "a cannot be imported: SyntaxError: invalid syntax (a.py, line 1)", ""),
        ("raise SystemExit(0)", "a:app", "a cannot be imported: SystemExit: 0", "a.py, line 1"),
        (
            SHOP + "app.run()",
            "a:app",
            "a cannot be imported: RefusedError: app.run() was called while a is",
            "a.py",
        ),
        (SHOP.replace("sqlite", "mysql"), "a:app", "there is no store for mysql://", "write sqlite:///"),
        (SHOP.replace('"1s"', '"1x"'), "a:app", "a:load_orders: every: '1x' is not a duration", "write it as 30s"),
    ],
)
@pytest.mark.parametrize("command", ["apply", "serve"])
def test_what_is_wrong_with_an_app_is_told_before_anything_is_touched(
    quick: Folder, command: str, text: str, app: str, reason: str, hint: str
) -> None:
    quick.write("a.py", text)
    said = quick(command, "--app", app, code=2).stderr
    assert f": {reason}" in said
    assert f"hint: {hint}" in said or not hint
    assert not list(quick.path.glob("*.db"))


def test_the_app_of_the_docs(quick: Folder) -> None:
    page = (Path(__file__).parents[2] / "docs/learn/python.md").read_text("utf-8")
    first, typed, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    quick.write("jobs.py", typed)
    assert quick.json("apply", "--app", "jobs:app")["counts"]["created"] == 2
    assert quick("schema", "send-invoice", "--app", "jobs:app").json["required"] == ["customer", "amount", "due"]
    quick.write("jobs.py", first)
    counts = quick.json("apply", "--app", "jobs:app")["counts"]
    assert counts["created"] == 3
    wrong = first.replace('"15m"', '"15x"').replace('"2m"', '"2x"').replace("timeout=", "tiemout=")
    quick.write("jobs.py", wrong)
    said = quick("apply", "--app", "jobs:app", code=2).stderr
    assert said in page


def test_prune_is_about_one_source(quick: Folder) -> None:
    assert "or --app MODULE:NAME" in quick("apply", "-f", "jobs.yaml", "--prune", "keep", code=2).stderr

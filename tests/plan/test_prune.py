"""`apply --managed-by NAME --prune`: what vanished from the files is put to rest, and nobody else's job is touched."""

from typing import Any

from tests.plan.conftest import Moments

ONE = "  - {name: %s, schedule: {every: 1h}, run: {command: [x]}%s}\n"
MANAGED = ("--managed-by", "shop-files")


def write(moments: Moments, *names: str, **more: str) -> None:
    moments.write("jobs.yaml", "jobs:\n" + "".join(ONE % (name, more.get(name, "")) for name in names) or "jobs: []")


def apply(moments: Moments, *options: str, **more: Any) -> dict[str, str]:
    told = moments.json("apply", "-f", "jobs.yaml", *options, **more)
    return {job["name"]: job["done"] for job in told["jobs"]}


def states(moments: Moments) -> dict[str, str]:
    return {job["name"]: job["state"] for job in moments.json("jobs")["jobs"]}


def test_what_vanished_is_paused_and_comes_back(moments: Moments) -> None:
    write(moments, "a", "b")
    assert apply(moments, *MANAGED) == {"a": "created", "b": "created"}
    write(moments, "a")
    assert apply(moments, *MANAGED) == {"a": "unchanged"}  # without --prune nothing of the kind
    assert apply(moments, *MANAGED, "--prune", "--yes") == {"a": "unchanged", "b": "paused"}
    assert apply(moments, *MANAGED, "--prune", "--yes") == {"a": "unchanged"}  # it rests already
    assert states(moments) == {"a": "active", "b": "paused"}
    write(moments, "a", "b")
    assert apply(moments, *MANAGED) == {"a": "unchanged", "b": "resumed"}
    moments("jobs", "pause", "b", "--by", "ann")
    assert apply(moments, *MANAGED) == {"a": "unchanged", "b": "unchanged"}  # what a person paused stays paused


def test_plan_knows_that_a_changed_job_is_resumed(moments: Moments) -> None:
    """A rehearsal keeps neither the edit nor the pause before it."""
    write(moments, "a", "b")
    apply(moments, *MANAGED)
    write(moments, "a")
    apply(moments, *MANAGED, "--prune", "--yes")
    write(moments, "a", "b", b=", timeout: 5m")
    [told] = moments.json("plan", "jobs.yaml", *MANAGED, code=2)["jobs"]
    assert (told["change"], told["done"], told["ticks"]["appear"]) == ("+", "resumed", 2160)
    assert [each["field"] for each in told["changes"]] == ["timeout"]
    assert apply(moments, *MANAGED) == {"a": "unchanged", "b": "resumed"}
    assert moments.json("jobs", "show", "b")["definition"]["timeout"] == "5m"
    assert states(moments) == {"a": "active", "b": "active"}


def test_delete_frees_the_name(moments: Moments) -> None:
    write(moments, "a", "b")
    apply(moments, *MANAGED)
    write(moments, "a")
    assert apply(moments, *MANAGED, "--prune", "delete", "--yes")["b"] == "deleted"
    assert states(moments) == {"a": "active"}


def test_jobs_of_others_and_of_nobody_are_left_alone(moments: Moments) -> None:
    write(moments, "mine", "theirs", "nobodys")
    moments("apply", "-f", "jobs.yaml")
    write(moments, "theirs")
    apply(moments, "--managed-by", "other-files")  # takes over what belongs to nobody
    moments.write(
        "shop_prune.py",
        "from fleetcron import Fleetcron\napp = Fleetcron(name='shop')\n@app.job(every='1h')\ndef coded(ctx): ...\n",
    )
    moments("apply", "--app", "shop_prune:app")
    write(moments, "mine")
    assert apply(moments, *MANAGED, "--prune", "delete", "--yes") == {"mine": "changed"}
    assert set(states(moments)) == {"mine", "theirs", "nobodys", "coded"}
    write(moments, "mine", "theirs", "coded")
    said = moments("apply", "-f", "jobs.yaml", *MANAGED, code=1).stdout
    assert "there is another job of this name (other-files manages it), and shop-files does not take it over" in said
    assert "(app:shop manages it)" in said


def test_files_that_name_no_manager_take_nothing_over(moments: Moments) -> None:
    """They would make the jobs nobody's, and --prune would never find them again."""
    write(moments, "a", "b")
    apply(moments, *MANAGED)
    moments.write("shop_nobody.py", "from fleetcron import Fleetcron\napp = Fleetcron(name='shop')\n"
                  "@app.job(every='1h')\ndef coded(ctx): ...\n")  # fmt: skip
    moments("apply", "--app", "shop_nobody:app")
    write(moments, "a", "coded", "new", a=", timeout: 5m")
    planned = moments.json("plan", "jobs.yaml", code=1)["jobs"]
    assert {job["name"]: job["change"] for job in planned} == {"a": "!", "coded": "!", "new": "+"}
    told = moments.json("apply", "jobs.yaml", code=1)["jobs"]
    assert {job["name"]: job["done"] for job in told} == {"a": "refused", "coded": "refused", "new": "created"}
    assert [job["reason"] for job in planned] == [job["reason"] for job in told]
    assert "shop-files manages it" in told[0]["reason"]
    assert "if they are its files, add --managed-by shop-files; if not, choose another name" in told[0]["reason"]
    assert "change it in the code of that app" in told[1]["reason"]
    assert moments.json("jobs", "show", "a")["definition"]["managed_by"] == "shop-files"
    write(moments, "a", a=", timeout: 5m")
    assert moments("plan", "jobs.yaml", code=1).stdout.endswith("1 job: 1 refused.\nNothing was written.\n")
    write(moments, "a")
    assert apply(moments, *MANAGED, "--prune", "--yes") == {"a": "unchanged", "b": "paused"}


def test_a_job_that_names_a_manager_is_meant(moments: Moments) -> None:
    """What was exported is applied as it is; a job goes from files into code by naming the app; and on purpose."""
    write(moments, "a", "b")
    apply(moments, *MANAGED)
    moments.write("jobs.yaml", moments("export").stdout)
    assert apply(moments) == {"a": "unchanged", "b": "unchanged"}
    write(moments, "a", "b", a=", managed_by: 'app:shop'", b=", managed_by: other")
    assert apply(moments) == {"a": "changed", "b": "changed"}
    assert moments.json("jobs", "show", "b")["definition"]["managed_by"] == "other"


def test_it_asks_before_it_takes_something_away(moments: Moments) -> None:
    write(moments, "a", "b")
    apply(moments, *MANAGED)
    write(moments, "a", a=", timeout: 5m")
    question = "Pause 1 job of shop-files that the files no longer have (default/b)? [y/N]"
    assert question in moments("apply", "jobs.yaml", *MANAGED, "--prune", given="n\n", code=1).stderr
    assert "--json asks nobody" in moments("apply", "jobs.yaml", *MANAGED, "--prune", "--json", code=2).stderr
    assert states(moments) == {"a": "active", "b": "active"}
    assert moments.json("jobs", "show", "a")["revision"] == 1  # and nothing else was written before the answer
    moments("apply", "jobs.yaml", *MANAGED, "--prune", given="y\n")
    assert states(moments) == {"a": "active", "b": "paused"}
    assert "[y/N]" not in moments("apply", "jobs.yaml", *MANAGED, "--prune").stderr  # nothing to ask


def test_plan_shows_it_and_agrees_with_apply(moments: Moments) -> None:
    """Also where jobs that vanish depend on each other: a rehearsal keeps nothing, and has to know all the same."""
    write(moments, "a", "b", "c", "d", b=", depends_on: [a]", c=", depends_on: [b]", d=", depends_on: [a]")
    apply(moments, *MANAGED)
    write(moments, "d")
    for prune in ("pause", "delete"):
        plan = moments.json("plan", "jobs.yaml", *MANAGED, "--prune", prune, code=2)["jobs"]
        planned = {job["name"]: job["done"] for job in plan}
        assert planned == {"d": "changed", **dict.fromkeys("abc", f"{prune}d")}
        assert {job["name"]: job["change"] for job in plan} == {"d": "~", **dict.fromkeys("abc", "-")}
        assert all(job["ticks"]["vanish"] == 2160 for job in plan if job["change"] == "-")
        dry = apply(moments, *MANAGED, "--prune", prune, "--dry-run")
        assert dry == planned
    assert apply(moments, *MANAGED, "--prune", "delete", "--yes") == planned
    assert moments("plan", "jobs.yaml", *MANAGED, "--prune", "delete").stdout.endswith("Nothing to do.\n")


def test_what_others_still_depend_on_is_refused(moments: Moments) -> None:
    write(moments, "a")
    apply(moments, *MANAGED)
    moments.write("other.yaml", "jobs:\n" + ONE % ("b", ", depends_on: [a]"))
    moments("apply", "other.yaml")
    moments.write("jobs.yaml", "jobs: []")
    for command in (("plan",), ("apply", "--yes")):
        said = moments(*command, "-f", "jobs.yaml", *MANAGED, "--prune", "delete", code=1).stdout
        assert "b depends on it; change or delete what depends on it first" in said


def test_names_of_managers(moments: Moments) -> None:
    write(moments, "a", a=", managed_by: other")
    said = moments("apply", "jobs.yaml", *MANAGED, code=2).stderr
    assert "jobs.yaml:2:59: /jobs/0/managed_by: is other, and --managed-by says shop-files" in said
    for wrong in ("", "a\tb", "x" * 201):
        assert "write a name" in moments("apply", "jobs.yaml", "--managed-by", wrong, code=2).stderr
    assert "belong to Python apps" in moments("apply", "jobs.yaml", "--managed-by", "app:shop", code=2).stderr
    assert "add --managed-by NAME" in moments("apply", "jobs.yaml", "--prune", "pause", code=2).stderr
    assert "add --managed-by NAME" in moments("plan", "-f", "jobs.yaml", "--prune", code=1).stderr

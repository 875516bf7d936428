"""CronJobs of Kubernetes: manifests, lists, several documents; what is translated, and what is said."""

import pytest

from fleetcron.errors import DefinitionError
from fleetcron.imports.cronjobs import add_manifests
from fleetcron.imports.plan import Plan, Wish
from fleetcron.model.reading import read_definitions
from tests.imports.calendar_minutes import Minute, matching
from tests.imports.jobs import has, said, ticks

pytestmark = pytest.mark.xdist_group("minutes")  # one worker keeps the minutes of a year

# the example of the Kubernetes documentation
HELLO = """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: hello
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - name: hello
            image: busybox:1.28
            imagePullPolicy: IfNotPresent
            command:
            - /bin/sh
            - -c
            - date; echo Hello from the Kubernetes cluster
          restartPolicy: OnFailure
"""

SIDE = "          - {name: side, image: x}\n"

FULL = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly-report, namespace: shop, labels: {app: shop}}
spec:
  schedule: "30 2 * * MON-FRI"
  timeZone: America/New_York
  startingDeadlineSeconds: 200
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 600
      ttlSecondsAfterFinished: 100
      template:
        spec:
          serviceAccountName: reports
          nodeSelector: {disk: ssd}
          volumes: [{name: data, emptyDir: {}}]
          restartPolicy: Never
          containers:
          - name: report
            image: shop/report:4
            workingDir: /srv
            command: [python, report.py]
            args: ["--kind=$(KIND)", "--cost=$$(X)", "$(TOKEN)"]
            env:
            - {name: KIND, value: full}
            - {name: PYTHONPATH, value: /lib}
            - {name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}
            envFrom: [{configMapRef: {name: c}}]
            volumeMounts: [{name: data, mountPath: /data}]
            resources: {limits: {cpu: "1"}}
"""


def imported(text: str, **options) -> Plan:
    plan = Plan(options.pop("wish", Wish()))
    add_manifests(plan, "k.yaml", text, **options)
    return plan


def with_spec(line: str) -> str:
    return HELLO.replace('  schedule: "* * * * *"\n', line)


def test_the_example_of_the_documentation() -> None:
    plan = imported(HELLO)
    document = plan.jobs[0].document
    assert document["run"] == {"command": ["/bin/sh", "-c", "date; echo Hello from the Kubernetes cluster"]}
    assert document["schedule"] == {"cron": "* * * * *"}
    assert document["overlap"] == "allow"
    assert document["retry"]["max_attempts"] == 7
    assert "start_deadline" not in document
    assert has(said(plan, "note"), "without a starting deadline", "all start when one comes")
    assert has(said(plan, "differs"), "busybox:1.28")


def test_everything_at_once() -> None:
    plan = imported(FULL)
    document = plan.jobs[0].document
    assert document["schedule"] == {
        "cron": "30 2 * * MON-FRI", "timezone": "America/New_York", "dst_gap": "skip", "dst_fold": "both",
    }  # fmt: skip
    assert document["run"] == {
        "command": ["python", "report.py", "--kind=full", "--cost=$(X)", "$(TOKEN)"],
        "env": {"KIND": "full"},
        "cwd": "/srv",
    }
    assert (document["start_deadline"], document["timeout"], document["overlap"]) == ("200s", "600s", "collapse")
    assert document["misfire"] == {"policy": "latest", "window": "200s", "grace": "60s"}
    assert document["retry"]["max_attempts"] == 3
    texts = said(plan, "differs")
    assert has(texts, "PYTHONPATH")
    assert has(texts, "TOKEN", "a secret")
    assert has(texts, "$(TOKEN) is not known")
    assert has(texts, "of the pod", "serviceAccountName", "nodeSelector", "volumes")
    assert has(texts, "of the container", "resources", "volumeMounts", "envFrom")
    assert has(said(plan, "note"), "successfulJobsHistoryLimit", "90 days")
    assert len(read_definitions(plan.as_document()).jobs) == 1
    plain = imported(FULL, wish=Wish(defaults=True)).jobs[0].document
    assert plain.keys() == {"name", "description", "schedule", "run"}
    assert plain["schedule"] == {"cron": "30 2 * * MON-FRI", "timezone": "America/New_York"}


def test_several_documents_and_lists_keep_their_lines() -> None:
    item = HELLO.replace("\n", "\n  ").rstrip()
    service, listed = "kind: Service\nmetadata: {name: s}\n", f"apiVersion: v1\nkind: List\nitems:\n- {item}\n"
    text = f"# first\n---\n{HELLO}---\n{service}---\n{listed}"
    plan = imported(text.replace("batch/v1\n  kind", "batch/v1beta1\n  kind"))
    assert [(job.name, job.origin.line) for job in plan.jobs] == [("hello", 3), ("hello-2", 29)]
    assert text.split("\n")[28].startswith("- apiVersion")
    assert has(said(plan, "note"), "1 Service")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (with_spec('  schedule: "* * * *"\n'), "4 fields"),
        (with_spec('  schedule: "0 0 * * 7"\n'), "'7' is not a value"),
        (with_spec('  schedule: "0 22-3 * * *"\n'), "backwards"),
        (with_spec('  schedule: "@reboot"\n'), "does not know @reboot"),
        (with_spec('  schedule: "0 0 * * *"\n  timeZone: Mars/Base\n'), "Mars/Base"),
        (with_spec('  schedule: "0 0 * * *"\n  suspend: true\n'), "suspended"),
        (with_spec('  schedule: "0 0 * * *"\n  concurrencyPolicy: Sometimes\n'), "Sometimes"),
        (with_spec('  schedule: "0 0 * * *"\n  startingDeadlineSeconds: soon\n'), "'soon'"),
        (HELLO.replace("            command:\n            - /bin/sh\n", "            args:\n"), "inside the image"),
        (HELLO.replace("          - name: hello\n", f"{SIDE}          - name: hello\n"), "2 containers"),
        (HELLO.replace("batch/v1", "batch/v9"), "batch/v9"),
        (HELLO.replace("      template", "      parallelism: 3\n      template"), "parallelism is 3"),
        ("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\n", "spec.schedule is missing"),
        ("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec:\n", "spec.schedule is missing"),
        (with_spec("  suspend: false\n"), "spec.schedule is missing"),
        (with_spec('  schedule: " "\n'), "spec.schedule is missing"),
        ("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec: {schedule: '* * * * *'}\n", "0 containers"),
    ],
)  # fmt: skip
def test_what_is_left_out_says_why(text: str, reason: str) -> None:
    plan = imported(text)
    assert plan.jobs == []
    assert reason in said(plan, "left_out")[0]
    assert [each.origin.line for each in plan.findings if each.level == "left_out"] == [1]


def test_suspended_ones_on_demand() -> None:
    plan = imported(with_spec('  schedule: "0 0 * * *"\n  suspend: true\n'), suspended=True)
    assert has(said(plan, "differs"), "will run here", "jobs pause")


def test_templates_are_no_yaml() -> None:
    with pytest.raises(DefinitionError, match="not YAML"):
        imported(HELLO.replace("name: hello", 'name: {{ .Values.name }}: "x"', 1))


def test_an_interval() -> None:
    plan = imported(with_spec('  schedule: "@every 1h30m"\n'))
    assert plan.jobs[0].document["schedule"] == {"every": "1h30m"}
    assert has(said(plan, "differs"), "creation")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize(
    ("schedule", "rule"),
    [
        ("30 2 * * *", lambda at: (at.minute, at.hour) == (30, 2)),
        ("30 1 * * *", lambda at: (at.minute, at.hour) == (30, 1)),
        ("5/20 */6 * * *", lambda at: at.minute in (5, 25, 45) and at.hour % 6 == 0),
        ("0 3 ? * 1-5", lambda at: (at.minute, at.hour) == (0, 3) and 1 <= at.weekday <= 5),
        # a step takes the star away there, so either day field is enough; in crontabs both would have to match
        ("0 0 */2 * 1", lambda at: (at.minute, at.hour) == (0, 0) and (at.day % 2 == 1 or at.weekday == 1)),
        ("0 0 */1 * 1", lambda at: (at.minute, at.hour) == (0, 0) and at.weekday == 1),
        ("0 0 13 * 5", lambda at: (at.minute, at.hour) == (0, 0) and (at.day == 13 or at.weekday == 5)),
        ("0 0 10-12,* * fri", lambda at: (at.minute, at.hour) == (0, 0) and at.weekday == 5),
        ("0 12 * */5 *", lambda at: (at.minute, at.hour) == (0, 12) and at.month in (1, 6, 11)),
        ("@weekly", lambda at: (at.minute, at.hour, at.weekday) == (0, 0, 0)),
    ],
)  # fmt: skip
def test_a_year_of_ticks(schedule: str, rule, zone: str) -> None:
    """Next to every minute of the year: what falls into a gap is lost, what falls into a fold runs twice."""
    plan = imported(with_spec(f'  schedule: "{schedule}"\n  timeZone: {zone}\n'))
    theirs = list(matching(zone, rule))
    assert len(theirs) > 10
    assert ticks(plan.jobs[0]) == theirs


def test_the_slow_way_can_fail() -> None:
    def wrong(at: Minute) -> bool:
        return (at.minute, at.hour) == (30, 3)

    assert ticks(imported(with_spec('  schedule: "30 2 * * *"\n')).jobs[0]) != list(matching("UTC", wrong))

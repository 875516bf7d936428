"""Settings: three sources, all mistakes at once, nonsense refused with its reason, secrets masked."""

import re
from pathlib import Path

import pytest

from fleetcron.config import Config, CoordinationConfig, StoreConfig, load, read
from fleetcron.config.kinds import masked, span
from fleetcron.config.settings import settings
from fleetcron.errors import ConfigError
from fleetcron.store.postgres_connections import Connector
from fleetcron.store.postgres_url import parse

PAGE = Path(__file__).parents[2] / "docs/operate/configuration.md"


def mistakes(toml: str | None = None, env: dict[str, str] | None = None, flags: dict[str, object] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        read(toml, env or {}, flags or {})
    return str(caught.value)


def test_the_defaults_make_sense_and_are_what_the_design_says() -> None:
    """S0-30: lease TTL 15 s, heartbeat every 5 s."""
    config = read(None, {}, {})
    assert config == Config()
    assert (config.coordination.lease_ttl_s, config.coordination.heartbeat_s) == (15, 5)
    assert (config.scheduler.shards, config.scheduler.lookahead_s, config.scheduler.batch_rows) == (16, 60, 5000)
    assert config.store.url == "sqlite:///fleetcron.db"
    assert {shown.source for shown in config.shown()} == {"default"}


def test_the_file_gives_way_to_the_environment_and_that_to_flags() -> None:
    toml = '[coordination]\nlease_ttl = "30s"\nheartbeat = 4\n[scheduler]\nshards = 8\n'
    env = {"FLEETCRON_COORDINATION__LEASE_TTL": "45s", "FLEETCRON_SCHEDULER__SHARDS": "4", "HOME": "/home/me"}
    config = read(toml, env, {"scheduler.shards": 2, "node.region": None})
    assert (config.coordination.lease_ttl_s, config.coordination.heartbeat_s) == (45, 4)
    assert config.scheduler.shards == 2
    shown = {entry.name: (entry.value, entry.source) for entry in config.shown()}
    assert shown["coordination.lease_ttl"] == ("45s", "FLEETCRON_COORDINATION__LEASE_TTL")
    assert shown["coordination.heartbeat"] == ("4s", "fleetcron.toml")
    assert shown["scheduler.shards"] == ("2", "flag")
    assert shown["node.region"] == ("", "default")


def test_the_url_of_the_store_has_three_names() -> None:
    env = {"DATABASE_URL": "postgres://a/b"}
    assert read(None, env, {}).store.url == "postgres://a/b"
    env["FLEETCRON_DATABASE_URL"] = "postgresql://c/d"
    config = read('[store]\nurl = "sqlite:///x.db"', env, {})
    assert config.store.url == "postgresql://c/d"
    assert config.source_of("store.url") == "FLEETCRON_DATABASE_URL"
    env["FLEETCRON_STORE__URL"] = "postgresql://e/f"
    assert mistakes(env=env) == (
        "environment: FLEETCRON_DATABASE_URL: FLEETCRON_STORE__URL says something else; set one of them"
    )


def test_a_secret_may_come_from_a_file_and_is_never_shown(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://me:s3cr@t/:x@db.internal:5432/cron\n")
    config = read(None, {"FLEETCRON_DATABASE_URL_FILE": str(secret)}, {})
    assert config.store.url == "postgresql://me:s3cr@t/:x@db.internal:5432/cron"
    assert config.shown()[0] == ("store.url", "postgresql://me:***@db.internal:5432/cron", "FLEETCRON_DATABASE_URL")
    assert "FLEETCRON_DATABASE_URL is set too" in mistakes(
        env={"FLEETCRON_DATABASE_URL_FILE": str(secret), "FLEETCRON_DATABASE_URL": "postgresql://x/y"}
    )
    gone = mistakes(env={"FLEETCRON_NODE__REGION_FILE": str(tmp_path / "gone")})
    assert gone.endswith("gone cannot be read: No such file or directory")


def test_the_secret_of_signatures_is_bytes_and_never_shown(tmp_path: Path) -> None:
    secret = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
    (tmp_path / "secret").write_text(f"{secret}\n")
    config = read(None, {"FLEETCRON_EXECUTOR__SIGNING_SECRET_FILE": str(tmp_path / "secret")}, {})
    assert config.executor.signing_secret == secret
    shown = {entry.name: entry.value for entry in config.shown()}
    assert shown["executor.signing_secret"] == "***"
    assert secret not in repr(config)
    for wrong, why in (("hush!", "is not base64"), ("aHVzaA==", "a secret of 4 bytes is not from 24 to 64")):
        said = mistakes(env={"FLEETCRON_EXECUTOR__SIGNING_SECRET": wrong})
        assert why in said
        assert wrong not in said


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://h/d?user=me&password=hush&x=1", "postgresql://h/d?user=me&password=***&x=1"),
        ("postgresql://me@h/d", "postgresql://me@h/d"),
        ("postgresql://h:5432/d", "postgresql://h:5432/d"),
        ("sqlite:///fleetcron.db", "sqlite:///fleetcron.db"),
    ],
)
def test_what_is_masked(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_a_wrong_url_is_refused_without_telling_its_password() -> None:
    text = mistakes(env={"DATABASE_URL": "mysql://me:hush@db/shop"})
    assert text.startswith("environment: DATABASE_URL: there is no store for mysql://; write sqlite:///")
    assert "hush" not in mistakes('[store]\nurl = "me:hush@db/shop"')
    assert "has no path" in mistakes('[store]\nurl = "sqlite://fleetcron.db"')
    for memory in (":memory:", "sqlite:///:memory:"):
        assert read(None, {}, {"store.url": memory}).store.url == memory


def test_all_mistakes_are_told_at_once_with_their_places() -> None:
    toml = '[coordination]\nlease_tll = "15s"\nheartbeat = "soon"\n[planner]\nx = 1\n[scheduler]\nshards = 0\n'
    env = {"FLEETCRON_LEASE_TTL": "15s", "FLEETCRON_NODE_REGION": "eu", "FLEETCRON_NODE__ROLES": "scheduler,cook"}
    assert mistakes(toml, env, {"store.urll": "x"}).splitlines() == [
        "fleetcron.toml: coordination.lease_tll: is not a setting; did you mean coordination.lease_ttl?",
        "fleetcron.toml: [planner]: is not a setting; there are store, scheduler, coordination, node, worker, executor,"
        " secrets, api",
        "environment: FLEETCRON_LEASE_TTL: is not a setting; did you mean FLEETCRON_COORDINATION__LEASE_TTL?",
        "environment: FLEETCRON_NODE_REGION: is not a setting; did you mean FLEETCRON_NODE__REGION?",
        "flag: store.urll: is not a setting; did you mean store.url?",
        "fleetcron.toml: coordination.heartbeat: 'soon' is not a duration; "
        "write it as 500ms, 15s, 2m or a number of seconds",
        "fleetcron.toml: scheduler.shards: 0 is not between 1 and 1024; 1 is one leader with hot standby",
        "environment: FLEETCRON_NODE__ROLES: 'cook' is not one of them; write one or more of scheduler, worker, api",
    ]


def test_a_setting_in_the_wrong_room_is_found() -> None:
    assert "did you mean coordination.lease_ttl?" in mistakes("[scheduler]\nlease_ttl = 15")
    assert "is a group of settings" in mistakes("scheduler = 3")
    assert "is not TOML" in mistakes("[scheduler")


def test_variables_that_are_not_ours_are_left_alone() -> None:
    env = {
        "FLEETCRON_RUN_ID": "7",
        "FLEETCRON_TEST_POSTGRES18_URL": "postgresql://x/y",
        "FLEETCRON_PORT": "tcp://10.0.0.1:80",
        "FLEETCRON_PORT_80_TCP_ADDR": "10.0.0.1",
        "FLEETCRON_API_SERVICE_HOST": "10.0.0.1",
        "FLEETCRON_SERVICE_PORT_HTTP": "80",
        "FLEETCRON_CONFIG": "elsewhere.toml",
        "FLEETCRON_NODE__REGION": "",  # what compose writes for nothing
    }
    assert read(None, env, {}) == Config()
    assert "FLEETCRON_PROT: is not a setting" in mistakes(env={"FLEETCRON_PROT": "80"})


@pytest.mark.parametrize(
    ("toml", "reason"),
    [
        ("coordination.heartbeat = 6", "coordination.heartbeat: 6s is more than a third of the lease (15s)"),
        (
            "store.deadline = 6",
            "store.deadline: 6s makes a statement timeout of 4.2s (seven tenths), more than a quarter",
        ),
        ("coordination.margin = 5.5", "coordination.lease_ttl: 15s is shorter than a heartbeat, a renewal that hangs"),
        ("store.deadline = 11", "11 is too long: the most is 10s; no call may hang"),
        ("coordination.margin = 0", "0 is too short: the least is 50ms; without a margin a holder could"),
        ("coordination.margin = 6", "coordination.lease_ttl: 15s is shorter than"),
        ("coordination.node_ttl = 14", "coordination.node_ttl: 14s is less than three heartbeats (5s each)"),
        ('coordination.skew_warn = "10m"', "coordination.skew_warn: 10m is not below coordination.skew_refuse (5m)"),
        ("scheduler.shards = 1025", "1025 is not between 1 and 1024"),
        ('scheduler.lookahead = "900ms"', "900ms is too short: the least is 1s"),
        ("scheduler.batch_rows = 6000", "6000 is not between 1 and 5000"),
        ("scheduler.shards = true", "True is not a whole number"),
        ("scheduler.shards = 1.5", "1.5 is not a whole number"),
        ('node.region = "*"', "'*' cannot be a name"),
        ('node.log_format = "xml"', "'xml' is not one of them; write text or json"),
        ("node.roles = []", "[] is not a list; write one or more of"),
        ("coordination.lease_ttl = true", "True is not a duration"),
        ('coordination.lease_ttl = "15 s x"', "'15 s x' is not a duration"),
        ("coordination.lease_ttl = -1", "-1 is not a duration"),
    ],
)
def test_nonsense_is_refused_with_the_reason(toml: str, reason: str) -> None:
    assert reason in mistakes(toml)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("15s", 15), ("1m30s", 90), ("1m 30s", 90), ("20", 20), ("20.5", 20.5), (20, 20), ("30000ms", 30)],
)
def test_durations(given: object, seconds: float) -> None:
    assert read(None, {}, {"coordination.lease_ttl": given}).coordination.lease_ttl_s == seconds


def test_durations_in_milliseconds_and_as_text() -> None:
    assert read(None, {}, {"coordination.skew_warn": "250ms"}).coordination.skew_warn_ms == 250
    assert [span(seconds) for seconds in (0.25, 1, 1.5, 90, 120, 7200, 86_400)] == [
        "250ms",
        "1s",
        "1.5s",
        "90s",
        "2m",
        "2h",
        "1d",
    ]


def test_a_node_is_called_by_its_host_and_process_unless_it_has_a_name() -> None:
    """S0-33, S1-15: the instance id is hostname-pid."""
    assert read(None, {}, {}).node.named("web-1", 4711) == "web-1-4711"
    assert read(None, {"FLEETCRON_NODE__NAME": "left"}, {}).node.named("web-1", 4711) == "left"
    assert read('node.roles = ["worker", "scheduler", "worker"]', {}, {}).node.roles == ("scheduler", "worker")


def test_the_file_is_named_by_the_path_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "cron.toml"
    file.write_text("scheduler.shards = 3")
    assert load(file, {}, {}).source_of("scheduler.shards") == "cron.toml"
    assert load(None, {"FLEETCRON_CONFIG": str(file)}, {}).scheduler.shards == 3
    assert load(None, {}, {}) == Config()
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "gone.toml", {}, {})
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot be read: is not UTF-8"):
        load(file, {}, {})


def test_every_setting_is_documented_with_its_variable_default_and_meaning() -> None:
    page = PAGE.read_text("utf-8")
    rows = {row[0]: row for row in re.findall(r"^\| `([a-z_.]+)` \| `(\w+)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)}
    expected = {
        one.name: (one.name, one.variable, f"`{one.kind.show(one.default)}`" if one.default else "–", one.means)
        for one in settings()
    }
    assert rows == expected


def test_the_statement_timeout_that_is_judged_is_the_one_that_postgres_gets() -> None:
    connector = Connector(parse("postgresql://host/name"), deadline_s=StoreConfig().deadline_s)
    assert connector._settings["statement_timeout"] == str(round(StoreConfig().statement_timeout_s * 1000))


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        StoreConfig().url = "sqlite:///other.db"  # type: ignore[misc]
    assert CoordinationConfig(lease_ttl_s=2).lease_ttl_s == 2

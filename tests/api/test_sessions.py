"""Logging in with a key: what the cookie is, what it may, how it ends, and how no other site can use it."""

import re

import pytest

from fleetcron.api.context import LOGINS_A_MINUTE
from fleetcron.api.session_cookie import CSRF_HEADER, NAME
from fleetcron.model.access import Role, new_key, new_session
from fleetcron.policy.access import Limiter
from fleetcron.store.sessions import LASTS_MS
from tests.api.server import Answer, Api, serving
from tests.api.test_jobs import MINUTELY
from tests.store.floor import ok


class Browser:
    """One that keeps the cookie of the login, and sends what pages of the site send."""

    def __init__(self, api: Api, key: str, **headers: str) -> None:
        self.api = api.acting(None)
        self.login = self.api.ask("POST", "/session", key=key, headers=headers)
        assert self.login.status == 201, self.login.body
        self.cookie = self.login.headers["set-cookie"].partition(";")[0]
        self.csrf = self.login.json["csrf"]

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        own = self.api.url.partition("://")[2]
        said = {"Cookie": self.cookie, CSRF_HEADER: self.csrf, "Origin": self.api.url, "Host": own}
        sent = {name: value for name, value in (said | headers).items() if value}
        return self.api.ask(method, path, body, headers=sent)


def test_who_logs_in_is_its_key_until_he_logs_out(both: Api) -> None:
    key = both.key("bob", Role.OPERATOR, "acme", rate=600_000)
    browser = Browser(both, key)
    cookie = browser.login.headers["set-cookie"]
    assert re.fullmatch(rf"{NAME}=fcs_\w{{43}}; HttpOnly; Max-Age={LASTS_MS // 1000}; Path=/; SameSite=strict", cookie)
    for headers in ({"X-Forwarded-Proto": "https, http"}, {"Forwarded": 'for=10.0.0.1;proto="https"'}):
        assert "; Secure" in Browser(both, key, **headers).login.headers["set-cookie"]
    mine = browser.ask("GET", "/session").json
    assert (mine["name"], mine["role"], mine["tenant"]) == ("bob", "operator", "acme")
    assert (mine["began_at"], mine["expires_at"]) == ("2027-01-15T08:00:00Z", "2027-01-15T20:00:00Z")
    assert browser.ask("GET", "/me").json["name"] == "bob"
    assert browser.ask("POST", "/jobs", MINUTELY).json["created_by"] == "key:acme/bob"
    assert browser.ask("GET", "/keys").status == 403  # what the key may not
    other = Browser(both, key)
    gone = browser.ask("DELETE", "/session")
    assert (gone.status, gone.json) == (200, {"ended": True})
    assert "Max-Age=0" in gone.headers["set-cookie"]
    ended = browser.ask("GET", "/me")
    assert (ended.status, "log in again" in ended.json["detail"]) == (401, True)
    assert other.ask("GET", "/me").status == 200  # another session of the same key
    said = both.get("/events", kind="session_began")["events"] + both.get("/events", kind="session_ended")["events"]
    assert [each["by"] for each in said] == ["key:acme/bob"] * 5
    owner, neighbour = (both.key("eve", Role.ADMIN, tenant) for tenant in ("acme", "bolt"))
    seen = [both.get("/events", kind="session_began", key=each)["events"] for each in (owner, neighbour)]
    assert [len(each) for each in seen] == [4, 0]
    [made] = both.get("/events", kind="key_created", key=neighbour)["events"]
    assert (made["tenant"], made["detail"]["name"]) == ("bolt", "eve")
    told = browser.login.body.decode() + str(said) + str(both.get("/keys"))
    assert browser.cookie.partition("=")[2] not in told
    assert key not in told


def test_a_session_ends_with_its_time_and_with_its_key(both: Api) -> None:
    lasting, soon, revoked = both.key("a"), both.key("b", lasts_ms=60_000), both.key("c")
    browsers = [Browser(both, key) for key in (lasting, soon, revoked)]
    assert "Max-Age=60;" in browsers[1].login.headers["set-cookie"]

    def alive() -> list[bool]:
        return [each.ask("GET", "/me").status == 200 for each in browsers]

    assert alive() == [True, True, True]
    ok(both.do(both.store.keys.revoke(revoked.split("_")[1], "it leaked", actor="test")))
    assert alive() == [True, True, False]
    both.do(both.floor.clock.advance(60_000))
    assert alive() == [True, False, False]
    both.do(both.floor.clock.advance(LASTS_MS - 60_000))
    assert alive() == [False, False, False]


def test_no_other_site_changes_anything_with_a_session(api: Api) -> None:
    browser = Browser(api, api.key("bob", rate=600_000))
    refused: list[dict[str, str]] = [
        {CSRF_HEADER: ""},
        {CSRF_HEADER: "x" * 64},
        {CSRF_HEADER: Browser(api, api.key("eve")).csrf},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ]
    for headers in refused:
        for method, path in (("POST", "/jobs"), ("DELETE", "/session"), ("PATCH", "/tenants/default")):
            got = browser.ask(method, path, {}, **headers)
            assert (got.status, got.json["code"]) == (403, "forbidden"), (headers, method, got.body)
        assert browser.ask("GET", "/me", **headers).status == 200  # to look changes nothing
    allowed: list[dict[str, str]] = [{"Origin": ""}, {"Sec-Fetch-Site": "same-origin", "Host": "inside:1"}]
    for name, headers in enumerate(allowed):
        assert browser.ask("POST", "/jobs", {**MINUTELY, "name": f"n{name}"}, **headers).status == 201


def test_what_a_session_cannot(api: Api) -> None:
    """Work, begin another session, or be made up; and a key beside it counts alone."""
    browser = Browser(api, api.key("bob", rate=600_000))
    for path in ("/workers", "/workers/w~x~1/claim", "/workers/w~x~1/heartbeat"):
        assert browser.ask("POST", path, {}).status == 403
    assert "log in with the key" in browser.ask("POST", "/session").json["detail"]
    for text in ("", "fcs_", new_session().text, f"{browser.cookie.partition('=')[2]}x"):
        assert browser.ask("GET", "/me", Cookie=f"{NAME}={text}").status == 401
    viewer = api.key("eve", Role.VIEWER)
    mixed = api.ask("GET", "/me", key=viewer, headers={"Cookie": browser.cookie})
    assert mixed.json["name"] == "eve"
    assert api.get("/session", 404)["code"] == "not_found"
    assert api.delete("/session", 404)["code"] == "not_found"
    assert api.ask("POST", "/session", headers={"Idempotency-Key": "k"}).status == 422


def test_who_may_not_log_in_is_told_and_counted(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    worker, unknown = api.key("host", Role.WORKER), new_key().text
    for key, expected in ((worker, 403), (unknown, 401), (None, 401)):
        api.context.logins = Limiter(LOGINS_A_MINUTE)
        answers = [api.acting(key).ask("POST", "/session") for _ in range(7)]
        assert [each.status for each in answers] == [expected] * 5 + [429] * 2  # before the key is looked at
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert all("set-cookie" not in each.headers for each in answers)
    assert caplog.text.count("a login from 127.0.0.1 was refused") == 21
    assert worker not in caplog.text
    assert unknown not in caplog.text
    assert api.get("/me")["name"] == "ann"  # others, and keys, are not slowed down


def test_where_no_key_exists_nobody_logs_in() -> None:
    with serving(":memory:") as bare:
        assert "nobody has to log in" in bare.post("/session", status=409)["detail"]
        stale = {"Cookie": f"{NAME}={new_session().text}"}  # of another fleetcron under the same name
        assert bare.get("/me", headers=stale)["open_access"]

import asyncio
from typing import TYPE_CHECKING

from tests.services.chromium import Chromium

if TYPE_CHECKING:
    from playwright.async_api import Page

PAGE = """
<title>fleetcron</title>
<ul id="runs"></ul>
<script>
for (const run of ["one", "two"]) runs.append(Object.assign(document.createElement("li"), {textContent: run}))
</script>
"""


def test_it_renders_a_page(chromium: Chromium) -> None:
    async def scenario(page: "Page") -> tuple[str, list[str], float]:
        await page.set_content(PAGE)
        box = await page.locator("li").first.bounding_box()
        assert box is not None
        return await page.title(), await page.locator("li").all_inner_texts(), box["height"]

    title, runs, height = chromium.visit(scenario)
    assert title == "fleetcron"
    assert runs == ["one", "two"]
    assert height > 10  # a line of text: it found a font


def test_a_visit_leaves_nothing_to_the_next_one(chromium: Chromium) -> None:
    async def scenario(page: "Page") -> int:
        await page.context.add_cookies([{"name": "session", "value": "1", "url": "http://127.0.0.1"}])
        return len(await page.context.cookies())

    assert [chromium.visit(scenario), chromium.visit(scenario)] == [1, 1]


def test_other_tests_may_run_event_loops_meanwhile(chromium: Chromium) -> None:
    assert asyncio.run(asyncio.sleep(0, "ran")) == "ran"

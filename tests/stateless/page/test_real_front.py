"""The page on the real HTTP server, over the real cores."""

import shutil
from typing import Any

import pytest
from browser import FLAGS, PATIENCE, needs_browser
from http_front import TEXT, HttpFront
from manual_clock import ManualClock
from tenacious import LONG

from winnow.domain.cluster_state import ClusterState, NodeState, ReplicaState, ShardState
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.status import cluster_operations
from winnow.stateless.status.core import FrontVersion, StatusCore
from winnow.stateless.status.work import FrontWork

pytestmark = pytest.mark.timeout(300)


def showing(front: HttpFront) -> StatusCore:
    replica = ReplicaState(
        address="10.0.0.1:9000", state=NodeState.SERVING, passages=12, heard_seconds=0.5
    )
    cluster = ClusterState("index", [ShardState(0, 12, 7, [replica])])
    work = FrontWork(answering=front.core, questions=front.admission)
    return StatusCore(
        FrontVersion("1.2.3", "default", "print"),
        work,
        cluster=lambda _: cluster,
        groups=list,
        clock=ManualClock(),
    )


async def look(page: Any, address: str) -> None:
    await page.goto(f"http://{address}/")
    await page.fill("#question", "Who won the Zorblax Prize?")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".answer")
    assert await page.text_content(".answer mark") == TEXT[:17]
    assert await page.text_content(".answer figcaption") == "Zorblax Prizeyear2031"
    await page.locator("#cluster-state", has_text="1 question answered").wait_for()
    assert await page.text_content("#summary") == "12 passages in 1 shard"
    await page.click("#options summary")
    await page.fill("#filter", "year >")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#filter-wrong:visible")


@needs_browser
async def test_the_page_shows_what_the_front_says_and_marks_what_it_refuses() -> None:
    from playwright.async_api import async_playwright

    front = HttpFront()
    front.add(cluster_operations(showing(front), OperationLimits(LONG)))
    async with front.serving(), async_playwright() as driver:
        chromium = await driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=FLAGS, timeout=2 * PATIENCE
        )
        page = await chromium.new_page()
        page.set_default_timeout(PATIENCE)
        await look(page, front.address)
        await chromium.close()


async def test_a_front_without_pages_has_none() -> None:
    async with HttpFront(http_pages=False).serving() as client:
        assert (await client.get("/")).status_code == 404
        assert (await client.get("/page/page.js")).status_code == 404


async def test_the_policy_of_the_page_is_its_own() -> None:
    async with HttpFront().serving() as client:
        assert "script-src 'self'" in (await client.get("/")).headers["content-security-policy"]
        assert "script-src" not in (await client.get("/livez")).headers["content-security-policy"]

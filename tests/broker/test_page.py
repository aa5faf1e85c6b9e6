"""The page in a real browser: subscribe, publish, see the match, see why another did not match, unsubscribe."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select
from tests.broker.running import Running, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1300,1700",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed; on Debian: apt-get install chromium-driver")
    options = Options()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(driver))
    yield made
    made.quit()


class Page:
    def __init__(self, browser: webdriver.Chrome, url: str) -> None:
        self._browser = browser
        browser.get(url)
        self.until(lambda: browser.find_element(By.TAG_NAME, "body").get_attribute("data-ready"), "the page")

    def until(self, ask: Callable[[], Any], what: str) -> Any:
        return until(ask, what)

    def one(self, id: str) -> Any:
        return self._browser.find_element(By.ID, id)

    def all(self, css: str) -> list[Any]:
        return self._browser.find_elements(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        # In one step: the page may change between two.
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)"
        return [str(t) for t in self._browser.execute_script(script, css)]

    def write(self, id: str, text: str) -> None:
        self.one(id).clear()
        self.one(id).send_keys(text)

    def click(self, id: str) -> None:
        self._browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.one(id))
        self.one(id).click()

    def has_rows(self, rows: int) -> bool:
        return len(self.all("#mine tr")) == rows

    def complaints(self) -> list[str]:
        driver: Any = self._browser
        return [str(e["message"]) for e in driver.get_log("browser") if e["level"] == "SEVERE"]


def test_the_whole_round_on_the_page(broker: Running, browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = Page(browser, broker.url)
    Select(page.one("stream")).select_by_visible_text("stock")

    page.write("text", "prize < 100")
    said = page.until(lambda: "^" in page.one("problems").text and page.one("problems").text, "the caret")
    assert "prize < 100\n^^^^^" in said
    assert "did you mean price?" in said

    page.write("text", "name = 'IBM' AND price < 100")
    page.until(lambda: page.one("problems").text == "no mistakes", "the check")
    page.write("name", "cheap")
    page.click("do-subscribe")
    page.until(lambda: page.one("subscribed").text.startswith("Subscribed."), "the subscription")
    page.write("text", "name = 'SAP' OR vol > 5000 AND price > 100")
    page.write("name", "large")
    page.click("do-subscribe")
    page.until(lambda: len(page.all("#mine tr")) == 2, "two rows")
    assert all("active" in row for row in page.texts("#mine tr"))

    page.write("event", '{"name": "IBM", "price": 98.5, "vol": 700}')
    page.click("do-publish")
    page.until(lambda: page.one("published").text == "Published 1 to stock.", "publishing")
    page.until(lambda: any("98.5" in t and "cheap" in t for t in page.texts("#feed li")), "the match")
    assert not any("large" in t for t in page.texts("#feed li"))

    page.click("do-try")
    page.until(lambda: len(page.all("#verdicts li")) >= 2, "the verdicts")
    verdicts = page.texts("#verdicts li")
    (cheap,) = [v for v in verdicts if v.startswith("matches cheap")]
    assert "price < 100" in cheap
    (large,) = [v for v in verdicts if v.startswith("does not match large")]
    assert "It would match if this changed: name = 'SAP'" in large

    page.click("draw")
    page.until(lambda: page.one("picture").get_attribute("naturalWidth") not in (None, "0"), "the picture")
    shot = os.environ.get("HEADGATE_SCREENSHOT") or str(tmp_path / "page.png")
    browser.save_screenshot(shot)

    for _ in range(2):
        before = len(page.all("#mine tr"))
        browser.execute_script("arguments[0].click()", page.all("#mine button[aria-label^=Unsubscribe]")[0])
        page.until(partial(page.has_rows, before - 1), "one row less")
    assert page.all("#mine tr") == []
    assert page.complaints() == []


def test_the_page_shows_every_match_of_two_subscriptions(broker: Running, browser: webdriver.Chrome) -> None:
    page = Page(browser, broker.url)
    Select(page.one("stream")).select_by_visible_text("stock")
    for rows, text in enumerate(("vol > 900", "vol > 901 OR vol > 900"), 1):
        page.write("text", text)
        page.until(lambda: page.one("problems").text == "no mistakes", "the check")
        page.click("do-subscribe")
        page.until(partial(page.has_rows, rows), "the row")
    page.write("event", str([{"vol": 901 + n} for n in range(10)]).replace("'", '"'))
    page.click("do-publish")
    page.until(lambda: len(page.all("#feed li")) >= 20, "all matches")
    assert len(page.all("#feed li")) == 20
    assert page.texts("#mine .count") == ["10", "10"]


def test_the_page_shows_an_event_that_cannot_be_matched_and_why(broker: Running, browser: webdriver.Chrome) -> None:
    with broker.client() as client:
        client.subscribe("price < 100", stream="stock")
    page = Page(browser, broker.url)
    Select(page.one("stream")).select_by_visible_text("stock")
    page.write("event", '{"price": "abc"}')
    page.click("do-publish")
    said = "1 cannot be matched: price: the text 'abc' is not a DOUBLE"
    page.until(lambda: said in page.one("published").text, "the answer")
    page.until(lambda: any("is not a DOUBLE" in t and '"abc"' in t for t in page.texts("#errors li")), "the error")


def test_the_page_asks_nobody_else(broker: Running) -> None:
    web = Path(__file__).parents[2] / "src" / "headgate" / "broker" / "web"
    for file in web.iterdir():
        text = file.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, file.name
    with broker.http() as http:
        answer = http.get("/")
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert "<main" in answer.text and 'lang="en"' in answer.text


def test_every_field_of_the_page_has_a_name(broker: Running, browser: webdriver.Chrome) -> None:
    page = Page(browser, broker.url)
    Select(page.one("delivery")).select_by_visible_text("webhook")
    for field in page.all("input, select, textarea, button"):
        assert field.accessible_name, field.get_attribute("outerHTML")


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        ("diagram", "vol > 5 AND (price < 1 OR NOT name = 'IBM')", ["vol &gt; 5", "no match", "else"]),
        (
            "automaton",
            "SELECT * FROM stock AS a NEXT {$2.name = $1.name} stock AS b",
            ["start", "accept", "b.name = a.name"],
        ),
    ],
)
def test_a_text_is_drawn(broker: Running, kind: str, text: str, parts: list[str]) -> None:
    with broker.http() as http:
        answer = http.post("/v1/picture", json={"kind": kind, "text": text, "stream": "stock"})
    assert answer.headers["content-type"] == "image/svg+xml"
    for part in parts:
        assert part in answer.text


def test_a_cover_is_drawn_of_ones_own(broker: Running) -> None:
    with broker.client() as client, broker.http() as http:
        wide = client.subscribe("vol > 1", stream="stock", name="<wide>")
        narrow = client.subscribe("vol > 5", stream="stock", name="narrow")
        tickets = f"{wide.id}:{wide.ticket}, {narrow.id}:{narrow.ticket}"
        drawn = http.post("/v1/picture", json={"kind": "cover"}, headers={"Headgate-Tickets": tickets}).text
    assert "&lt;wide&gt;" in drawn and "narrow" in drawn
    assert drawn.count("covers") == 1


def test_the_matching_tree_of_a_pattern_in_an_event_is_drawn(broker: Running) -> None:
    with broker.client() as client, broker.http() as http:
        client.declare("offers", {"about": "graph"})
        text = "GRAPH { _:H a <urn:x:Sale> ; <urn:x:price> ?p . FILTER (?p < 400) }"
        event = {"about": "_:H a <urn:x:Sale> ; <urn:x:price> 350 ."}
        wish = {"kind": "tree", "text": text, "stream": "offers", "event": event}
        drawn = http.post("/v1/picture", json=wish).text
        assert "?p = " in drawn and "350" in drawn
        refused = http.post("/v1/picture", json={"kind": "automaton", "text": "vol > 1", "stream": "stock"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "this subscription has no automaton"

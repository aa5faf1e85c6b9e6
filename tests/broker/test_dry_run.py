"""The try-it box and the pictures: in a process apart, with a budget, and with every definition of the book."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.broker.conftest import declare
from tests.broker.running import Running, running, until

from headgate.broker.problems import Refused
from headgate.broker.side_process import SideProcess


def trial(broker: Running, *texts: str, event: dict[str, Any] | None = None, stream: str = "stock") -> httpx.Response:
    drafts = [{"text": text, "stream": stream} for text in texts]
    with broker.http() as http:
        return http.post(
            "/v1/try", json={"event": event or {"vol": 5}, "stream": stream, "drafts": drafts}, timeout=120
        )


def test_600_alternatives_are_explained(broker: Running) -> None:
    answer = trial(broker, " OR ".join(f"vol = {n}" for n in range(600)))
    assert answer.status_code == 200, answer.text
    (verdict,) = answer.json()["verdicts"]
    assert verdict["matched"]
    assert verdict["blocking"] == ["vol = 5"]


def test_250_pairs_are_explained_within_the_budget(broker: Running) -> None:
    answer = trial(broker, " AND ".join(f"(vol = {n} OR price > {n})" for n in range(250)))
    assert answer.status_code == 200, answer.text
    assert not answer.json()["verdicts"][0]["matched"]


def test_what_takes_too_long_is_refused_and_the_broker_goes_on() -> None:
    process = SideProcess(seconds=0.5)
    try:
        assert process.call(abs, -1) == 1
        with pytest.raises(Refused, match=r"took longer than 0\.5 seconds"):
            process.call(time.sleep, 60)
        assert process.call(abs, -2) == 2
    finally:
        process.close()


@pytest.mark.parametrize("problem", [RecursionError, ZeroDivisionError, SystemExit])
def test_what_raises_in_the_process_apart_is_an_answer(aside: SideProcess, problem: type[BaseException]) -> None:
    with pytest.raises(Refused, match=problem.__name__):
        aside.call(_raise, problem)


@pytest.fixture(scope="module")
def aside() -> Iterator[SideProcess]:
    process = SideProcess(seconds=60)
    yield process
    process.close()


def _raise(problem: type[BaseException]) -> None:
    raise problem("on purpose")


@pytest.mark.parametrize(
    "text",
    ["CREATE STREAM x (a BIGINT)", "NOT SELECT * FROM stock", "DROP STREAM stock", "PREFIX a: <urn:a>", "(SELECT"],
)
def test_a_statement_is_no_body(broker: Running, text: str) -> None:
    body = {"text": text, "stream": "stock"}
    with broker.http() as http:
        checked = http.post("/v1/check", json=body)
        assert (checked.status_code, checked.json().get("fine")) == (200, False), checked.text
        assert http.post("/v1/subscriptions", json=body).status_code == 422
        assert http.post("/v1/picture", json={"kind": "diagram", **body}).status_code == 422
    assert trial(broker, text).status_code == 422


@pytest.fixture(scope="module")
def defined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A broker whose book has prefixes, and an operator from a module."""
    folder = tmp_path_factory.mktemp("defined")
    with running(folder) as made:
        declare(made)
        script = "PREFIX x: <urn:x:>; CREATE STREAM offers (about GRAPH)"
        made.broker.store.extend(script)
        until(lambda: "offers" in {s["name"] for s in streams(made)}, "the stream")
        yield made


def streams(broker: Running) -> list[dict[str, Any]]:
    with broker.http() as http:
        found: list[dict[str, Any]] = http.get("/v1/streams").json()["streams"]
        return found


def test_prefixes_of_the_book_are_known_in_the_box_and_in_pictures(defined: Running) -> None:
    text = "GRAPH { _:H a x:Sale ; x:price ?p . FILTER (?p < 400) }"
    event = {"about": "_:H a <urn:x:Sale> ; <urn:x:price> 350 ."}
    answer = trial(defined, text, event=event, stream="offers")
    assert answer.json()["verdicts"][0]["matched"], answer.text
    with defined.client() as client:
        mine = client.subscribe(text, stream="offers")
    with defined.http() as http:
        own = {"Headgate-Tickets": f"{mine.id}:{mine.ticket}"}
        (verdict,) = http.post("/v1/try", json={"event": event}, headers=own, timeout=120).json()["verdicts"]
        assert verdict["matched"]
        wish = {"kind": "tree", "text": text, "stream": "offers", "event": event}
        assert "350" in http.post("/v1/picture", json=wish, timeout=120).text


def test_pulled_integers_are_exact(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        mine = client.subscribe("a = 1", stream="s")
        with broker.http() as http:
            http.post("/v1/streams/s/events", content=b'{"a": 1, "big": 123456789012345678901234567890}')
        (note,) = until(lambda: client.pull(mine.id, mine.ticket), "the notification")
        assert note["data"]["big"] == 123456789012345678901234567890
        assert json.dumps(note)

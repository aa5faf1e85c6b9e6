"""The loops of a broker survive whatever happens in them, and readiness tells."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.broker.running import Running, running, until
from tests.broker.test_delivery import receiving

from headgate.broker import local
from headgate.broker.local import _Matching
from headgate.broker.peers import Link
from headgate.plan import segment
from headgate.runtime import stateless
from headgate.sequences.engine import Session

TRADE = {"name": "string", "at": "timestamp"}
PAIR = "SELECT a.name AS name FROM trade AS a NEXT {$2.name = $1.name} trade AS b"


def ready(made: Running) -> tuple[int, str]:
    with made.http() as http:
        answer = http.get("/readyz")
        return answer.status_code, answer.text


@pytest.mark.parametrize("problem", [RecursionError("too deep"), SystemExit(3), MemoryError(), KeyError("x")])
def test_a_step_that_raises_is_tried_again_and_readiness_tells(
    problem: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, broken = _Matching.step, [False]

    def step(self: Any) -> Any:
        if broken[0]:
            raise problem
        return original(self)

    monkeypatch.setattr(_Matching, "step", step)
    monkeypatch.setattr(local, "_LONGEST_WAIT_S", 0.1)
    with running(tmp_path) as made, made.client() as client:
        client.declare("stock", {"vol": "bigint"})
        mine = client.subscribe("vol > 1", stream="stock")
        broken[0] = True
        client.publish("stock", [{"vol": 2}])
        status, text = until(lambda: found if (found := ready(made))[0] != 200 else None, "trouble") or (0, "")
        assert status == 503 and type(problem).__name__ in text
        broken[0] = False
        assert until(lambda: client.pull(mine.id, mine.ticket), "the notification")
        assert ready(made)[0] == 200


def test_a_text_that_cannot_be_compiled_is_left_out_and_its_owner_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = segment.compile_segment

    def compile_segment(entries: Any, *more: Any, **named: Any) -> Any:
        if any(entry.text == "vol > 13" for entry in entries.values()):
            raise ZeroDivisionError("a defect")
        return original(entries, *more, **named)

    monkeypatch.setattr("headgate.plan.compiled.compile_segment", compile_segment)
    with running(tmp_path) as made, made.client() as client:
        client.declare("stock", {"vol": "bigint"})
        mine = client.subscribe("vol > 1", stream="stock")
        theirs = client.subscribe("vol > 13", stream="stock")
        client.publish("stock", [{"vol": 20}])
        assert until(lambda: client.pull(mine.id, mine.ticket), "the notification")
        (alarm,) = made.broker.outbox.alarms()
        assert (alarm.subscription, alarm.code) == (theirs.id, "quarantined")
        assert "ZeroDivisionError: a defect" in alarm.reason
        assert ready(made)[0] == 200


def test_an_event_that_an_engine_raises_on_is_on_the_error_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = stateless.run

    def run(columns: Any, *more: Any, **named: Any) -> Any:
        if 13 in columns[("vol",)].values:
            raise ZeroDivisionError("a defect")
        return original(columns, *more, **named)

    monkeypatch.setattr(stateless, "run", run)
    with running(tmp_path) as made, made.client() as client:
        client.declare("stock", {"vol": "bigint"})
        mine = client.subscribe("vol > 1", stream="stock")
        client.publish("stock", [{"vol": 12}, {"vol": 13}, {"vol": 14}])
        got = until(lambda: n if len(n := client.pull(mine.id, mine.ticket)) >= 2 else [], "two notifications")
        assert [n["data"]["vol"] for n in got] == [12, 14]
        (problem,) = made.broker.store.logs.errors()
        assert (problem.code, problem.event, problem.subscriptions) == ("quarantined", "2", [mine.id])


@pytest.mark.parametrize("culprit", ["subscription", "event"])
def test_a_sequence_step_that_raises_costs_what_it_raises_on(
    culprit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Session.feed
    poisoned_by: set[str] = set()

    def feed(self: Session, batches: Any, *more: Any) -> Any:
        batches = list(batches)
        poisoned = any("poison" in columns[("name",)].values.to_pylist() for columns in batches)
        if poisoned and (culprit == "event" or poisoned_by.intersection(self.index.names)):
            raise ZeroDivisionError("a defect")
        return original(self, batches, *more)

    monkeypatch.setattr(Session, "feed", feed)
    with running(tmp_path) as made, made.client() as client:
        client.declare("trade", TRADE, "at")
        mine = client.subscribe(PAIR, stream="trade")
        theirs = client.subscribe(PAIR.replace("{$2", "{$2.name <> 'c' AND $2"), stream="trade")
        poisoned_by.add(theirs.id)
        now = round(1000 * time.time())
        names = ["x", "poison", "x"]
        client.publish("trade", [{"name": n, "at": 1000 * now + i} for i, n in enumerate(names)])
        got = until(lambda: client.pull(mine.id, mine.ticket), "the match")
        assert [n["output"]["name"] for n in got] == ["x"]
        if culprit == "subscription":
            (alarm,) = made.broker.outbox.alarms()
            assert (alarm.subscription, alarm.code) == (theirs.id, "quarantined")
        else:
            (problem,) = made.broker.store.logs.errors()
            assert (problem.code, problem.event) == ("quarantined", "2")
            assert client.pull(theirs.id, theirs.ticket)
        assert ready(made)[0] == 200


def unready(made: Running, loop: str) -> str:
    """What readiness says of a loop, as soon as it says something."""
    return until(lambda: found[1] if (found := ready(made))[0] == 503 and f'"{loop}"' in found[1] else "", loop)


def test_following_the_notifications_survives_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as made, made.client() as client, made.client() as listener:
        client.declare("stock", {"vol": "bigint"})
        mine = client.subscribe("vol > 1", stream="stock")
        notes = listener.listen(mine.id, mine.ticket, since=0)
        client.publish("stock", [{"vol": 2}])
        assert next(notes)["data"]["vol"] == 2
        with monkeypatch.context() as patch:
            patch.setattr(made.broker.hub, "hand", _raise)
            client.publish("stock", [{"vol": 3}])
            assert "ZeroDivisionError: a defect" in unready(made, "notifications")
        assert next(notes)["data"]["vol"] == 3
        assert until(lambda: ready(made)[0] == 200, "the end of the trouble")
        with made.http() as http:
            assert 'loop_failures_total{kind="notifications"}' in http.get("/metrics").text


@pytest.mark.parametrize(("loop", "call"), [("house", "_count_errors"), ("trimming", "_sweep")])
def test_keeping_the_house_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str, call: str) -> None:
    with running(tmp_path) as made:
        with monkeypatch.context() as patch:
            patch.setattr(made.broker, call, _raise)
            made.broker.turns = 58
            assert "ZeroDivisionError: a defect" in unready(made, loop)
        made.broker.turns = 58
        assert until(lambda: ready(made)[0] == 200, "the end of the trouble")


def test_telling_the_neighbours_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, link_key=b"a key of sixteen bytes") as made:
        made.broker.peers._links["far"] = Link("far", "http://127.0.0.1:9")
        with monkeypatch.context() as patch:
            patch.setattr(made.broker.peers, "_level", _raise)
            assert "ZeroDivisionError: a defect" in unready(made, "peers")
        assert until(lambda: ready(made)[0] == 200, "the end of the trouble")


def test_a_delivery_survives_a_defect_of_its_sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, allow_private=True) as made, made.client() as client, receiving() as receiver:
        client.declare("stock", {"vol": "bigint"})
        client.subscribe("vol > 1", stream="stock", delivery={"kind": "webhook", "url": receiver.url})
        with monkeypatch.context() as patch:
            patch.setattr(made.broker.webhooks, "call", _raise)
            client.publish("stock", [{"vol": 2}])
            assert "ZeroDivisionError: a defect" in unready(made, "delivery")
        until(lambda: receiver.got, "the call")
        assert until(lambda: ready(made)[0] == 200, "the end of the trouble")


def test_matching_that_does_not_move_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.broker.service.STUCK_S", 1.0)
    with running(tmp_path, engine="none") as made, made.client() as client:
        client.declare("stock", {"vol": "bigint"})
        assert ready(made)[0] == 200
        client.publish("stock", [{"vol": 2}])
        assert "1 events wait, and none was matched for" in unready(made, "matching")
        made.broker.shared.advance("elsewhere", 1)
        assert until(lambda: ready(made)[0] == 200, "the end of the trouble")


def _raise(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a defect")

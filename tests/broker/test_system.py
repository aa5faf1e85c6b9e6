"""Health, readiness, numbers, and what is told of the broker's state."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from tests.broker.running import Running, running, until

from headgate.cli.serve import JsonLines


def test_a_broker_is_ready_when_matching_runs_and_the_store_answers(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.http() as http:
        assert http.get("/healthz").json() == {"status": "alive"}
        assert http.get("/readyz").json()["status"] == "ready"
        engine = broker.broker.engine
        assert engine is not None
        engine.ready.clear()
        refused = http.get("/readyz")
        assert refused.status_code == 503
        assert refused.json()["detail"] == "matching: it has not started yet"


def test_the_numbers_of_prometheus_count_what_happened(broker: Running) -> None:
    with broker.client() as client, broker.http() as http:
        mine = client.subscribe("vol = 77", stream="stock")
        client.publish("stock", [{"vol": 77}, {"vol": 78}])
        next(client.listen(mine.id, mine.ticket, since=0))
        until(
            lambda: 'delay_seconds_count{delivery="sse",family="stateless"} ' in http.get("/metrics").text, "the delay"
        )
        text = http.get("/metrics").text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert int(lines["headgate_broker_published_events_total"]) >= 2
    assert int(lines['headgate_broker_delivered_total{kind="sse"}']) >= 1
    assert float(lines["headgate_broker_subscriptions"]) >= 1
    bounds = [int(v) for k, v in lines.items() if k.startswith('headgate_broker_delay_seconds_bucket{delivery="sse"')]
    assert bounds == sorted(bounds)
    assert bounds[-1] == int(lines['headgate_broker_delay_seconds_count{delivery="sse",family="stateless"}'])


def test_the_last_minutes_are_there_to_be_plotted(broker: Running) -> None:
    with broker.http() as http:
        found = until(lambda: (s := http.get("/v1/stats").json())["seconds"] and s, "the first second")
    assert {"published_events_total", "notifications_total", "delivered_total", "at"} <= set(found["seconds"][-1])
    assert found["engine"] == "local"


def test_a_log_of_json_has_one_object_a_line() -> None:
    try:
        raise ValueError("out of luck")
    except ValueError:
        record = logging.LogRecord("headgate.broker", logging.ERROR, "", 1, "it %s", ("broke",), sys.exc_info())
    line = JsonLines().format(record)
    assert "\n" not in line
    said = json.loads(line)
    assert (said["level"], said["message"]) == ("error", "it broke")
    assert "out of luck" in said["trace"]

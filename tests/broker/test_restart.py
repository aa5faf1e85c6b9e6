"""A broker is started again on the store that it left: everything is as it was, and what is not is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.broker.processes import PATIENCE_S, Process
from tests.broker.running import running, until

from headgate.broker.settings import STORE, Settings
from headgate.broker.supervisor import SparkEngine
from headgate.store import Store


def test_a_stream_that_was_named_first_survives_a_declared_one_and_a_restart(url: str, tmp_path: Path) -> None:
    with running(tmp_path, url) as made, made.client() as client:
        mine = client.subscribe("price < 100", stream="stock")
        client.declare("news", {"title": "string"})
    with running(tmp_path, url) as made, made.client() as client, made.http() as http:
        assert http.get("/readyz").status_code == 200
        client.publish("stock", [{"price": 99.5}, {"price": 100.5}])
        (found,) = until(lambda: client.pull(mine.id, mine.ticket), "the notification")
        assert found["data"] == {"price": 99.5}
        assert client.subscribe("price > 100", stream="stock").id


def test_what_is_set_aside_is_told_and_the_others_go_on(url: str, tmp_path: Path) -> None:
    with running(tmp_path, url) as made, made.client() as client:
        client.declare("stock", {"vol": "bigint"})
        theirs = client.subscribe("vol > 1", stream="stock")
        mine = client.subscribe("vol > 2", stream="stock")
    store = Store(url)
    body = json.dumps({"text": "vol RESEMBLES 1", "on": "stock", "missing": "null"})
    store.database.execute("UPDATE changes SET body = ? WHERE name = ?", (body, theirs.id))
    store.close()
    with running(tmp_path, url) as made, made.client() as client, made.http() as http:
        client.publish("stock", [{"vol": 3}])
        assert until(lambda: client.pull(mine.id, mine.ticket), "the notification")
        until(lambda: "quarantined" in http.get("/readyz").json(), "the count")
        ready = http.get("/readyz").json()
        assert ready["status"] == "ready"
        assert ready["quarantined"] == "1 definitions of the store are set aside, see /v1/quarantine"
        assert "headgate_broker_quarantined_definitions 1.0" in http.get("/metrics").text
        admin = {"Headgate-Key": made.key("admin", scopes=["subscribe", "admin"])}
        (found,) = http.get("/v1/quarantine", headers=admin).json()["quarantined"]
        assert (found["kind"], found["name"]) == ("subscription", theirs.id)
        own = {"Headgate-Tickets": f"{theirs.id}:{theirs.ticket}"}
        assert http.get("/v1/quarantine", headers=own).json()["quarantined"] == [found]
        assert http.get("/v1/quarantine").json()["quarantined"] == []
        assert client.subscription(theirs.id, theirs.ticket)["waiting"].startswith("it is set aside: ")
        client.unsubscribe(theirs.id, theirs.ticket)
        until(lambda: "quarantined" not in http.get("/readyz").json(), "nothing set aside any more")


def test_the_url_of_the_store_is_in_no_argument_of_the_child(tmp_path: Path) -> None:
    settings = Settings("postgresql://me:s3cret@db/x", tmp_path, b"x" * 16)
    assert not any("s3cret" in word for word in SparkEngine(settings, lambda _: None)._command())
    assert STORE == "HEADGATE_STORE"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_broker_on_spark_starts_again_and_refuses_a_store_that_is_older_than_its_checkpoint(tmp_path: Path) -> None:
    broker = Process("again", tmp_path / "data", engine="spark")
    broker.start()
    try:
        broker.wait()
        with broker.client() as client:
            mine = client.subscribe("price < 100", stream="stock")
            client.declare("news", {"title": "string"})
            client.publish("stock", [{"price": 1.0}])
            until(lambda: len(client.pull(mine.id, mine.ticket)) == 1, "the first", PATIENCE_S)
        broker.kill()
        files = {file: file.read_bytes() for file in broker.folder.glob("broker.db*")}
        broker.start()
        broker.wait()
        with broker.client() as client:
            client.publish("stock", [{"price": 2.0}])
            until(lambda: len(client.pull(mine.id, mine.ticket)) == 2, "the second", PATIENCE_S)
        broker.kill()
        for file in broker.folder.glob("broker.db*"):
            file.unlink()
        for file, content in files.items():
            file.write_bytes(content)
        broker.start()
        said = (broker.folder / "log").read_text
        until(lambda: "is ahead of its store" in said("utf-8"), "the refusal", PATIENCE_S)
        assert "restore the checkpoint of the same moment" in said("utf-8")
    finally:
        if broker.child is not None and broker.child.poll() is None:
            broker.kill()

"""Notifications in a topic of a real Kafka broker."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.running import PATIENCE_S, Running, running, until
from tests.spark.servers import free_port, process

from headgate.broker.client import BrokerError

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning"),  # in the client's own import
]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    script = str(ROOT / "scripts" / "kafka.sh")
    done = subprocess.run(["/bin/sh", script, "fetch"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no Kafka: {done.stderr.strip().splitlines()[-1:]}")
    folder, port = tmp_path_factory.mktemp("kafka"), free_port()
    with process(["sh", script, "run", str(port), str(folder / "data")], folder / "log", "Kafka Server started"):
        yield f"127.0.0.1:{port}"


@pytest.fixture
def broker(kafka: str, tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, kafka=kafka, first_wait=0.05) as found:
        with found.client() as client:
            client.declare("stock", {"name": "string", "vol": "bigint"})
        yield found


def test_notifications_go_into_a_topic_with_their_id_as_the_key(broker: Running, kafka: str) -> None:
    from kafka.consumer import KafkaConsumer

    with broker.client() as client:
        delivery = {"kind": "kafka", "topic": "headgate.mine", "key": "name", "interval": 3600}
        mine = client.subscribe("vol > 1", stream="stock", delivery=delivery)
        every = client.subscribe("vol > 2", stream="stock", delivery={"kind": "kafka", "topic": "headgate.all"})
        client.publish("stock", [{"name": "a", "vol": v} for v in (1, 2, 3)] + [{"name": "b", "vol": 9}])
        until(lambda: broker.broker.numbers.value("delivered_total") >= 5, "the deliveries")
    consumer = KafkaConsumer(
        "headgate.mine",
        "headgate.all",
        bootstrap_servers=[kafka],
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(PATIENCE_S * 1000),
    )
    got = []
    for record in consumer:
        note = json.loads(record.value)
        assert record.key.decode() == note["id"]
        got.append((record.topic, note["subscription"], note["data"]["name"], note["data"]["vol"]))
        if len(got) == 4:
            break
    consumer.close()
    assert sorted(got) == sorted(
        [
            ("headgate.mine", mine.id, "a", 2),
            ("headgate.mine", mine.id, "b", 9),
            ("headgate.all", every.id, "a", 3),
            ("headgate.all", every.id, "b", 9),
        ]
    )


@pytest.mark.parametrize("topic", ["others", "headgate.with blanks", "", "headgate." + "x" * 300])
def test_a_topic_of_others_is_refused(broker: Running, topic: str) -> None:
    with broker.client() as client, pytest.raises(BrokerError) as refused:
        client.subscribe("vol > 1", stream="stock", delivery={"kind": "kafka", "topic": topic})
    assert refused.value.status == 422


def test_a_broker_without_kafka_says_so(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        client.declare("stock", {"vol": "bigint"})
        with pytest.raises(BrokerError, match="this broker has no Kafka cluster"):
            client.subscribe("vol > 1", stream="stock", delivery={"kind": "kafka", "topic": "headgate.x"})

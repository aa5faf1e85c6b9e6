"""A Kafka topic as a subscriber's delivery: the key is the notification's id, which tells repetitions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from headgate.broker.delivery.form import to_json
from headgate.broker.delivery.push import Outcome
from headgate.broker.throttle import Interval
from headgate.errors import EnvironmentProblem
from headgate.store.logs import Notice
from headgate.store.outbox import Outbox


class Topics:
    """One producer for all topics; a page is done when the cluster has all of it."""

    def __init__(self, servers: str, outbox: Outbox, seconds: float) -> None:
        self._servers = servers
        self._outbox = outbox
        self._seconds = seconds
        self._producer: Any = None
        # A cluster that does not answer holds up these threads, and nobody else's.
        self._threads = ThreadPoolExecutor(8, "headgate-kafka")

    async def send(self, subscription: str, delivery: dict[str, Any], page: Sequence[Notice]) -> Outcome:
        call = partial(self._send, subscription, delivery, page)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _send(self, subscription: str, delivery: dict[str, Any], page: Sequence[Notice]) -> Outcome:
        from kafka.errors import KafkaError

        rule = Interval.of(delivery)
        sent: list[Any] = []
        said: dict[str, float] = {}
        try:
            producer = self._connected()
            for notice in page:
                if rule is not None:
                    key = rule.key_of(notice)
                    if not rule.passes(notice, said.get(key, self._outbox.said(subscription, key))):
                        continue
                    said[key] = notice.at
                sent.append(producer.send(delivery["topic"], key=notice.id.encode(), value=to_json(notice)))
            for future in sent:
                future.get(timeout=self._seconds)
        except (KafkaError, OSError, EnvironmentProblem) as problem:
            return Outcome(0, f"Kafka: {problem or type(problem).__name__}")
        for key, at in said.items():
            self._outbox.say(subscription, key, at)
        return Outcome(len(page))

    def _connected(self) -> Any:
        if self._producer is None:
            from kafka.producer import KafkaProducer

            self._producer = KafkaProducer(
                bootstrap_servers=self._servers.split(","),
                acks="all",
                linger_ms=5,
                max_block_ms=int(self._seconds * 1000),
            )
        return self._producer

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._producer is not None:
            self._producer.close(timeout=5)

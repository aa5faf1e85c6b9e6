"""The short form of `headgate bench broker`: nothing is lost or doubled while the broker and the database are killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.broker import Size, run
from tests.broker.running import running, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_nothing_is_lost_or_doubled_while_broker_and_database_are_killed(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    size = Size(subscriptions=1500, events=4000, churn=16, kills=1, seconds=1)
    try:
        rows = list(run("small", tmp_path, ["killed"], "local", size))
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    found = rows[0]
    assert found["killed"] == {"broker": 1, "database": 1}
    assert found["expected"] > 1000
    assert (found["lost"], found["doubled"], found["foreign"]) == (0, 0, 0), found


def test_two_brokers_on_one_database_share_the_work(postgres: str, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(b"CREATE SCHEMA shared_by_two")
    url = f"{postgres}?options=-csearch_path%3Dshared_by_two"
    with (
        running(tmp_path / "one", url) as one,
        running(tmp_path / "two", url, lead=False) as two,
        one.client() as at_one,
        two.client() as at_two,
    ):
        assert one.broker.leader and not two.broker.leader
        at_one.declare("stock", {"vol": "bigint"})
        mine = at_one.subscribe("vol > 1", stream="stock")
        other = at_two.subscribe("vol > 2", stream="stock")
        at_two.publish("stock", [{"vol": 2}, {"vol": 3}])
        # Each hears of both, whoever matched.
        until(lambda: len(at_two.pull(mine.id, mine.ticket)) == 2, "the one subscribed at the first")
        until(lambda: len(at_one.pull(other.id, other.ticket)) == 1, "the one subscribed at the second")
        first = next(at_two.listen(mine.id, mine.ticket, since=0))
        assert first["data"] == {"vol": 2}
        at_two.unsubscribe(mine.id, mine.ticket)
        at_one.publish("stock", [{"vol": 9}])
        until(lambda: len(at_one.pull(other.id, other.ticket)) == 2, "after the change at the second")
        assert len(two.broker.store.logs.notifications()) == 4

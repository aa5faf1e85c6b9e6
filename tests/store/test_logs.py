"""The logs of a store: events, notifications, errors, versions of micro-batches, and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.store import Store, files


def match(key: str, event: str = "e", subscription: str = "s") -> dict[str, str]:
    return {"id": key, "kind": "match", "stream": "stock", "event": event, "subscription": subscription}


def test_events_are_read_in_the_order_of_their_ids(store: Store) -> None:
    assert store.logs.last() == 0
    store.logs.append("stock", ['{"x": 1}', '{"x": 2}'])
    last = store.logs.append("news", ['{"y": 1}'])
    assert last == store.logs.last() == 3
    found = [(e.id, e.stream, e.body) for e in store.logs.events(1, 3)]
    assert found == [
        (2, "stock", '{"x": 2}'),
        (3, "news", '{"y": 1}'),
    ]
    assert [e.id for e in store.logs.events(0, 3, "stock")] == [1, 2]
    assert store.logs.until(0, 2) == 2
    assert store.logs.until(2, 10) == 3
    assert store.logs.until(3, 10) == 3
    assert store.logs.trim(2) == 2
    assert [e.id for e in store.logs.events(0, 3)] == [3]


def test_staged_rows_are_seen_by_nobody_before_their_commit(store: Store) -> None:
    store.logs.stage("job", [match("m1"), match("m2", subscription="t")])
    assert store.logs.notifications() == []
    store.logs.commit(["job"])
    assert [(n.seq, n.id, n.subscription) for n in store.logs.notifications()] == [(1, "m1", "s"), (2, "m2", "t")]
    assert store.logs.last_notification() == 2


def test_a_match_that_comes_again_stays_as_it_is(store: Store) -> None:
    store.logs.stage("one", [match("m1")])
    store.logs.commit(["one"])
    store.logs.stage("two", [match("m1"), match("m2")])
    store.logs.commit(["two"])
    assert [n.id for n in store.logs.notifications()] == ["m1", "m2"]


def test_an_aborted_job_leaves_nothing(store: Store) -> None:
    store.logs.stage("job", [match("m1")])
    store.logs.abort(["job"])
    store.logs.commit(["job"])
    assert store.logs.notifications() == []


def test_errors_have_a_log_of_their_own(store: Store) -> None:
    bad = {"id": "x1", "kind": "error", "event": "7", "code": "json", "reason": "not JSON", "text": "{"}
    store.logs.stage("job", [bad, match("m1")])
    store.logs.commit(["job"])
    (problem,) = store.logs.errors()
    assert (problem.id, problem.event, problem.code) == ("x1", "7", "json")
    assert (problem.reason, problem.text) == ("not JSON", "{")
    assert len(store.logs.notifications()) == 1


def test_the_first_version_of_a_batch_is_its_version_for_ever(store: Store) -> None:
    assert store.logs.recorded("q", 4) is None
    assert store.logs.version_of("q", 4, 10) == 10
    assert store.logs.version_of("q", 4, 12) == 10
    assert store.logs.version_of("other", 4, 12) == 12
    assert store.logs.recorded("q", 4) == 10


def test_a_file_comes_back_as_it_was(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PART", 10)
    (tmp_path / "in").write_bytes(bytes(range(35)))
    store.files.put("d1", tmp_path / "in")
    store.files.put("d1", tmp_path / "in")
    assert store.files.size("d1") == 35
    assert store.files.fetch("d1", tmp_path / "out") == 35
    assert (tmp_path / "out").read_bytes() == bytes(range(35))
    store.files.drop("d1")
    with pytest.raises(FileNotFoundError, match="the store has no file d1"):
        store.files.fetch("d1", tmp_path / "out")

"""What databases may do to us: a full disk, texts that one of them cannot keep, files that others can read."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

import pytest

import headgate as hg
from headgate.errors import HeadgateError
from headgate.store import Store
from headgate.store.database import Database, StoreUnavailable


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.add("a\0b", "x = 1"),
        lambda s: s.add("a", "x = 'a\0b'", on="s"),
        lambda s: s.add("a", "x = 1", on="s\0"),
        lambda s: s.add("a", "`x\0` = 1", on="s"),
        lambda s: s.stream("a\0b", {"x": "bigint"}),
        lambda s: s.stream("a", {"x\0": "bigint"}),
        lambda s: s.extend("PREFIX x: <http://x.org/\0>;"),
        lambda s: s.extend("CREATE ONTOLOGY o FROM 'a\0b.ttl';"),
        lambda s: s.logs.append("a\0b", ["{}"]),
        lambda s: s.add("\ud800", "x = 1", on="s"),
        lambda s: s.add("a", "x = '\ud800'", on="s"),
        lambda s: s.add("a", "x = 1", on="s", labels={"a": "\ud800"}),
    ],
)  # fmt: skip
def test_nul_and_what_is_no_text_are_refused_at_the_door(store: Store, change: object) -> None:
    assert callable(change)
    with pytest.raises(HeadgateError, match=r"NUL|null|cannot be kept|cannot be written down|half of a character"):
        change(store)
    assert store.version == 0
    store.add("fine", "x = 1", on="s")


def test_a_problem_whose_text_cannot_be_kept_is_written_without_what_is_wrong(store: Store) -> None:
    row = {"id": "p1", "kind": "error", "event": "7", "code": "json", "reason": "bad a\0b", "text": "a\ud800b"}
    store.logs.notify([row, {"id": "m1", "kind": "match", "event": "7", "subscription": "s", "output": "a\0b"}])
    store.logs.stage("job", [{**row, "id": "p2"}])
    store.logs.commit(["job"])
    assert [(p.reason, p.text) for p in store.logs.errors()] == [("bad a\ufffdb", "a?b")] * 2
    assert [n.output for n in store.logs.notifications()] == ["a\ufffdb"]


def test_a_full_disk_is_told_and_what_was_acknowledged_stays(tmp_path: Path) -> None:
    store = Store(tmp_path / "book.db")
    store.stream("s", {"x": "bigint"})
    pages = store.database.value("PRAGMA page_count")
    store.database.execute(f"PRAGMA max_page_count = {pages + 4}")
    acknowledged = 0
    with suppress(StoreUnavailable):
        while acknowledged < 1000:
            store.logs.append("s", ['{"text": "' + "x" * 1000 + '"}'])
            acknowledged += 1
    assert 0 < acknowledged < 1000
    with pytest.raises(StoreUnavailable, match="full"):
        store.add("long", "x = 1 OR " * 2000 + "x = 2")
    store.database.execute(f"PRAGMA max_page_count = {pages + 1000}")
    store.logs.append("s", ["{}"])
    store.add("after", "x = 1")
    assert store.logs.last() == acknowledged + 1
    assert list(store.look()) == list(Store(tmp_path / "book.db").book()) == ["after"]
    store.close()


def test_a_transaction_that_the_database_has_ended_is_no_second_problem(store: Store) -> None:
    def fail() -> None:
        with store.transaction():
            store.add("a", "x = 1")
            store.database.execute("ROLLBACK")
            raise KeyError("the first problem")

    with pytest.raises(KeyError, match="the first problem"):
        fail()
    assert store.add("b", "x = 1") == 2
    assert list(store.book()) == ["b"]


def test_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "book.db")
    store.add("a", "x = 1")
    assert {stat.S_IMODE(f.stat().st_mode) for f in tmp_path.iterdir()} == {0o600}
    store.close()


def test_a_store_that_all_can_read_is_closed_to_them_and_one_of_a_group_stays(tmp_path: Path) -> None:
    for before, after in ((0o644, 0o600), (0o660, 0o660)):
        path = tmp_path / f"{before:o}.db"
        Database(str(path)).close()
        path.chmod(before)
        Database(str(path)).close()
        assert stat.S_IMODE(path.stat().st_mode) == after


def test_a_password_is_in_no_message(tmp_path: Path) -> None:
    with pytest.raises(hg.EnvironmentProblem) as refused:
        Store("postgresql://me:s3cret@127.0.0.1:1/x")
    assert "s3cret" not in str(refused.value)

"""The cache of a host: a plan comes once, whole or not at all, and is found by its content."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headgate as hg
from headgate.spark import cache, ship
from headgate.spark.cache import Fetch, Filed


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "cache"))
    cache.forget()
    return tmp_path / "cache"


def plan(text: str = "x > 1") -> hg.Plan:
    return hg.Subscriptions().stream("s", {"x": "bigint"}).add("a", text).compile()


def copying(source: Path) -> Fetch:
    def fetch(filed: Filed, target: Path) -> int:
        return target.write_bytes((source / filed.name).read_bytes())

    return fetch


def test_a_plan_is_filed_under_its_content(home: Path) -> None:
    first, second = cache.keep(plan().save), cache.keep(plan().save)
    assert first == second
    assert [f.name for f in home.glob("*.plan")] == [first.name]
    assert cache.keep(plan("x > 2").save) != first


def test_the_same_text_on_another_schema_is_another_file() -> None:
    other = hg.Subscriptions().stream("s", {"x": "double"}).add("a", "x > 1").compile()
    assert cache.keep(plan().save) != cache.keep(other.save)


def test_a_plan_is_fetched_once_and_opened_once(home: Path, tmp_path: Path) -> None:
    sent = ship.filed(plan(), b"", None, tmp_path / "shared")
    fetches = [("shared", copying(tmp_path / "shared"))]

    def opened() -> hg.Plan:
        return cache.plan(sent.head, sent.segments, fetches)

    first = opened()
    assert opened() is first
    cache.forget()
    assert first.match([{"x": 2}]).num_rows == opened().match([{"x": 2}]).num_rows == 1
    assert sorted((m.digest, m.bytes, m.origin) for m in cache.moved()) == sorted(
        (f.digest, f.size, "shared") for f in sent.files
    )


def test_plans_share_the_segments_they_have_in_common() -> None:
    book = hg.Subscriptions().stream("s", {"x": "bigint"}).add("a", "x > 1")
    before = ship.filed(book.compile(), b"", None)
    after = ship.filed(book.add("b", "x > 2").compile(), b"", None)
    one, other = (cache.plan(sent.head, sent.segments, []) for sent in (before, after))
    assert one.segments[0] is other.segments[0]
    assert (len(one), len(other)) == (1, 2)


def test_of_many_that_ask_at_once_one_fetches(tmp_path: Path) -> None:
    filed = cache.keep(plan().save, tmp_path / "shared")
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: cache.path(filed, [("shared", copying(tmp_path / "shared"))]), range(32)))
    assert len(paths) == 1
    assert len(cache.moved()) == 1


def test_a_file_that_was_cut_short_is_not_taken(home: Path, tmp_path: Path) -> None:
    filed = cache.keep(plan().save, tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / filed.name).write_bytes((tmp_path / "good" / filed.name).read_bytes()[:-1])
    origins = [(name, copying(tmp_path / name)) for name in ("none", "bad", "good")]
    cache.path(filed, origins)
    assert [m.origin for m in cache.moved()] == ["good"]
    (home / filed.name).unlink()
    with pytest.raises(
        hg.PlanError, match=rf"(?s)the plan {filed.digest} does not reach this host: .*it is not what was sent"
    ):
        cache.path(filed, origins[:2])
    assert not list(home.glob("*.plan"))


def test_what_nobody_asked_for_in_a_week_is_dropped(home: Path) -> None:
    old, used = cache.keep(plan("x > 1").save), cache.keep(plan("x > 2").save)
    for filed in (old, used):
        os.utime(home / filed.name, (0, 0))
    cache.path(used)
    new = cache.keep(plan("x > 3").save)
    assert {f.name for f in home.glob("*.plan")} == {used.name, new.name}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filed = cache.keep(plan().save)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(hg.EnvironmentProblem, match=r"the cache folder .* cannot be written"):
        cache.path(filed)


def test_the_cache_folder_is_for_its_user_alone(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache.keep(plan().save)
    assert home.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("HEADGATE_CACHE")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = cache.folder()
    assert [p.stat().st_mode & 0o777 for p in (own.parent, own)] == [0o700, 0o700]


@pytest.mark.parametrize("level", ["plans", "."])
@pytest.mark.parametrize("trick", ["link", "open", "file"])
def test_a_cache_folder_that_others_could_have_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, trick: str
) -> None:
    monkeypatch.delenv("HEADGATE_CACHE")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    planted = tmp_path / f"headgate-{os.getuid()}" / level
    if trick == "link":
        (tmp_path / "theirs").mkdir()
        planted.parent.mkdir(exist_ok=True, mode=0o700)
        planted.symlink_to(tmp_path / "theirs")
    elif trick == "open":
        planted.mkdir(parents=True)
        planted.chmod(0o777)
    else:
        planted.parent.mkdir(exist_ok=True, mode=0o700)
        planted.write_text("")
    with pytest.raises(hg.EnvironmentProblem, match=r"the cache folder .* (is not a folder|can be written by others)"):
        cache.keep(plan().save)


def test_a_cache_folder_of_somebody_else_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.folder()
    monkeypatch.setattr("os.getuid", lambda: home.stat().st_uid + 1)
    with pytest.raises(hg.EnvironmentProblem, match=r"the cache folder .* belongs to another user"):
        cache.folder()


def test_a_plan_that_was_swapped_is_fetched_again(home: Path, tmp_path: Path) -> None:
    sent = ship.filed(plan("x > 1"), b"", None, tmp_path / "shared")
    other = ship.filed(plan("x < 1"), b"", None)
    fetches = [("shared", copying(tmp_path / "shared"))]

    def swap() -> None:
        (home / sent.segments[0].name).write_bytes((home / other.segments[0].name).read_bytes())

    swap()
    assert cache.plan(sent.head, sent.segments, fetches).match([{"x": 2}]).num_rows == 1
    cache.forget()
    swap()
    with pytest.raises(hg.PlanError, match="does not reach this host"):
        cache.plan(sent.head, sent.segments, [])

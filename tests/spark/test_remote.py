"""A real standalone cluster and a real Connect server: the matches of the process, and each plan once to each host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.remote import COUNT
from tests.spark.servers import cluster, connect_server, moved, run
from tests.spark.ticks import book, expected, ticks

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remote")


@pytest.fixture(scope="module")
def master(here: Path) -> Iterator[str]:
    with cluster(here) as url:
        yield url


@pytest.fixture(scope="module")
def server(here: Path) -> Iterator[str]:
    with connect_server(here) as url:
        yield url


def as_set(rows: list[list[str]]) -> set[tuple[str, ...]]:
    made = {tuple(row) for row in rows}
    assert len(made) == len(rows)
    return made


def check_each_file_once(moves: list[dict[str, str]], origin: str) -> None:
    """A plan of one segment is two files: the segment and the head."""
    assert [move["origin"] for move in moves] == [origin] * 2
    assert len({move["digest"] for move in moves}) == 2


def test_a_cluster_matches_as_the_process_and_each_host_gets_the_plan_once(master: str, here: Path) -> None:
    rows = run("tests.spark.remote", "match", master, str(here), env={"HEADGATE_CACHE": str(here / "driver")})
    assert as_set(rows) == expected(book(), ticks(COUNT))
    for host in ("cache0", "cache1"):
        check_each_file_once(moved(here / host), "session:")
    assert moved(here / "driver") == []


def test_a_folder_that_all_hosts_see_is_enough(master: str, here: Path) -> None:
    shared = here / "shared"
    env = {"HEADGATE_CACHE": str(here / "driver"), "PYTHONHASHSEED": "1"}
    before = {host: len(moved(here / host)) for host in ("cache0", "cache1")}
    for file in (*(here / "cache0").glob("*.plan"), *(here / "cache1").glob("*.plan")):
        file.unlink()
    rows = run("tests.spark.remote", "match", master, str(here), "--plans", str(shared), env=env)
    assert as_set(rows) == expected(book(), ticks(COUNT))
    for host, count in before.items():
        check_each_file_once(moved(here / host)[count:], str(shared))


def test_connect_matches_as_the_process_and_the_plan_travels_once(server: str, here: Path) -> None:
    rows = run("tests.spark.remote", "match", server, str(here), env={"HEADGATE_CACHE": str(here / "client")})
    assert as_set(rows) == expected(book(), ticks(COUNT))
    check_each_file_once(moved(here / "cache"), "session:")


def test_a_query_started_over_connect_follows_its_store(server: str, here: Path) -> None:
    folder = here / "stream"
    folder.mkdir()
    rows = run("tests.spark.remote", "start", server, str(folder), env={"HEADGATE_CACHE": str(here / "client")})
    events = ticks(40)
    assert as_set(rows) == expected(book(), events[:20]) | expected(book().remove("large"), events[20:])

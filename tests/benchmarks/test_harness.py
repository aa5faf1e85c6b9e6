"""A peer as a process: it is asked by lines, timed by its own clock, and leaves nothing behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks.peers.harness import Failed, Harness, System, make
from benchmarks.workloads import files

PEER = """
import sys
print("a greeting of some library")
print('{"loaded": 2}', flush=True)
for line in sys.stdin:
    if line.startswith("run"):
        sum(range(3_000_000))
        print('{"matches": 5}', flush=True)
    elif line.startswith("build"):
        print('{"rules": 1, "cpu_s": 0.25}', flush=True)
    else:
        raise SystemExit("it broke")
"""


@pytest.fixture
def fake(tmp_path: Path) -> System:
    (tmp_path / "peer.py").write_text(PEER)
    return System("fake", "A fake", "Python", (sys.executable, str(tmp_path / "peer.py")))


def test_a_run_gives_its_answer_and_the_processor_time_of_that_process(fake: System, tmp_path: Path) -> None:
    with Harness(fake, tmp_path) as peer:
        answer, seconds = peer.ask("run 1")
        assert answer == {"matches": 5}
        assert seconds > 0.001
        assert peer.peak_bytes() > 1 << 20


def test_a_peer_may_tell_its_own_time(fake: System, tmp_path: Path) -> None:
    with Harness(fake, tmp_path) as peer:
        assert peer.ask("build")[1] == 0.25


def test_a_peer_that_ends_is_reported_with_its_last_words(fake: System, tmp_path: Path) -> None:
    with Harness(fake, tmp_path) as peer, pytest.raises(Failed, match="it broke"):
        peer.ask("matches")


def test_a_tool_that_is_not_installed_is_named() -> None:
    system = System("x", "x", "none", ("x",), ("no-such-tool-here", "build"), ".")
    assert make(system) == "no-such-tool-here is not installed"


def test_our_own_harness_answers_the_protocol(tmp_path: Path) -> None:
    from benchmarks.peers.harness import SYSTEMS

    folder = files.folder("bridge-5-5", tmp_path)
    with Harness(SYSTEMS["headgate"], folder) as peer:
        assert peer.ask("build")[0] == {"rules": 5}
        matches, _ = peer.ask("matches")
        assert len(matches) == 5
        assert peer.ask("run 3")[0] == {"matches": 3 * sum(map(len, matches))}

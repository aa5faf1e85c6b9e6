"""Progress is for people at a terminal, on stderr, and for nobody else."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from headgate.cli.progress import Reading, busy


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """No fixture: between fixtures and test pytest puts its own stderr in place."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return made


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.jsonl"
    path.write_text("{}\n" * 100)
    return str(path)


def test_a_terminal_sees_how_far_a_file_is(events: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with Reading(events) as reading:
        assert len(reading.source().read()) == 300
        reading.found(100, 7)
    assert "100 events, 7 matches" in shown.getvalue()


def test_a_terminal_sees_what_the_program_is_busy_with(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with busy("compiling rules.hg"):
        pass
    assert "compiling rules.hg" in shown.getvalue()


def test_without_a_terminal_nothing_is_written(events: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    with busy("compiling"), Reading(events) as reading:
        assert reading.source() is None
        reading.found(100, 7)
    assert quiet.getvalue() == ""


@pytest.mark.parametrize("path", ["-", "events.parquet"])
def test_what_cannot_say_how_far_it_is_is_read_as_it_comes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with Reading(path) as reading:
        assert reading.source() is None
        reading.found(5, 1)
    assert "5 events, 1 matches" in shown.getvalue()

"""The numbers of a query: counted up, shown in a line, written and served as Prometheus text."""

from __future__ import annotations

import pickle
import urllib.error
import urllib.request
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from headgate.spark.metrics import Listener, Metrics


def counted(file: Path | None = None) -> Metrics:
    metrics = Metrics('my "query"', file)
    metrics.batch(0, 2.0, 100, 30, 1, version=3, subscriptions=7, plan_bytes=1000)
    metrics.batch(1, 0.5, 50, 10, 0, version=4, subscriptions=8, plan_bytes=1100)
    return metrics


def test_batches_add_up_and_rates_are_those_of_the_last() -> None:
    metrics = counted()
    assert str(metrics) == (
        'my "query": batch 1, version 4, 8 subscriptions, 150 events (100/s), 40 matches (20/s), 1 errors, lag 0'
    )


def test_the_text_is_what_prometheus_reads(tmp_path: Path) -> None:
    file = tmp_path / "headgate.prom"
    metrics = counted(file)
    assert file.read_text("utf-8") == metrics.text()
    assert "# TYPE headgate_events_total counter\n" in metrics.text()
    assert 'headgate_events_total{query="my \\"query\\""} 150\n' in metrics.text()
    assert [f.name for f in tmp_path.iterdir()] == ["headgate.prom"]


def test_the_text_is_served() -> None:
    metrics = counted()
    server = metrics.serve(0)
    try:
        at = f"http://127.0.0.1:{server.server_port}"
        with urllib.request.urlopen(f"{at}/metrics") as answer:  # noqa: S310 - the address is ours
            assert answer.read().decode() == metrics.text()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{at}/else")  # noqa: S310 - the address is ours
    finally:
        server.shutdown()
        server.server_close()


def test_the_lag_is_what_the_sources_are_ahead() -> None:
    metrics = Metrics("q")
    kafka = SimpleNamespace(latestOffset='{"t": {"0": 10, "1": 7}}', endOffset='{"t": {"0": 8, "1": 7}}')
    files = SimpleNamespace(latestOffset=None, endOffset='{"logOffset": 3}')
    event = SimpleNamespace(progress=SimpleNamespace(name="q", sources=[kafka, files]))
    Listener("q", metrics).onQueryProgress(event)
    assert metrics.numbers.lag == 2
    Listener("other", metrics).onQueryProgress(SimpleNamespace(progress=SimpleNamespace(name="q", sources=[])))
    assert metrics.numbers.lag == 2


def test_a_terminal_shows_one_line_that_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "run.toml"
    config.write_text('store = "b"\ncheckpoint = "c"\n[sources.s]\nformat = "rate"\n', "utf-8")
    metrics, ends = counted(), iter([False, False, True])
    running = SimpleNamespace(wait=lambda seconds: next(ends), metrics=metrics)
    verb = import_module("headgate.cli.run")
    monkeypatch.setattr(import_module("headgate.spark.launch"), "launch", lambda described: running)
    monkeypatch.setattr(verb, "sys", SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: True)))
    said = CliRunner().invoke(verb.run, [str(config)], catch_exceptions=False, color=True).stderr
    assert said.count(f"\r\x1b[2K{metrics}") == 2
    assert said.endswith(f"\n{metrics}\n")


def test_an_interrupt_stops_the_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "run.toml"
    config.write_text('store = "b"\ncheckpoint = "c"\n[sources.s]\nformat = "rate"\n', "utf-8")
    stopped: list[bool] = []

    def wait(seconds: float) -> bool:
        raise KeyboardInterrupt

    running = SimpleNamespace(wait=wait, metrics=counted(), stop=lambda: stopped.append(True))
    monkeypatch.setattr(import_module("headgate.spark.launch"), "launch", lambda described: running)
    result = CliRunner().invoke(import_module("headgate.cli.run").run, [str(config)], catch_exceptions=False)
    assert (result.exit_code, stopped) == (0, [True])


def test_metrics_travel_with_a_query_to_a_server() -> None:
    copy: Metrics = pickle.loads(pickle.dumps(counted()))  # noqa: S301 - it was pickled on this line
    assert copy.numbers == counted().numbers

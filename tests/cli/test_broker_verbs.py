"""`headgate sub` and `headgate key` against a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.broker.running import SECRET, running

from headgate.cli import main


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == code, done.output
    return done.output


def test_subscriptions_are_added_listed_renewed_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_TICKETS", str(tmp_path / "tickets.json"))
    with running(tmp_path) as broker, broker.client() as client:
        client.declare("stock", {"vol": "bigint"})
        at = ("--url", broker.url)
        made = json.loads(run("sub", "add", "vol > 5", "--on", "stock", "--name", "large", "--json", *at))
        assert run("sub", "ls", *at).startswith(f"{made['id']}  active")
        renewed = json.loads(run("sub", "renew", made["id"], "--validity", "172800", "--json", *at))
        assert renewed["expires"] > made["expires"]
        assert "STRING" in run("sub", "add", "vol > 'many'", "--on", "stock", *at, code=1)
        assert run("sub", "rm", made["id"], *at) == f"{made['id']} is gone\n"
        assert run("sub", "ls", *at) == ""
        assert "there is no ticket for" in run("sub", "rm", made["id"], *at, code=1)
    assert (tmp_path / "tickets.json").stat().st_mode & 0o077 == 0
    assert "the broker does not answer" in run("sub", "ls", *at, code=2)


def test_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    at = ("--data", str(tmp_path))
    made = json.loads(run("key", "add", "desk 4", "--rate", "5", "--scope", "publish", "--json", *at))
    assert "desk 4" in run("key", "ls", *at)
    with running(tmp_path, require_keys=True) as broker, broker.client(made["key"]) as client:
        client.declare("stock", {"vol": "bigint"})
        client.publish("stock", [{"vol": 1}])
    run("key", "rm", made["id"], *at)
    assert json.loads(run("key", "ls", "--json", *at))["state"] == "revoked"
    assert "is revoked already" in run("key", "rm", made["id"], *at, code=1)
    assert "above 0" in run("key", "add", "x", "--rate", "-1", *at, code=1)

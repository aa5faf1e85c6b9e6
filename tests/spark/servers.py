"""Spark's own servers, started from the PySpark installation: a standalone cluster, and a Connect server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

HOME = Path(pyspark.__file__).parent
PATIENCE_S = 240.0


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def process(command: Sequence[str], log: Path, ready: str, env: Mapping[str, str] | None = None) -> Iterator[int]:
    """A process of its own group, from the moment its log says that it is ready; its end is ours."""
    with log.open("w") as out:
        running = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, start_new_session=True
        )
        try:
            deadline = time.monotonic() + PATIENCE_S
            while ready not in log.read_text("utf-8", "replace"):
                if running.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"{command[0]} did not start:\n{log.read_text('utf-8', 'replace')[-3000:]}")
                time.sleep(0.1)
            yield running.pid
        finally:
            os.killpg(running.pid, 9)
            running.wait()


def spark_class(*arguments: str) -> list[str]:
    return [str(HOME / "bin" / "spark-class"), *arguments]


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """A master and workers; each worker has a cache folder of its own, as if it were a host."""
    port = free_port()
    small = {"SPARK_HOME": str(HOME), "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1"}
    at = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    with ExitStack() as stack:
        master = spark_class("org.apache.spark.deploy.master.Master", *at)
        stack.enter_context(process(master, folder / "master.log", "I have been elected leader", small))
        for number in range(workers):
            name = f"worker{number}"
            limits = ["--cores", "1", "--memory", "600m", "--webui-port", "0", "--work-dir", str(folder / name)]
            command = spark_class("org.apache.spark.deploy.worker.Worker", *limits, f"spark://127.0.0.1:{port}")
            env = {**small, "HEADGATE_CACHE": str(folder / f"cache{number}")}
            stack.enter_context(process(command, folder / f"{name}.log", "Successfully registered with master", env))
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Connect server with a local master and a cache folder of its own."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    submit = spark_class("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *words)
    command = [*submit, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    env = {"SPARK_HOME": str(HOME), "HEADGATE_CACHE": str(folder / "cache")}
    with process(command, folder / "connect.log", "Spark Connect server started", env):
        yield f"sc://127.0.0.1:{port}"


def run(module: str, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
    """What a module prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def moved(cache: Path) -> list[dict[str, Any]]:
    """The ledger of a cache folder."""
    ledger = cache / "moved.jsonl"
    return [json.loads(line) for line in ledger.read_text("utf-8").splitlines()] if ledger.exists() else []

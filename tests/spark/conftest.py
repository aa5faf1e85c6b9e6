"""One Spark session for the whole run, started by the first test that asks for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
CONNECTOR = sorted((ROOT / ".kafka" / "connector").glob("*.jar"))
"""The jars of Spark's Kafka connector, where `make kafka` has fetched them: a session takes jars only when it starts."""


@pytest.fixture(scope="session", autouse=True)
def workers_see_this_checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Spark's Python workers inherit the environment: the interpreter, this source, and a cache folder of this run."""
    patch = pytest.MonkeyPatch()
    paths = [str(SOURCE), str(SOURCE.parent), os.environ.get("PYTHONPATH", "")]
    patch.setenv("PYTHONPATH", os.pathsep.join(p for p in paths if p))
    patch.setenv("PYSPARK_PYTHON", os.environ.get("PYSPARK_PYTHON") or sys.executable)
    patch.setenv("HEADGATE_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, workers_see_this_checkout: None) -> Iterator[SparkSession]:
    from headgate.spark import spark_session

    scratch = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    if CONNECTOR:
        conf["spark.jars"] = ",".join(map(str, CONNECTOR))
    made = spark_session("local[2]", "headgate tests", conf, ui=False)
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()

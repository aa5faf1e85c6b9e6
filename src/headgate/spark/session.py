"""A Spark session with the settings that Headgate wants, and a plain word where the machine lacks something.

Spark starts its Python workers with `python3` from PATH unless told otherwise, which need not be the interpreter that
has Headgate; and without Java it fails with the exit code of a shell script. Both are settled here, before Spark runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.errors import EnvironmentProblem

LEAST_JAVA = 17
JAVA_HINT = f"install Java {LEAST_JAVA} or newer and put it on PATH or into JAVA_HOME; `headgate doctor` looks for it"
DEFAULTS: Mapping[str, str] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",  # the engine likes large batches
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def spark_session(
    master: str | None = None, name: str = "headgate", conf: Mapping[str, str] | None = None, *, ui: bool = True
) -> SparkSession:
    """The running session, or a new one. `master` may be local[n], spark://..., or sc://... for Spark Connect."""
    running = SparkSession.getActiveSession()
    if running is not None and master is None:
        return running
    builder = SparkSession.builder.appName(name)
    if master is not None and master.startswith("sc://"):
        for key, value in (conf or {}).items():
            builder = builder.config(key, value)
        return builder.remote(master).getOrCreate()
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master is not None:
        builder = builder.master(master)
    for key, value in {**DEFAULTS, "spark.ui.enabled": str(ui).lower(), **(conf or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def require_java() -> int:
    """The major version of the Java that Spark would use; EnvironmentProblem where there is none, or one too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise EnvironmentProblem("Spark needs Java, and there is none on PATH", JAVA_HINT)
    try:
        # Java prints its version on the second stream.
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr  # noqa: S603 - the program is the user's own Java
    except (OSError, subprocess.TimeoutExpired) as problem:
        where = f"JAVA_HOME={home}" if home else java
        raise EnvironmentProblem(f"Spark needs Java, and {where} does not run: {problem}", JAVA_HINT) from None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    major = int(found[1]) if found else 0
    if major < LEAST_JAVA:
        raise EnvironmentProblem(
            f"Spark needs Java {LEAST_JAVA} or newer, and {java} is {major or 'unknown'}", JAVA_HINT
        )
    return major


def is_connect(spark: SparkSession) -> bool:
    """Whether this is a Spark Connect session, which has no SparkContext."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_local(spark: SparkSession) -> bool:
    """Whether the workers are on this host and see its folders."""
    return not is_connect(spark) and (spark.sparkContext.master or "").startswith("local")

"""The README's program for Spark runs and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
PROGRAM = re.compile(r"^```pyspark\n(.*?)^```$\s+^```output\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.spark
def test_the_program_for_spark_prints_what_the_readme_says(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    ((program, printed),) = PROGRAM.findall(README)
    namespace: dict[str, Any] = {}
    exec(compile(program, "README.md", "exec"), namespace)  # noqa: S102 - our own example
    assert capsys.readouterr().out == printed

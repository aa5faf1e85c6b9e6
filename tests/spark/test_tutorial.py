"""The tutorial on Spark prints what it says, in the session of the tests."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.test_docs import SPARK, run

pytestmark = pytest.mark.spark


def test_every_program_of_the_spark_tutorial_prints_what_the_page_says(spark: SparkSession) -> None:
    run(SPARK)

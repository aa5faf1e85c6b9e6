"""Registers `format("headgate")`: Spark looks into every package named `pyspark_...` for a `DefaultSource`."""

from headgate.spark.source import HeadgateSource as DefaultSource

__all__ = ["DefaultSource"]

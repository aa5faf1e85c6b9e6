"""Headgate on Spark: match a frame, or start a query that follows a book."""

try:
    import pyspark  # noqa: F401 - asked for here, so that the error is ours
except ImportError:
    from headgate.errors import EnvironmentProblem

    raise EnvironmentProblem("headgate.spark needs PySpark", "pip install 'headgate[spark]'") from None

from headgate.spark.batch import deduplicated, match, split
from headgate.spark.session import session
from headgate.spark.stream import Running, start

__all__ = ["Running", "deduplicated", "match", "session", "split", "start"]

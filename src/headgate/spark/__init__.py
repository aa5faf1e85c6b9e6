"""Headgate on Spark: match a frame, or start a query that follows a book.

The names are loaded when they are first used: Spark starts processes that only read or write a log, and these need not
load the compiler of the kernels.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import pyspark  # noqa: F401 - asked for here, so that the error is ours
except ImportError:
    from headgate.errors import EnvironmentProblem

    raise EnvironmentProblem("headgate.spark needs PySpark", "pip install 'headgate[spark]'") from None

if TYPE_CHECKING:
    from headgate.spark.batch import deduplicated, match, split
    from headgate.spark.session import spark_session
    from headgate.spark.stream import Running, start

__all__ = ["Running", "deduplicated", "match", "spark_session", "split", "start"]

_MODULES = {
    "Running": "stream",
    "deduplicated": "batch",
    "match": "batch",
    "spark_session": "session",
    "split": "batch",
    "start": "stream",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'headgate.spark' has no attribute {name!r}")
    value = getattr(import_module(f"headgate.spark.{_MODULES[name]}"), name)
    globals()[name] = value
    return value

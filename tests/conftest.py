"""Which tests `make quick` leaves out: files that take more than a few seconds, by measurement rather than by taste.

Property tests have no deadline for an example: the first one compiles kernels, and a busy machine is no defect.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("headgate", deadline=None)
settings.load_profile("headgate")

HERE = Path(__file__).parent
SLOW = (
    "benchmarks",
    "broker",
    "cli",
    "covering",
    "events/test_properties.py",
    "explain",
    "filters/test_engine.py",
    "filters/test_hostile.py",
    "filters/test_kernels.py",
    "filters/test_program.py",
    "filters/test_texts.py",
    "filters/test_vector.py",
    "graphs",
    "language/test_forms.py",
    "language/test_fuzz.py",
    "language/test_printer.py",
    "language/test_shapes.py",
    "operators",
    "plan/test_analysis.py",
    "plan/test_file.py",
    "plan/test_incremental.py",
    "plan/test_merge.py",
    "plan/test_mixed.py",
    "plan/test_sequences.py",
    "sequences",
    "store",
    "test_core_import.py",
    "test_docs.py",
    "test_readme.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)

"""The mark that says whose a checkpoint is."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.errors import EnvironmentProblem, UsageError
from headgate.spark.checkpoint import claim, claimed


@pytest.mark.parametrize("written", ["", "{", "[]", "{}", '{"query": 1}', "null"])
def test_a_mark_that_says_nothing_is_refused_with_its_place(tmp_path: Path, written: str) -> None:
    mark = tmp_path / "headgate" / "query.json"
    mark.parent.mkdir()
    mark.write_text(written)
    with pytest.raises(EnvironmentProblem, match=r"headgate/query\.json does not say whose checkpoint this is"):
        claimed(str(tmp_path))


def test_a_checkpoint_is_its_querys_own(tmp_path: Path) -> None:
    first = claim(str(tmp_path), "store", ("s",))
    assert claim(str(tmp_path), "store", ("s",)) == first
    with pytest.raises(UsageError, match="belongs to another query: store store, not other"):
        claim(str(tmp_path), "other", ("s",))

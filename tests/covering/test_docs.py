"""The page about covering tells the truth: its programs run one after the other, and print what it says."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "covering.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_program_prints_what_the_page_says() -> None:
    blocks = [(m[1], m[2]) for m in BLOCK.finditer(PAGE.read_text("utf-8"))]
    assert [kind for kind, _ in blocks] == ["python", "output"] * (len(blocks) // 2)
    assert len(blocks) >= 10
    namespace: dict[str, Any] = {}
    for (_, program), (_, printed) in zip(blocks[::2], blocks[1::2], strict=True):
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(program, str(PAGE), "exec"), namespace)  # noqa: S102 - our own examples
        assert out.getvalue() == printed

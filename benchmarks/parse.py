"""How long it takes to parse 100,000 short subscriptions, with the cache of shapes and without it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import measure
from headgate.language import parser
from headgate.language.parser import parse_body
from headgate.language.tokens import tokenise

TEXTS = {"small": 10_000, "paper": 100_000}
_SAMPLE = 2_000
_TARGET = 20.0
_WORDS = ("price", "vol", "name", "sector", "city", "bid", "ask", "size", "user.age", "user.country", "item.sku")


def _text(rng: random.Random) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randrange(2, 9)))


def _atom(rng: random.Random) -> str:
    a = rng.choice(_WORDS)
    n, m = rng.randrange(1_000), rng.randrange(1_000, 9_000)
    forms: list[Callable[[], str]] = [
        lambda: f"{a} = '{_text(rng)}'",
        lambda: f"{a} {rng.choice(['<', '<=', '>', '>=', '='])} {n}",
        lambda: f"{a} > {n / 7:.2f}",
        lambda: f"{a} BETWEEN {n} AND {m}",
        lambda: f"{a} IN ('{_text(rng)}', '{_text(rng)}')",
        lambda: f"{a} LIKE '{_text(rng)}%'",
        lambda: f"LOWER({a}) = '{_text(rng)}'",
        lambda: f"{a} CONTAINS '{_text(rng)}'",
        lambda: f"NOT {a} < {n}",
    ]
    # Few forms make most of the texts, as in a book of alerts that a few applications write.
    return rng.choices(forms, weights=[12, 12, 4, 3, 2, 1, 1, 1, 1])[0]()


def subscriptions(count: int, seed: int = 1) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.random()
        if kind < 0.95:
            yield " AND ".join(_atom(rng) for _ in range(rng.choices((1, 2), weights=(1, 2))[0]))
        else:
            yield f"({_atom(rng)} OR {rng.choice(_WORDS)} IS NULL) AND price > {rng.randrange(99)}"


def _measure(what: str, texts: list[str], parse: Callable[[str], object]) -> measure.Row:
    begun = time.perf_counter()
    for text in texts:
        parse(text)
    seconds = time.perf_counter() - begun
    each = {"texts": len(texts), "seconds": round(seconds, 3), "texts_per_second": round(len(texts) / seconds)}
    return {"what": what, **each}


def run(scale: str, _out: Path) -> Iterator[measure.Row]:
    texts = list(subscriptions(TEXTS[scale]))
    parse_body("a = 1")  # building the parser itself is not what is measured
    shapes = len({tokenise(text).shape for text in texts})
    yield {"what": "workload", "texts": len(texts), "shapes": shapes}
    row = _measure("with the cache of shapes", texts, parse_body)
    yield row
    yield _measure("without it", texts[:_SAMPLE], lambda text: parser._reduce(tokenise(text), holes=False))
    yield measure.must(f"seconds to parse {len(texts):,} texts", row["seconds"], scale, most=_TARGET)


if __name__ == "__main__":
    measure.main(run)

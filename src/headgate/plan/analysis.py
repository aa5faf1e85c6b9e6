"""What is odd about a book: subscriptions that can never match, that always match, or that mean the same as others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.filters.meaning import Meanings
from headgate.language.forms import cut
from headgate.language.tokens import tokenise
from headgate.plan.segment import Entry
from headgate.schema import Schema


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is contradiction, tautology, duplicates or sequence."""

    kind: str
    subscriptions: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return self.message


def analyse(entries: Mapping[str, Entry], schemas: Mapping[str, Schema]) -> list[Finding]:
    found: list[Finding] = []
    by_stream: dict[str, list[str]] = {}
    for name, entry in entries.items():
        tokens = tokenise(entry.text)
        if tokens.kinds[0] != "SELECT" and not any(p.form.late for p in cut(tokens).pieces):
            by_stream.setdefault(entry.stream, []).append(name)
    for stream, names in by_stream.items():
        found += _stream(names, entries, schemas.get(stream, Schema(stream, {})))
    return found


def _stream(names: list[str], entries: Mapping[str, Entry], schema: Schema) -> list[Finding]:
    items = ((cut(tokenise(entries[n].text)), entries[n].missing) for n in names)
    meanings = Meanings(items, schema)
    found = []
    constant = set()
    for i, name in enumerate(names):
        if meanings.is_contradiction(i):
            found.append(
                Finding("contradiction", (name,), f"{name} can never match: its conditions contradict each other")
            )
            constant.add(i)
        elif meanings.is_tautology(i):
            found.append(Finding("tautology", (name,), f"{name} matches every event of {schema.stream}"))
            constant.add(i)
    for group in meanings.duplicates():
        if not constant & set(group):
            same = tuple(names[i] for i in group)
            found.append(Finding("duplicates", same, f"{', '.join(same)} mean the same"))
    return found

"""What is odd about a book: subscriptions that can never match, that always match, that mean the same as others, or that
others cover; and sequences whose runs may wait for ever, or that hardly ever fire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

from headgate.filters.equivalence import Meanings
from headgate.language.catalogue import Catalogue
from headgate.language.forms import cut_text
from headgate.plan.covered import covered_filters, covered_sequences
from headgate.plan.segment import Entry, Family
from headgate.schema import Schema
from headgate.sequences.analysis import warnings_of
from headgate.sequences.shapes import Shapes


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is contradiction, tautology, duplicates, sequence, covered or unchecked.

    Of `covered` the first subscription is the one that the others cover; `unchecked` says that time ran out."""

    kind: str
    subscriptions: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return self.message


BUDGET = 30.0
"""How many seconds the search for covered subscriptions may take in all."""


def analyse(entries: Mapping[str, Entry], catalogue: Catalogue, budget: float = BUDGET) -> list[Finding]:
    found: list[Finding] = []
    by_stream: dict[str, list[str]] = {}
    late: dict[str, list[str]] = {}
    sequences: list[str] = []
    schemas = catalogue.streams
    for name, entry in entries.items():
        if entry.family is Family.SEQUENCE:
            sequences.append(name)
        else:
            (late if entry.family is Family.LATE else by_stream).setdefault(entry.stream, []).append(name)
    found += _sequences(sequences, entries, catalogue)
    for stream, names in by_stream.items():
        found += _stream(names, entries, schemas.get(stream, Schema(stream, {})))
    return found + _covered(by_stream, late, sequences, found, entries, schemas, budget)


def _sequences(names: list[str], entries: Mapping[str, Entry], catalogue: Catalogue) -> list[Finding]:
    """State without bound, and conditions that hardly ever hold; patterns that differ in constants are checked once."""
    shapes: dict[str, Shapes] = {}
    found = []
    for name in names:
        entry = entries[name]
        known = shapes.setdefault(entry.missing, Shapes(catalogue, entry.missing))
        told = warnings_of(known.spine(entry.text), entry.missing)
        found += [Finding("sequence", (name,), f"{name}: {warning}") for warning in told]
    return found


def _covered(
    plain: Mapping[str, list[str]],
    late: Mapping[str, list[str]],
    sequences: list[str],
    known: list[Finding],
    entries: Mapping[str, Entry],
    schemas: Mapping[str, Schema],
    budget: float,
) -> list[Finding]:
    """What others cover. What is known to be odd already, and all but the first of duplicates, is left out of it."""
    deadline = perf_counter() + budget
    odd = {
        n
        for f in known
        if f.kind != "sequence"
        for n in (f.subscriptions[1:] if f.kind == "duplicates" else f.subscriptions)
    }
    odd |= {name for name, entry in entries.items() if entry.paused}
    parts = []
    for stream in dict.fromkeys((*plain, *late)):
        names = [n for n in (*plain.get(stream, ()), *late.get(stream, ())) if n not in odd]
        schema = schemas.get(stream, Schema(stream, {}))
        parts.append(covered_filters(names, entries, schema, deadline - perf_counter()))
    parts.append(covered_sequences([n for n in sequences if n not in odd], entries, deadline - perf_counter()))
    found = [
        Finding("covered", (name, *by), f"{name} is covered: whatever it matches, {_some(by)} too")
        for part in parts
        for name, by in part.by.items()
    ]
    left = sum(part.left for part in parts)
    if left:
        message = f"{left:,} subscriptions were not looked at for cover: the {budget:g} s for it were spent"
        found.append(Finding("unchecked", (), message))
    return found


def _some(by: tuple[str, ...]) -> str:
    return f"{by[0]} matches" if len(by) == 1 else f"one of {', '.join(by)} matches"


def _stream(names: list[str], entries: Mapping[str, Entry], schema: Schema) -> list[Finding]:
    items = ((cut_text(entries[n].text), entries[n].missing) for n in names)
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

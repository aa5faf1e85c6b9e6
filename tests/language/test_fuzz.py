"""Damaged texts: only language errors come out, and every one of them can be shown.

Mutations work on characters and on tokens, several at a time, over texts that use every construct. What still parses
must also print, read back equal, and survive the check.
"""

from __future__ import annotations

import random
import re

import pytest

from headgate.errors import LanguageError
from headgate.language import ast
from headgate.language.catalogue import Catalogue, Signature
from headgate.language.parser import parse_body, parse_script
from headgate.language.printer import print_node, print_script
from headgate.predicates.check import check_filter
from headgate.schema import Schema

SEEDS = [
    "name = 'IBM' AND price < 100",
    "NOT (a.b >= -1.5e3 OR c <> 'it''s') AND d IS NOT NULL",
    "x BETWEEN 1 AND 2 OR y NOT IN (1, 2.5, NULL, TRUE) AND z LIKE '%a!_' ESCAPE '!'",
    "LOWER(n) STARTS WITH 'x' AND 'abc' CONTAINS n AND n MATCHES '^a.*b$' AND LENGTH(n) % 2 = ABS(-k) / 3",
    "ALL(tags) ILIKE 'x%' AND `odd name`.`x``y` ENDS WITH 'z' -- a comment\n AND at > TIMESTAMP '2026-01-01T00:00:00Z'",
    "loc_in('Bronx') AND mob(?people) AND ?people * 2 > 50 - price",
    'GRAPH { _:H a :Selling ; :target ?1 , <http://e.org/x> . ?1 :l "a\\nb"@en ; :n "7"^^xsd:byte . FILTER (?1 < 4) }',
    "GRAPH HOM doc { (_:H, ?m, (Sale, price, Money), ?m > 3) . ?m rdf:value -1.5 } OR NOT f(?z)",
    "SELECT * FROM s AS l NEXT {$2.a = $1.a AND DUR < 30 MINUTES} t PUBLISH out",
    "SELECT a AS b, n FROM FILTER {vol > 1} (s) FOLD {$2.n = $1.n, $2.p < $.p, COUNT(*) AS n, $.k + 1 AS k INIT 0} s",
    "SELECT * FROM (s UNION t) AS u ABSENT {u.a = $2.a} (SELECT * FROM s NEXT t) AS w WITHIN 5 HOURS",
    "CREATE STREAM s (a STRING, p DOUBLE DEFAULT -1, x ARRAY<BIGINT>, at TIMESTAMP NOT NULL) TIME at;",
    "CREATE STREAM s (a STRING, start BIGINT, g GRAPH) TIME start, end AS GRAPH { _:H :p `a` ; :q start };",
    "PREFIX : <http://example.org/>; CREATE ONTOLOGY m FROM 'm.ttl'; DROP STREAM s;",
    "CREATE SUBSCRIPTION cheap ON stock WITH (missing = 'strict', k = -1) AS name = 'IBM' AND price < 100;",
]
GARBAGE = [
    "\0", "'", '"', "`", "''", "\\", "--", "\n", "\t", "é", "ß", "\u0130", "\u0131", "\u017f", "😀", "\ud800", "\u2028",
    "\u00a0", "٣", "²",
    "(", ")", "{", "}", "[", "]", "<", ">", "<<", "<>", "!", "=", ";", ",", ".", "..", "$", "$1.", "$.", "?", "@", "^^",
    ":", "_:", "#", "&", "|", "1e999", "1e", "0x1", "9" * 50, "NOT ", "AND ", "SELECT ", "GRAPH {", "FILTER (", "FROM ",
    "DUR ",
    "TRUE ", "NULL ", "CREATE ", "PREFIX ", "FOLD {", " IN (", "LOWER(", "TIMESTAMP '", " DAYS", "\ufeff", "\x85",
    "\ufb01lter",
]  # fmt: skip
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_CATALOGUE = Catalogue(operators={"mob": Signature("mob", 1, 1), "f": Signature("f")})


def mutate(text: str, rng: random.Random) -> str:
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        parts = list(text) if rng.random() < 0.5 else _TOKEN.findall(text)
        if not parts:
            return rng.choice(GARBAGE)
        at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.randrange(6):
            case 0:
                del parts[at]
            case 1:
                parts.insert(at, parts[at])
            case 2:
                parts[at], parts[other] = parts[other], parts[at]
            case 3:
                parts.insert(at, rng.choice(GARBAGE))
            case 4:
                parts[at] = rng.choice(_TOKEN.findall(rng.choice(SEEDS)))
            case 5:
                low, high = sorted((at, other))
                parts[low:high] = parts[low:high] * rng.randrange(4)
        text = "".join(parts)[:5_000]
    return text


def _can_be_shown(problem: LanguageError) -> bool:
    return problem.place is not None and problem.message in str(problem) and bool(str(problem).encode())


def outcome(text: str) -> str:
    """How far a text comes: it may fail only with a language error that can be shown."""
    try:
        if re.match(r"\s*(CREATE|DROP|PREFIX)", text, re.IGNORECASE):
            script = parse_script(text)
            assert parse_script(print_script(script)) == script
            return "parsed"
        body = parse_body(text)
    except LanguageError as problem:
        return "refused" if _can_be_shown(problem) else "refused without a word"
    assert parse_body(print_node(body)) == body
    if isinstance(body, ast.Pattern):
        return "parsed"
    problems = check_filter(body, Schema("s", {}, declared=False), _CATALOGUE)
    assert all(str(problem) for problem in problems)
    return "checked"


def fuzz(cases: int, seed: int) -> None:
    rng = random.Random(seed)
    seen = set()
    for _ in range(cases):
        text = mutate(rng.choice(SEEDS), rng)
        try:
            seen.add(outcome(text))
        except Exception as broken:
            raise AssertionError(f"{type(broken).__name__} for {text!r}") from broken
    assert seen == {"refused", "parsed", "checked"}


@pytest.mark.parametrize("text", SEEDS)
def test_the_seeds_themselves_are_whole(text: str) -> None:
    assert outcome(text) in ("parsed", "checked")


def test_damaged_texts_give_only_language_errors() -> None:
    fuzz(5_000, seed=1)


@pytest.mark.nightly
def test_a_hundred_thousand_damaged_texts_give_only_language_errors() -> None:
    fuzz(100_000, seed=2)

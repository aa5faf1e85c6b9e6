"""The tests that are written in words: LIKE, CONTAINS, IN CIDR. All are tests of texts.

A new test is one entry here, its words in the grammar, and its twin in the oracle. A test whose operands behind the first
are patterns is prepared once for each pattern; the type check sees to it that these are literals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

import re2

from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates.likes import like_test, regex

_REGEX_MEMORY = 1 << 20
Wrong = tuple[str, str]
"""What is wrong with a pattern, and what to do."""


@dataclass(frozen=True, slots=True)
class TextTest:
    """`holds` tests values that are there. Where there is `prepare` instead, it takes the patterns and gives the test of
    the first operand; `check` says what is wrong with the patterns."""

    name: str
    holds: Callable[..., bool] | None = None
    prepare: Callable[..., Callable[[str], bool]] | None = None
    check: Callable[..., Wrong | None] | None = None


def resolve(test: ast.Test) -> tuple[Callable[..., bool], tuple[Node, ...]]:
    """A test as a function, and the operands that it takes. Against NULL it is never asked: an operand is missing."""
    entry = TESTS[test.name]
    if entry.prepare is None:
        assert entry.holds is not None
        return entry.holds, test.operands
    patterns = [o.value for o in test.operands[1:] if isinstance(o, ast.Literal)]
    if None in patterns:
        return (lambda *_: False), test.operands
    return _prepared(test.name, *patterns), test.operands[:1]


@lru_cache(maxsize=10_000)
def _prepared(name: str, *patterns: Any) -> Callable[[str], bool]:
    prepare = TESTS[name].prepare
    assert prepare is not None
    return prepare(*patterns)


def _check_like(pattern: str, escape: str | None = None) -> Wrong | None:
    if escape is None:
        return None
    if len(escape) != 1:
        return "ESCAPE takes one character", ""
    at = 0
    while at < len(pattern):
        if pattern[at] == escape:
            at += 1
            if at == len(pattern) or pattern[at] not in ("%", "_", escape):
                return "the escape character escapes nothing here", f"{escape} stands before %, _ or itself"
        at += 1
    return None


def _check_regex(pattern: str) -> Wrong | None:
    options = re2.Options()
    options.max_mem = _REGEX_MEMORY
    options.log_errors = False
    try:
        re2.compile(pattern, options=options)
    except re2.error as e:
        reason = e.args[0].decode() if isinstance(e.args[0], bytes) else str(e.args[0])
        return f"the regular expression is refused: {reason}", "RE2 has no back references or look-around"
    return None


def _searches(pattern: str) -> Callable[[str], bool]:
    search = regex(pattern).search
    return lambda text: search(text) is not None


def _check_network(network: str) -> Wrong | None:
    hint = "write an address and the length of its prefix: '10.0.0.0/8', '2001:db8::/32'"
    try:
        ip_network(network, strict=False)
    except ValueError:
        return f"{network!r} is no network", hint
    return None if network.partition("/")[2].isdigit() else (f"{network!r} has no length of a prefix", hint)


def _in_network(network: str) -> Callable[[str], bool]:
    """Whether a text is an address of the network. Any other text is not."""
    known = ip_network(network, strict=False)
    first, last, version = int(known.network_address), int(known.broadcast_address), known.version

    def holds(text: str) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        return address.version == version and first <= int(address) <= last

    return holds


TESTS = {
    t.name: t
    for t in (
        TextTest("CONTAINS", lambda whole, part: part in whole),
        TextTest("STARTS WITH", str.startswith),
        TextTest("ENDS WITH", str.endswith),
        TextTest("LIKE", prepare=lambda p, escape=None: like_test(p, escape, fold=False), check=_check_like),
        TextTest("ILIKE", prepare=lambda p, escape=None: like_test(p, escape, fold=True), check=_check_like),
        TextTest("MATCHES", prepare=_searches, check=_check_regex),
        TextTest("IN CIDR", prepare=_in_network, check=_check_network),
    )
}

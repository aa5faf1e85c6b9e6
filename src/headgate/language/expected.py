"""What to say when a token does not fit: what was found, what could stand there, and the likely slip.

LALR states are merged, so the table's idea of what may follow is too wide; the parser's stack knows exactly. Of what
may follow only what helps is named: nobody who wrote `a b` meant to go on with `%`.
"""

from __future__ import annotations

from typing import Any

from lark.exceptions import UnexpectedToken

from headgate.errors import SyntaxProblem
from headgate.language.tokens import RESERVED, SOFT, SYMBOLS, Tokens

_OPERANDS = frozenset({"NAME", "INT", "FLOAT", "STRING"})
_BESIDE_OPERANDS = frozenset(
    (
        "RUN", "INCOMING", "ITERATION", "VAR", "TRUE", "FALSE", "NULL", "DUR", "GRAPH", "LPAR", "MINUS",
        "A", "BLANK", "IRI", "PNAME", *SOFT,
    )
)  # fmt: skip
_COMPARISONS = frozenset(
    (
        "EQ", "NE", "LT", "LE", "GT", "GE", "BETWEEN", "IN", "LIKE", "ILIKE", "CONTAINS", "STARTS", "ENDS", "MATCHES",
        "IS",
    )
)  # fmt: skip
_ARITHMETIC = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"})
_SIGNS = {name: f"'{sign}'" for sign, name in SYMBOLS.items() if sign != "!="}
_SPOKEN = {
    "STRING": "a text in single quotes",
    "INT": "a number",
    "FLOAT": "a number",
    "IRI": "an <iri>",
    "PNAME": "a prefix:name",
    "A": "a",
    "$END": "the end",
}
_VERTEX = "a vertex (?x, _:x, prefix:name, <iri> or a literal)"
_SLIPS = {
    ("EQ", "EQ"): "one = compares",
    ("GT", "EQ"): "write >= without a space",
    ("LT", "EQ"): "write <= without a space",
    ("LT", "GT"): "write <> without a space",
    ("AND", "AND"): "one AND is enough",
    ("OR", "OR"): "one OR is enough",
    ("SELECT", "FROM"): "say what to select; * is everything",
    ("IS", "TRUE"): "write the attribute alone, or = TRUE",
    ("IS", "FALSE"): "write NOT and the attribute, or = FALSE",
    ("EQ", "NOT"): "<> says not equal",
}
_WORDS = {
    "EQUALS": "write =",
    "WHERE": "a condition on a stream is written FILTER {condition} (stream)",
    "HAVING": "a condition on a sequence is written FILTER {condition} (sequence)",
    "XOR": "write (a OR b) AND NOT (a AND b)",
}


def unexpected(tokens: Tokens, error: UnexpectedToken) -> SyntaxProblem:
    found = error.token
    names = {name.removeprefix("_") for name in _acceptable(error)} - {"ERROR"}
    if found.type == "$END":
        return SyntaxProblem("the text ends too early", _hint(names), at=len(tokens))
    at = int(found.start_pos or 0)
    raw = tokens.raws[at]
    shown = raw if len(raw) <= 40 else raw[:37] + "..."
    return SyntaxProblem(f"{shown!r} does not fit here", _slip(tokens, at, names) or _hint(names), at=at)


def _acceptable(error: UnexpectedToken) -> set[str]:
    parser: Any = error.interactive_parser
    return set(error.expected if parser is None else parser.accepts())


def _slip(tokens: Tokens, at: int, names: set[str]) -> str | None:
    """The mistake that people make here, if it is a known one."""
    kind, raw = tokens.kinds[at], tokens.raws[at]
    before = tokens.kinds[at - 1] if at else ""
    if (before, kind) in _SLIPS:
        return _SLIPS[before, kind]
    if kind == "NAME" and raw.upper() in _WORDS:
        return _WORDS[raw.upper()]
    if kind in ("RPAR", "RBRACE") and "$END" in names:
        return "nothing is open here for it to close"
    if kind == "NULL" and "IS" in names:
        return "write IS NULL"
    if kind == "LSQB":
        return "arrays have no index: a comparison holds if any element satisfies it, ALL(a) asks every element"
    if tokens.kinds[0] == "PREFIX" and at == 1:
        return "a prefix ends with a colon: PREFIX name: <http://...>"
    if kind == "UNION":
        return "UNION stands in parentheses: (a UNION b)"
    if kind in _COMPARISONS and before == "NOT" and "NAME" in names:
        return f"say what is compared: attribute NOT {kind} ..." if kind in RESERVED else None
    if kind in _COMPARISONS and not names & _COMPARISONS and names & {"AND", "OR"}:
        return "comparisons do not chain: join two of them with AND"
    if kind in RESERVED and kind not in ("AND", "OR") and "NAME" in names:
        return f"{kind} is a reserved word; as a name it is written `{raw}`"
    return None


def _hint(names: set[str]) -> str:
    parts: list[str] = []
    if names & {"AND", "OR"}:
        names = names - {"NAME", "STRING", "LPAR", *(set(SOFT) - _COMPARISONS)}
    if names >= _OPERANDS:
        parts.append(_VERTEX if "BLANK" in names else "a name or a value")
        names = names - _OPERANDS - _BESIDE_OPERANDS
    elif names & _COMPARISONS >= {"EQ", "IS"}:
        parts.append("a comparison")
        names = names - _COMPARISONS - {"NOT"}
    elif "NAME" in names:
        parts.append("a name")
        names = names - {"NAME", *SOFT}
    parts += sorted({_SPOKEN.get(n, _SIGNS.get(n, n)) for n in names - _ARITHMETIC})
    if "the end" in parts:
        parts.remove("the end")
        parts.append("the end")
    return "expected " + (", ".join(parts[:-1]) + " or " + parts[-1] if len(parts) > 1 else "".join(parts))

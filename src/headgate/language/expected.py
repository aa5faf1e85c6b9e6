"""What to say when a token does not fit: what was found, what could stand there, and the likely slip."""

from __future__ import annotations

from lark.exceptions import UnexpectedToken

from headgate.errors import SyntaxProblem
from headgate.language.tokens import RESERVED, SOFT, SYMBOLS, Tokens

_OPERANDS = frozenset({"NAME", "INT", "FLOAT", "STRING"})
_SIGNS = {name: sign for sign, name in SYMBOLS.items() if sign != "!="}
_SLIPS = {
    ("EQ", "EQ"): "one = compares",
    ("GT", "EQ"): "write >= without a space",
    ("LT", "GT"): "write <> without a space",
    ("AND", "AND"): "one AND is enough",
    ("OR", "OR"): "one OR is enough",
}


def unexpected(tokens: Tokens, error: UnexpectedToken) -> SyntaxProblem:
    found = error.token
    names = {name.removeprefix("_") for name in error.expected} - {"ERROR"}
    if found.type == "$END":
        return SyntaxProblem("the text ends too early", _hint(names), at=len(tokens))
    at = int(found.start_pos or 0)
    kind = tokens.kinds[at]
    before = tokens.kinds[at - 1] if at else ""
    slip = _SLIPS.get((before, kind))
    if slip is None and kind in RESERVED and "NAME" in names:
        slip = f"{kind} is a reserved word; as a name it is written `{tokens.raws[at]}`"
    if slip is None and before == "NAME" and kind == "NAME" and tokens.raws[at].upper() in ("EQUALS", "IS", "LIKES"):
        slip = "write ="
    shown = tokens.raws[at] if len(tokens.raws[at]) <= 40 else tokens.raws[at][:37] + "..."
    return SyntaxProblem(f"{shown!r} does not fit here", slip or _hint(names), at=at)


def _hint(names: set[str]) -> str:
    parts: list[str] = []
    if names >= _OPERANDS:
        parts.append("a name or a value")
        names = names - _OPERANDS - {"RUN", "INCOMING", "ITERATION", "VAR", "TRUE", "FALSE", "NULL", "DUR", "GRAPH"}
        names -= {"LPAR", "MINUS", *SOFT}
    elif names & {"EQ", "LT"} and "IS" in names:
        parts.append("a comparison")
        names = names & {"AND", "OR", "RPAR", "RBRACE", "COMMA", "FROM"}
    elif "NAME" in names:
        parts.append("a name")
        names = names - {"NAME", *SOFT}
    parts.extend(sorted(_SIGNS.get(n, n) if n != "END" else "the end" for n in names if not n.startswith("$")))
    if "$END" in names:
        parts.append("the end")
    return "expected " + (", ".join(parts[:-1]) + " or " + parts[-1] if len(parts) > 1 else "".join(parts))

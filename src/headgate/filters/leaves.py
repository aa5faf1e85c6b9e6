"""Leaves: the literals of all subscriptions of an index, gathered by form, then turned into row keys in columns.

A leaf is one literal of one subscription. While subscriptions are read, a leaf is only filed: under its template (an
atom with holes, and whether it is wanted TRUE or FALSE), with the constants of this text. When all are read, every
template is made exact for its attribute's type, the cuts of each attribute are sorted once, and each leaf becomes the
key of the row that will hold its truth (see `rows`).

An attribute of the type ANY counts as one attribute for each kind that it is compared with.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.errors import PlanError
from headgate.filters.dependencies import holds
from headgate.filters.lookup import Lookup
from headgate.filters.rows import ATTRIBUTES, SETS, Family, Ints, Keys, Reach, pack
from headgate.filters.texts import INDEXED
from headgate.language import ast
from headgate.language.ast import DUR, Hole, Path
from headgate.language.build import FORMS
from headgate.language.forms import fill
from headgate.predicates import domain, values
from headgate.predicates.cells import ALWAYS, NEVER, Cells, canonical
from headgate.predicates.modes import defaults_of
from headgate.predicates.normal import Complete, Lit
from headgate.schema import Kind, Schema

SHIFT = 32
_SCALAR = (Kind.BOOLEAN, Kind.BIGINT, Kind.DOUBLE, Kind.STRING, Kind.TIMESTAMP)


@dataclass
class _Attribute:
    """An attribute that rows refer to, with the constants its comparisons were given."""

    number: int
    path: Path
    kind: Kind
    view: bool
    constants: list[Any] = field(default_factory=list)
    ordered: bool = False


@dataclass
class _Comparison:
    """A template `attribute op constant`: for each leaf its exact op, constant and whether it holds if missing."""

    attribute: _Attribute
    ops: list[str] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)


_Key = tuple[Path, Kind | None]
"""An attribute, with the kind of its values that is looked up; None: only whether it is there."""
_Made = _Comparison | Keys


@dataclass(frozen=True)
class Interned:
    """All leaves as row keys, and what the rows refer to."""

    keys: list[Keys]
    """By template, one key a leaf."""
    sets: list[Ints]
    lookup: Lookup


class Leaves:
    """`lists`: attributes of the type ANY may hold arrays, so their atoms are evaluated as vectors."""

    def __init__(self, schema: Schema, *, lists: bool = False) -> None:
        self._schema = schema
        self._lists = lists
        self._defaults = defaults_of(schema)
        self._numbers: dict[Lit | Complete, int] = {}
        self._templates: list[Lit | Complete] = []
        self._literals: list[dict[tuple[Any, ...], int]] = []
        self._attributes: dict[_Key, _Attribute] = {}
        self._tests: dict[_Key, dict[ast.Node, int]] = {}
        self._vectors: dict[Lit, int] = {}
        self._sets: dict[tuple[_Key, tuple[Any, ...]], int] = {}

    def template(self, template: Lit | Complete) -> int:
        """The number of a template."""
        number = self._numbers.get(template)
        if number is None:
            number = self._numbers[template] = len(self._templates)
            self._templates.append(template)
            self._literals.append({})
        return number

    def add(self, template: int, literals: tuple[Any, ...]) -> int:
        """File a leaf; gives template << SHIFT | its number there. Literals that compare as equal make one leaf."""
        filed = self.filed(template)
        return template << SHIFT | filed.setdefault(literals, len(filed))

    def filed(self, template: int) -> dict[tuple[Any, ...], int]:
        """The literals of a template, each with the number of its leaf."""
        return self._literals[template]

    def intern(self) -> Interned:
        made = [self._make(t, list(filed)) for t, filed in zip(self._templates, self._literals, strict=True)]
        cells, cuts = {}, {}
        for a in self._attributes.values():
            cells[a.number] = _cells(a)
            cuts[a.number] = _positions(cells[a.number])
        keys = [self._keys_of(m, cells, cuts) for m in made]
        tops = {int(pack(Family.CELL, a, Reach.OUTSIDE, -1, 0)): present_key(a, c) for a, c in cells.items()}
        for made_keys in keys:
            if len(made_keys) and (present := tops.get(int(made_keys[0]))) is not None:
                made_keys[:] = present  # all leaves of a template IS NOT NULL are the same
        sets = [self._set(key, constants, cells, cuts) for key, constants in self._sets]
        tests = {self._attributes[key].number: list(found) for key, found in self._tests.items()}
        paths = {a.number: a.path for a in self._attributes.values()}
        return Interned(keys, sets, Lookup(cells, tests, list(self._vectors), paths))

    # -- templates

    def _make(self, template: Lit | Complete, filed: list[tuple[Any, ...]]) -> _Made | list[_Made]:
        """What the leaves of a template become; in a list, one entry a leaf."""
        if isinstance(template, Complete):
            return np.full(len(filed), pack(Family.COMPLETE, 0, 0, 0), np.int64)
        match template.atom:
            case ast.Compare(op, ast.Attribute(path), ast.Literal(value)) if value is not None:
                constants = [_constant(value, literals) for literals in filed]
                kinds = [self._kind_for(template, path, op, constant) for constant in constants]
                if kinds and kinds[0] is not None and len(set(kinds)) == 1:
                    return self._comparison(template, path, kinds[0], op, constants)
                return [
                    self._one(_instance(template, literals)) if kind is None
                    else self._comparison(template, path, kind, op, [constant])
                    for kind, constant, literals in zip(kinds, constants, filed, strict=True)
                ]  # fmt: skip
            case ast.Attribute(path) if self._is_any(path) and not self._lists:
                if template.truth or template.default:
                    return self._comparison(template, path, Kind.BOOLEAN, "=", [True] * len(filed))
                return self._comparison(replace(template, truth=True), path, Kind.BOOLEAN, "=", [False] * len(filed))
            case ast.Attribute(path) if self._kind(path) is Kind.BOOLEAN:
                return self._comparison(template, path, Kind.BOOLEAN, "=", [True] * len(filed))
            case ast.IsNull(ast.Attribute(path)):
                return np.full(len(filed), self._null(template, path), np.int64)
        return np.array([self._single(_instance(template, literals)) for literals in filed], np.int64)

    def _one(self, lit: Lit) -> Keys:
        return np.array([self._single(lit)], np.int64)

    def _kind_for(self, lit: Lit, path: Path, op: str, constant: Any) -> Kind | None:
        """The kind of an attribute by which it can be looked up; None if the comparison must be evaluated."""
        if not self._is_any(path):
            return self._kind(path) if self._scalar(path) else None
        if self._lists or (lit.default and not lit.truth and op not in ("=", "<>")):
            return None
        return _exact_kind(constant)

    def _comparison(self, lit: Lit, path: Path, kind: Kind, op: str, constants: list[Any]) -> _Comparison:
        """`default` decides a missing value by the DEFAULT, else by what OMEGA does: only <> holds for it."""
        attribute = self._attribute((path, kind))
        made = _Comparison(attribute)
        default = self._defaults.get(path)
        wanted = op if lit.truth else values.NEGATED[op]
        for constant in constants:
            exact, value = canonical(attribute.kind, wanted, constant)
            holds = 0
            if lit.default:
                true = (op == "<>") if default is None else values.compare(op, default, constant)
                holds = int(true == lit.truth)
            made.ops.append(exact)
            made.constants.append(value)
            made.missing.append(holds)
            if exact not in (ALWAYS, NEVER):
                attribute.constants.append(value)
                attribute.ordered |= exact not in ("=", "<>")
        return made

    def _null(self, lit: Lit, path: Path) -> int:
        """IS NULL, and IS NOT NULL."""
        number = self._attribute((path, self._kind(path))).number
        return missing_key(number) if lit.truth else int(pack(Family.CELL, number, Reach.OUTSIDE, -1, 0))

    def _single(self, lit: Lit) -> int:
        """A leaf that is interned by itself: membership, text search, or anything else as a vector."""
        atom = lit.atom
        if isinstance(atom, ast.In) and isinstance(atom.operand, ast.Attribute):
            path, constants = atom.operand.path, [i.value for i in atom.items if isinstance(i, ast.Literal)]
            kinds = {self._kind_for(lit, path, "=", constant) for constant in constants}
            if len(constants) == len(atom.items) and len(kinds) == 1 and (kind := kinds.pop()) is not None:
                return self._membership(lit, (path, kind), constants)
        if isinstance(atom, ast.Test) and (tested := self._tested(atom)) is not None:
            tests = self._tests.setdefault((tested, Kind.STRING), {})
            number = self._attribute((tested, Kind.STRING)).number
            reach = Reach.MEMBER if lit.truth else Reach.OUTSIDE
            return int(
                pack(Family.TEXT, number, reach, tests.setdefault(atom, len(tests)), self._missing_test(lit, tested))
            )
        return int(pack(Family.VECTOR, 0, 0, self._vectors.setdefault(lit, len(self._vectors))))

    def _missing_test(self, lit: Lit, path: Path) -> int:
        """Whether a test that is TRUE for no missing value holds: in `default` mode a DEFAULT is tested in its place."""
        if not lit.default:
            return 0
        default = self._defaults.get(path)
        return int((default is not None and holds(lit.atom, str(default))) == lit.truth)

    def _membership(self, lit: Lit, key: _Key, constants: list[Any]) -> int:
        attribute = self._attribute(key)
        kept = tuple(v for op, v in (canonical(attribute.kind, "=", c) for c in constants) if op == "=")
        attribute.constants.extend(kept)
        holds = 0
        if lit.default:
            default = self._defaults.get(attribute.path)
            true = default is not None and any(values.compare("=", default, c) for c in constants)
            holds = int(true == lit.truth)
        number = self._sets.setdefault((key, kept), len(self._sets))
        return int(
            pack(Family.CELL, attribute.number, Reach.MEMBER if lit.truth else Reach.OUTSIDE, SETS + number, holds)
        )

    def _tested(self, atom: ast.Node) -> Path | None:
        """The text attribute that a test with a constant is about, if it is that simple."""
        match atom:
            case ast.Test(name, (ast.Attribute(path), ast.Literal(str()), *_)) if name in INDEXED:
                pass
            case ast.Test(name, (ast.Literal(str()), ast.Attribute(path))) if name in INDEXED:
                pass
            case _:
                return None
        open_ = self._is_any(path) and not self._lists
        return path if open_ or self._kind(path) is Kind.STRING else None

    # -- attributes

    def _kind(self, path: Path) -> Kind | None:
        """The kind of a scalar attribute."""
        found = self._schema.get(path)
        return None if found is None or found.type is None or found.type.array else found.type.kind

    def _scalar(self, path: Path) -> bool:
        return self._kind(path) in _SCALAR

    def _is_any(self, path: Path) -> bool:
        found = self._schema.get(path)
        if found is None:  # sequences put the length of an event beside its attributes
            return not self._schema.declared and path[-1] != DUR
        return found.type is None

    def _attribute(self, key: _Key) -> _Attribute:
        found = self._attributes.get(key)
        if found is None:
            if len(self._attributes) == ATTRIBUTES:
                raise PlanError(f"the subscriptions of one stream speak of more than {ATTRIBUTES:,} attributes")
            path, kind = key
            view = kind is not None and self._is_any(path)
            found = _Attribute(len(self._attributes), path, kind if kind in _SCALAR else Kind.BINARY, view)
            self._attributes[key] = found
        return found

    # -- keys

    def _keys_of(self, made: _Made | list[_Made], cells: dict[int, Cells], cuts: dict[int, Any]) -> Keys:
        if isinstance(made, list):
            return np.concatenate([np.zeros(0, np.int64), *(self._keys_of(m, cells, cuts) for m in made)])
        return self._keys(made, cells, cuts) if isinstance(made, _Comparison) else made

    def _keys(self, made: _Comparison, cells: dict[int, Cells], cuts: dict[int, Any]) -> Keys:
        number = made.attribute.number
        top = cells[number].top
        where = cuts[number](made.constants)
        keys = np.empty(len(made.ops), np.int64)
        ops, missing = np.array(made.ops, object), np.array(made.missing, np.int64)
        for op, (reach, shift) in _REACHES.items():
            mine = ops == op
            if mine.any():
                keys[mine] = pack(Family.CELL, number, reach, 2 * where[mine] + shift, missing[mine])
        for op, argument in ((NEVER, -1), (ALWAYS, top)):
            mine = ops == op
            keys[mine] = pack(
                Family.CELL, number, Reach.UPTO if op == ALWAYS else Reach.MEMBER, argument, missing[mine]
            )
        return keys

    def _set(self, key: _Key, constants: tuple[Any, ...], cells: dict[int, Cells], cuts: dict[int, Any]) -> Ints:
        number = self._attributes[key].number
        found: Ints = np.unique(2 * cuts[number](list(constants)) + 1).astype(np.int32)
        return found


_REACHES = {
    "<": (Reach.UPTO, 0),
    "<=": (Reach.UPTO, 1),
    ">": (Reach.FROM, 2),
    ">=": (Reach.FROM, 1),
    "=": (Reach.MEMBER, 1),
    "<>": (Reach.OUTSIDE, 1),
}
"""A comparison with cut i as a reach and the cell 2i + shift."""


def present_key(attribute: int, cells: Cells) -> int:
    """The row that says that an attribute is there: it lies in some cell."""
    return int(pack(Family.CELL, attribute, Reach.UPTO, cells.top))


def missing_key(attribute: int) -> int:
    return int(pack(Family.CELL, attribute, Reach.MEMBER, -1, 1))


def _exact_kind(constant: Any) -> Kind | None:
    """The kind of a constant that can be a cut; a number must be a double, and NaN is above all cuts."""
    kind = values.view_of(constant)
    if kind is Kind.DOUBLE and (
        constant != constant or domain.DOUBLE.at_least(constant) == domain.DOUBLE.above(constant)
    ):
        return None
    return kind


def _constant(value: Any, literals: tuple[Any, ...]) -> Any:
    return FORMS[value.form](literals[value.token]) if isinstance(value, Hole) else value


def _instance(template: Lit, literals: tuple[Any, ...]) -> Lit:
    if not literals:
        return template
    return Lit(fill(template.atom, lambda h: FORMS[h.form](literals[h.token])), template.truth, template.default)


def _cells(attribute: _Attribute) -> Cells:
    if attribute.kind is Kind.STRING:
        texts = pa.array(sorted(set(attribute.constants)), pa.string())
        return Cells(attribute.path, attribute.kind, texts, attribute.ordered, attribute.view)
    dtype = np.float64 if attribute.kind is Kind.DOUBLE else np.int64
    cuts = np.unique(np.array(attribute.constants, dtype))
    return Cells(attribute.path, attribute.kind, cuts, attribute.ordered, attribute.view)


def _positions(cells: Cells) -> Any:
    """A function from constants to the numbers of their cuts; NEVER's and ALWAYS's constants are of no account."""
    if isinstance(cells.cuts, np.ndarray):
        cuts = cells.cuts
        return lambda constants: np.searchsorted(cuts, np.array(constants, cuts.dtype))
    places = {c: i for i, c in enumerate(cells.cuts.to_pylist())}
    return lambda constants: np.array([places.get(c, 0) for c in constants], np.int64)

"""What one name in a pattern means where it stands (docs/semantics.md, section 5, "Names").

A resolved name is a path headed by its holder: `#2` for the event at place 2, `$` for the last iteration of a FOLD, `@2`
for the aggregates at place 2. A stream that nobody declared has the attributes that the text mentions, and the types that
it teaches. What SELECT or UNION gives is known, so every other name is refused there.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.errors import LanguageError, TypeProblem, UnknownName
from headgate.language import ast
from headgate.language.catalogue import Catalogue, nearest
from headgate.predicates.types import Lookup, Types
from headgate.schema import Attribute, Path, Type, format_path
from headgate.sequences.places import Bound, Place
from headgate.sequences.spine import Merged, Spine


class Names:
    """Resolves the names of one text. `learned` has, for each undeclared stream that the text reads, what the text says
    of its attributes."""

    def __init__(self, catalogue: Catalogue, learned: dict[str, dict[Path, Type | None]]) -> None:
        self._catalogue = catalogue
        self._learned = learned

    def types(self, place: Place) -> Types:
        return Types(self.lookup(place), lambda node, found: self._learn(node, place, found))

    def lookup(self, place: Place) -> Lookup:
        return lambda node: self._type(self.path(node, place), place)

    def columns(self, bound: Bound) -> dict[Path, Type | None]:
        """What SELECT * gives of an event. Of an undeclared stream it is what this text mentions, for what others know of
        the stream is no part of it."""
        known = {a.path: a.type for a in bound.schema}
        own = self._learned.get(bound.schema.stream)
        if bound.schema.declared or own is None:
            return known
        return {path: kind or known.get(path) for path, kind in own.items()}

    def path(self, node: ast.Attribute, place: Place) -> Path | None:
        """The holder's path of a name; None where an aggregate starts from something that is not there."""
        path, scope = node.path, node.scope
        if place.own:
            if scope:
                raise TypeProblem(f"{scope} has no meaning in a FILTER over one stream", "write the attribute alone")
            return self._own(path, place.left[0])
        if scope == "$2" and not place.init:
            if place.incoming is None:
                raise TypeProblem("$2 is the incoming event: it has a meaning only in braces of NEXT, FOLD and ABSENT")
            return self._own(path, place.incoming, bare=True)
        if scope == "$" and not place.init:
            return self._iteration(path, place)
        if not scope and (found := self._aliased(path, place)) is not None:
            return found
        if not scope and place.incoming is not None:
            return self._own(path, place.incoming, bare=True)
        found = self.recent(path, place.left)
        if found is None and not place.init:
            raise _unknown(path, place)
        return found

    def recent(self, path: Path, left: list[Bound]) -> Path | None:
        """The attribute of the most recently bound event that has it."""
        for b in reversed(left):
            if b.visible and (found := b.path(path)) is not None:
                if found[0][0] == "#":
                    self._mention(b, path)
                return found
        return None

    def _iteration(self, path: Path, place: Place) -> Path:
        if not place.iteration:
            raise TypeProblem("$ is the last iteration: it has a meaning only in the braces of a FOLD", "use $1 or $2")
        if len(path) == 1 and path[0] in place.old:
            return ("@", path[0])
        assert place.incoming is not None
        return ("$", *self._own(path, place.incoming, bare=True)[1:])

    def _aliased(self, path: Path, place: Place) -> Path | None:
        if len(path) < 2:
            return None
        incoming = place.incoming
        if incoming is not None and path[0] == incoming.alias:
            return self._iteration(path[1:], place) if place.iteration else self._own(path[1:], incoming, bare=True)
        for b in place.left:
            if b.alias == path[0]:
                if not b.visible:
                    raise TypeProblem(
                        f"{b.alias} did not happen: it is what ABSENT waits for", "use the events before it"
                    )
                found = b.path(path[1:])
                if found is None:
                    self._catalogue.attribute(b.schema, path[1:])  # raises, and knows the hint
                elif found[0][0] == "#":
                    self._mention(b, path[1:])
                return found
        return None

    def _own(self, path: Path, bound: Bound, *, bare: bool = False) -> Path:
        if not bare and len(path) > 1 and path[0] == bound.alias:
            path = path[1:]
        self._catalogue.attribute(bound.schema, path)
        self._mention(bound, path)
        return (bound.key, *path)

    def _mention(self, bound: Bound, path: Path) -> None:
        """An undeclared stream has the attributes that texts mention, whatever their types."""
        if not bound.schema.declared and bound.schema.stream in self._learned:
            self._learned[bound.schema.stream].setdefault(path, None)

    def _type(self, path: Path | None, place: Place) -> Type | None:
        if path is None:
            return None
        head, rest = path[0], path[1:]
        if head == "@":
            return place.old[rest[0]]
        bound = _holder(path, place)
        if head.startswith("@"):
            return bound.accumulators[rest[0]]
        own = self._learned.get(bound.schema.stream, {}).get(rest)
        return own or self._catalogue.attribute(bound.schema, rest)

    def _learn(self, node: ast.Attribute, place: Place, found: Type) -> None:
        path = self.path(node, place)
        if path is None:
            return
        bound, rest = _holder(path, place), path[1:]
        if path[0].startswith("@"):
            operands = bound.operands.get(rest[0], [])
            for operand, where in operands:
                self._learn(operand, where, found.element)
            if not operands:
                raise _untold(rest)
            return
        if not self._teach(bound.origin, rest, found):
            raise _untold(rest)
        if bound.schema.stream not in self._learned:
            attributes = {**bound.schema.attributes, rest: Attribute(rest, found)}
            bound.schema = replace(bound.schema, attributes=attributes)

    def _teach(self, origin: str | Spine | Merged, path: Path, found: Type) -> bool:
        """A type goes down to the stream that an inner pattern has the attribute from; False if there is none."""
        match origin:
            case str():
                if origin in self._learned:
                    self._learned[origin][path] = found
                return origin in self._learned
            case Merged(left, right):
                return all(self._teach(s, path, found) for s in (left, right) if s.schema.get(path) is not None)
        item: ast.Node | None = origin.items[list(origin.schema.attributes).index(path)].expression
        if isinstance(item, ast.Attribute) and item.path[0].startswith("@"):
            found, name = found.element, item.path[1]
            accumulators = origin.steps[int(item.path[0][1:]) - 1].accumulators
            item = next(a.operand for a in accumulators if a.name == name)
        if not isinstance(item, ast.Attribute) or not item.path[0].startswith("#"):
            return False
        place = int(item.path[0][1:])
        source = origin.steps[place - 1].source if place else origin.start
        return self._teach(source.origin, item.path[1:], found)


def _untold(path: Path) -> LanguageError:
    return TypeProblem(f"nothing tells the type of {format_path(path)}", "declare the stream that it comes from")


def _holder(path: Path, place: Place) -> Bound:
    if path[0] in ("$", "@"):
        assert place.incoming is not None
        return place.incoming
    here = [*place.left, *([place.incoming] if place.incoming else [])]
    return next(b for b in here if b.key == "#" + path[0][1:])


def _unknown(path: Path, place: Place) -> LanguageError:
    names = [format_path(a.path) for b in place.left for a in b.schema]
    names += [n for b in place.left for n in b.accumulators]
    name = format_path(path)
    return UnknownName(f"no event of this sequence has an attribute {name}", nearest(name, names, "check the streams"))

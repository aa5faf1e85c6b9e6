"""What one name in a pattern means where it stands (docs/semantics.md, section 5, "Names").

A resolved name is a path headed by its holder: `#2` for the event at place 2, `$` for the last iteration of a FOLD, `@2`
for the aggregates at place 2. A stream that nobody declared has the attributes that the text mentions, of the type ANY.
What SELECT or UNION gives is known, so every other name is refused there.
"""

from __future__ import annotations

from headgate.errors import LanguageError, TypeProblem, UnknownName
from headgate.language import ast
from headgate.language.catalogue import Catalogue, nearest
from headgate.predicates.types import Lookup, Types
from headgate.schema import Path, Type, format_path
from headgate.sequences.places import Bound, Place


class Names:
    """Resolves the names of one text. `mentioned` has, for each undeclared stream that the text reads, the attributes
    that it speaks of."""

    def __init__(self, catalogue: Catalogue, mentioned: dict[str, dict[Path, None]]) -> None:
        self._catalogue = catalogue
        self._mentioned = mentioned

    def types(self, place: Place) -> Types:
        return Types(self.lookup(place))

    def lookup(self, place: Place) -> Lookup:
        return lambda node: self._type(self.path(node, place), place)

    def columns(self, bound: Bound) -> dict[Path, Type | None]:
        """What SELECT * gives of an event. Of an undeclared stream it is what this text mentions, for what others know of
        the stream is no part of it."""
        known = {a.path: a.type for a in bound.schema}
        own = self._mentioned.get(bound.schema.stream)
        return known if bound.schema.declared or own is None else dict(own)

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
        """An undeclared stream has the attributes that texts mention."""
        if not bound.schema.declared and bound.schema.stream in self._mentioned:
            self._mentioned[bound.schema.stream][path] = None

    def _type(self, path: Path | None, place: Place) -> Type | None:
        if path is None:
            return None
        head, rest = path[0], path[1:]
        if head == "@":
            return place.old[rest[0]]
        bound = _holder(path, place)
        if head.startswith("@"):
            return bound.accumulators[rest[0]]
        return self._catalogue.attribute(bound.schema, rest)


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

"""The names and types of a filter body: attributes, operators, and that every variable is bound.

This is the first half of admission, which resolves and types a text and collects all its problems; the second half
builds it (`subscriptions.admission`), and what only building can tell, such as the shape of a GRAPH, is not asked here.

The binding rule (docs/semantics.md, section 3): a call or GRAPH binds its variables; AND binds what any part binds, OR what all
its parts bind, NOT nothing. A value constraint may use only what is bound where it stands. Under NOT a call or GRAPH
may have variables only if they occur nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from headgate.errors import BindingProblem, LanguageError, TypeProblem, UnknownName
from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.catalogue import Catalogue, nearest, unknown_operator
from headgate.predicates.types import Types
from headgate.schema import Schema, Type


def check_filter(body: Node, schema: Schema, catalogue: Catalogue) -> list[LanguageError]:
    """The problems of a filter, in the order of the text."""

    def lookup(node: ast.Attribute) -> Type | None:
        if node.scope:
            raise TypeProblem(f"{node.scope} has a meaning only inside a sequence", "write the attribute alone")
        return catalogue.attribute(schema, node.path)

    types = Types(lookup)
    types.predicate(body)
    problems = [*types.problems, *check_calls(body, catalogue), *check_variables(body)]
    problems += [
        TypeProblem("DUR has a meaning only inside a sequence", "write SELECT ... FROM ...", at=node.at)
        for node in ast.walk(body)
        if isinstance(node, ast.Duration)
    ]
    return sorted(problems, key=lambda p: p.at)


def literals_fit(atoms: Iterable[Node], schema: Schema, catalogue: Catalogue) -> bool:
    """Whether atoms are right on a declared stream where atoms with other literals were."""
    types = Types(lambda node: catalogue.attribute(schema, node.path))
    for atom in atoms:
        types.predicate(atom)
    return not types.problems


def check_calls(body: Node, catalogue: Catalogue) -> list[LanguageError]:
    problems: list[LanguageError] = []
    for node in ast.walk(body):
        if not isinstance(node, ast.Call):
            continue
        signature = catalogue.operators.get(node.name)
        if signature is None:
            problems.append(unknown_operator(node.name, catalogue, node.at))
            continue
        count = len(node.arguments)
        if count < signature.least or (signature.most is not None and count > signature.most):
            takes = str(signature.least) if signature.least == signature.most else f"{signature.least} or more"
            if signature.most not in (None, signature.least):
                takes = f"{signature.least} to {signature.most}"
            noun = "argument" if takes == "1" else "arguments"
            problems.append(TypeProblem(f"{node.name} takes {takes} {noun}, not {count}", at=node.at))
        for i, argument in enumerate(node.arguments):
            if isinstance(argument, ast.Variable) and signature.variables is not None and i not in signature.variables:
                message = f"argument {i + 1} of {node.name} may not be a variable"
                problems.append(BindingProblem(message, "give a value or an attribute", at=argument.at))
    return problems


def check_graphs(body: Node, catalogue: Catalogue) -> list[LanguageError]:
    problems: list[LanguageError] = []
    for graph in ast.walk(body):
        if not isinstance(graph, ast.Graph):
            continue
        known = {t.name for triple in graph.triples for t in ast.walk(triple) if isinstance(t, ast.Variable)}
        for node in (n for part in (*graph.triples, *graph.filters) for n in ast.walk(part)):
            if isinstance(node, ast.Name) and (prefix := node.text.partition(":")[0]) not in catalogue.prefixes:
                hint = nearest(prefix, catalogue.prefixes, f"declare it: PREFIX {prefix}: <http://...>")
                problems.append(UnknownName(f"there is no prefix {prefix}:", hint, at=node.at))
            elif isinstance(node, ast.Attribute):
                hint = "a vertex is ?x, _:x, prefix:name, <iri> or a literal"
                problems.append(TypeProblem("an attribute cannot stand in a GRAPH pattern", hint, at=node.at))
        for f in graph.filters:
            for node in ast.walk(f):
                if isinstance(node, ast.Variable) and node.name not in known:
                    message = f"?{node.name} does not occur in the statements of this GRAPH"
                    problems.append(BindingProblem(message, "FILTER uses variables of its own GRAPH", at=node.at))
    return problems


def bound(node: Node) -> frozenset[str]:
    """The variables that `node`, when it holds, has bound."""
    match node:
        case ast.Call(_, arguments):
            return frozenset(a.name for a in arguments if isinstance(a, ast.Variable))
        case ast.Graph(triples=triples):
            return frozenset(v.name for t in triples for v in ast.walk(t) if isinstance(v, ast.Variable))
        case ast.And(items):
            return frozenset().union(*map(bound, items))
        case ast.Or(items):
            return frozenset.intersection(*map(bound, items))
    return frozenset()


def check_variables(body: Node) -> list[LanguageError]:
    """Every variable is bound where it is used; those under NOT stand alone."""
    problems: list[LanguageError] = []
    uses = Counter(n.name for n in ast.walk(body) if isinstance(n, ast.Variable))

    def visit(node: Node, known: frozenset[str], negated: bool) -> None:
        match node:
            case ast.And(items):
                inside = known if negated else known | bound(node)
                for item in items:
                    visit(item, inside, negated)
            case ast.Or(items):
                for item in items:
                    visit(item, known | (frozenset() if negated else bound(item)), negated)
            case ast.Not(operand):
                visit(operand, known, not negated)
            case ast.Call() | ast.Graph():
                if negated:
                    own = Counter(n.name for n in ast.walk(node) if isinstance(n, ast.Variable))
                    problems.extend(
                        BindingProblem(
                            f"?{name} is used elsewhere, so NOT cannot bind it", "rename one of them", at=node.at
                        )
                        for name in sorted(n for n in own if uses[n] > own[n])
                    )
            case _:
                for below in ast.walk(node):
                    if isinstance(below, ast.Variable) and below.name not in known:
                        hint = f"a positive call or GRAPH with ?{below.name} must stand in the same AND"
                        problems.append(BindingProblem(f"nothing binds ?{below.name} here", hint, at=below.at))

    visit(body, bound(body), negated=False)
    return problems

"""Operators: user code that a subscription may call, and the registry in which it is found by name.

An operator is called as `op(event, *arguments)`; in the position of a `?variable` it receives `VAR`. It returns a bool,
or an iterable of tuples with one value for each variable position: all feasible bindings (DEBS 2007, section 2.1). What
it declares besides — cost, needs, timeout — are promises to the scheduler, not part of its meaning.

A package brings operators through the entry-point group `headgate.operators`, each entry an `Operator` or an iterable
of them; they are loaded when a subscription first names one that nobody registered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final, Literal, TypedDict, Unpack, get_args, overload

from headgate.errors import DuplicateName, EnvironmentProblem, UnknownName, UsageError
from headgate.language.catalogue import Signature, nearest
from headgate.schema import Path, parse_path

GROUP = "headgate.operators"
Concurrency = Literal["inline", "threads", "processes"]


class Var:
    """The type of `VAR`, which an operator receives where a subscription wrote a variable."""

    _only: Var | None = None

    def __new__(cls) -> Var:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "VAR"

    def __reduce__(self) -> tuple[type[Var], tuple[()]]:
        return (Var, ())


VAR: Final = Var()


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator and what it promises. `cost` (milliseconds) and `selectivity` are priors; both are measured on."""

    name: str
    function: Callable[..., Any]
    least: int = 0
    most: int | None = None
    variables: frozenset[int] | None = None
    """The argument positions that may be variables; None: any."""
    cost: float = 1.0
    selectivity: float = 0.5
    needs: tuple[Path, ...] | None = None
    """The attributes it reads; None: all that the stream declares."""
    timeout: float | None = None
    """Seconds; a call that takes longer is an error of the subscriptions that asked. Waiting for a worker does not count."""
    pure: bool = False
    """The answer depends only on the arguments and the attributes in `needs`, so it may be kept."""
    batch: Callable[..., Sequence[Any]] | None = None
    """`batch(table, arguments)`: one row of the Arrow table and one tuple of arguments a call; one result each."""
    concurrency: Concurrency | None = None
    """How it is called. None: in the caller's thread, but on Spark and in a broker in a process of its own."""
    workers: int = 4
    rows: int = 10_000
    breaker: int | None = None
    """After so many failures in a row it is not called for a while. None: it is always called, so that the truth of a
    pair depends neither on the clock nor on the order of events."""

    def __call__(self, event: Any, *arguments: Any) -> Any:
        return self.function(event, *arguments)

    @property
    def signature(self) -> Signature:
        return Signature(self.name, self.least, self.most, self.variables)


class Promises(TypedDict, total=False):
    """What `@operator` takes; `Operator` says what each means."""

    name: str | None
    cost: float
    selectivity: float
    needs: Iterable[str] | None
    timeout: float | None
    pure: bool
    batch: Callable[..., Sequence[Any]] | None
    concurrency: Concurrency | None
    workers: int
    variables: Iterable[int | str] | None
    rows: int
    breaker: int | None


@overload
def operator(function: Callable[..., Any], /) -> Operator: ...


@overload
def operator(**promises: Unpack[Promises]) -> Callable[[Callable[..., Any]], Operator]: ...


def operator(
    function: Callable[..., Any] | None = None, /, **promises: Unpack[Promises]
) -> Operator | Callable[[Callable[..., Any]], Operator]:
    """Make a function an operator: `@operator` or `@operator(cost=5.0, needs=["image"])`."""

    def make(f: Callable[..., Any]) -> Operator:
        given: dict[str, Any] = dict(promises)
        called = given.pop("name", None) or f.__name__
        least, most, names = _arguments(called, f)
        needs, variables = given.pop("needs", None), given.pop("variables", None)
        made = Operator(
            called,
            f,
            least,
            most,
            None if variables is None else frozenset(_position(called, v, names) for v in variables),
            needs=None if needs is None else tuple(parse_path(n) for n in needs),
            **given,
        )
        for what in ("cost", "timeout", "workers", "rows", "breaker"):
            number = getattr(made, what)
            if number is not None and not number > 0:
                raise UsageError(f"operator {called}: {what} must be above zero, not {number}")
        if not 0.0 <= made.selectivity <= 1.0:
            raise UsageError(f"operator {called}: selectivity is a probability, not {made.selectivity}")
        if made.concurrency not in (None, *get_args(Concurrency)):
            raise UsageError(
                f"operator {called}: concurrency is inline, threads or processes, not {made.concurrency!r}"
            )
        return made

    return make if function is None else make(function)


def _arguments(called: str, f: Callable[..., Any]) -> tuple[int, int | None, list[str]]:
    """The least and most arguments after the event, and their names."""
    parameters = list(inspect.signature(f).parameters.values())
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if not named and not rest:
        raise UsageError(f"operator {called} takes no event", f"define it as {called}(event, ...)")
    demanded = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if demanded:
        raise UsageError(
            f"operator {called}: {demanded[0].name} must be named, but a call gives positions", "give it a default"
        )
    arguments = named[1:]
    return sum(p.default is p.empty for p in arguments), None if rest else len(arguments), [p.name for p in arguments]


def _position(called: str, variable: int | str, names: list[str]) -> int:
    if isinstance(variable, int):
        return variable
    if variable not in names:
        raise UsageError(
            f"operator {called} has no argument {variable}", nearest(variable, names, f"it has {', '.join(names)}")
        )
    return names.index(variable)


class Registry(Mapping[str, Operator]):
    """Operators by name. Those of installed packages are looked up when a name is not found among the given ones."""

    def __init__(self, operators: Iterable[Operator | Callable[..., Any]] = ()) -> None:
        self._operators: dict[str, Operator] = {}
        self._installed = True
        """Whether installed packages are still to be asked."""
        for given in operators:
            self.add(given if isinstance(given, Operator) else operator(given))

    def add(self, given: Operator) -> None:
        known = self._operators.get(given.name)
        if known is not None and known != given:
            raise DuplicateName(
                f"there are two operators called {given.name}", "give one of them another name: @operator(name=...)"
            )
        self._operators[given.name] = given

    def __getitem__(self, name: str) -> Operator:
        found = self._operators.get(name)
        if found is None and self._installed:
            self._load()
            found = self._operators.get(name)
        if found is None:
            hint = nearest(name, self._operators, "register it with Subscriptions(operators=[...])")
            raise UnknownName(f"there is no operator {name}", hint)
        return found

    def __contains__(self, name: object) -> bool:
        if name not in self._operators and self._installed:
            self._load()
        return name in self._operators

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)

    def _load(self) -> None:
        """Take in what installed packages bring; a name that was given by hand wins over theirs."""
        self._installed = False
        for entry in entry_points(group=GROUP):
            try:
                brought = entry.load()
            except Exception as broken:
                raise EnvironmentProblem(
                    f"the operators of entry point {entry.name} ({entry.value}) cannot be loaded: {broken}",
                    "repair or uninstall that package",
                ) from broken
            for given in [brought] if isinstance(brought, Operator) else list(brought):
                if not isinstance(given, Operator):
                    raise EnvironmentProblem(
                        f"entry point {entry.name} brings {type(given).__name__}, not an operator",
                        "decorate it with @headgate.operator",
                    )
                self._operators.setdefault(given.name, given)

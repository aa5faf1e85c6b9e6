"""Registering operators, and how they travel."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import DuplicateName, EnvironmentProblem, UnknownName, UsageError
from headgate.operators import VAR, Operator, Registry, operator, registry
from headgate.operators.operator_pickling import pack, unpack


@operator(cost=2.0, needs=["image"])
def at_module_level(event: Any, size: int) -> bool:
    return size > 1


def test_a_plain_function_becomes_an_operator_with_its_signature() -> None:
    @operator
    def near(event: Any, place: str, metres: float = 10.0) -> bool:
        return True

    assert (near.name, near.least, near.most) == ("near", 1, 2)
    assert near(None, "x") is True


def test_variables_are_named_by_position_or_by_argument() -> None:
    @operator(variables=["metres", 0])
    def near(event: Any, place: str, metres: float) -> bool:
        return True

    assert near.signature.variables == frozenset({0, 1})
    with pytest.raises(UsageError, match=r"no argument meters\n  hint: did you mean metres"):
        operator(variables=["meters"])(near.function)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": 0}, "cost must be above zero"),
        ({"timeout": -1.0}, "timeout must be above zero"),
        ({"selectivity": 1.5}, "selectivity is a probability"),
        ({"concurrency": "fibres"}, "concurrency is inline, threads or processes"),
    ],
)
def test_promises_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        operator(**options)(lambda event: True)


def test_a_function_without_an_event_or_with_named_arguments_is_refused() -> None:
    with pytest.raises(UsageError, match="takes no event"):
        operator(name="f")(lambda: True)

    def g(event: Any, *, place: str) -> bool:
        return True

    with pytest.raises(UsageError, match="place must be named"):
        operator(g)


def test_an_unknown_operator_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"no operator mob_patern\n  hint: did you mean mob_pattern"):
        Registry([operator(name="mob_pattern")(lambda event: True)])["mob_patern"]


def test_two_operators_of_one_name_are_refused() -> None:
    first, second = operator(name="p")(lambda event: True), operator(name="p")(lambda event: False)
    with pytest.raises(DuplicateName, match="two operators called p"):
        Registry([first, second])
    assert len(Registry([first, first])) == 1


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    entries: list[EntryPoint] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: entries if group == "headgate.operators" else [])
    return entries


def test_an_installed_package_brings_operators_when_they_are_first_named(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("mine", f"{__name__}:at_module_level", "headgate.operators"))
    sys.modules.setdefault(__name__, sys.modules[at_module_level.function.__module__])
    book = Registry()
    assert len(book) == 0
    assert book["at_module_level"] is at_module_level


def test_a_broken_package_is_named(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("broken", "no_such_module:f", "headgate.operators"))
    with pytest.raises(EnvironmentProblem, match="operators of entry point broken"):
        Registry()["f"]


def test_var_is_itself_on_every_machine() -> None:
    assert pickle.loads(pickle.dumps(VAR)) is VAR  # noqa: S301 - our own bytes
    assert repr(VAR) == "VAR"


def test_an_operator_from_a_notebook_travels_by_value() -> None:
    factor = 3

    @operator
    def scaled(event: Any, n: int) -> bool:
        return n * factor > 5

    (back,) = unpack(pack([scaled]))
    assert isinstance(back, Operator)
    assert back(None, 2) is True
    assert back(None, 1) is False


def test_an_operator_of_a_module_travels_by_name(tmp_path: Path) -> None:
    (tmp_path / "brought.py").write_text(
        "from headgate.operators import operator\n@operator\ndef twice(event, n):\n    return n == 2\n"
    )
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import brought; from headgate.operators.operator_pickling import pack, unpack\n"
        "sent = pack([brought.twice]); assert b'brought:twice' in sent\n"
        "(back,) = unpack(sent); assert back is brought.twice\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)


def test_a_module_that_is_not_there_is_named() -> None:
    sent = pickle.dumps([("twice", "no_such_module:twice", b"")])
    with pytest.raises(EnvironmentProblem, match="twice is no_such_module:twice where the plan was made"):
        unpack(sent)

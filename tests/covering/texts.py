"""Random filters over a schema of mixed types, for the property tests of covering."""

from __future__ import annotations

from hypothesis import strategies as st

from headgate.schema import Schema

SCHEMA = Schema.of(
    "events",
    {"x": "double", "i": "bigint", "t": "string", "b": "boolean", "n": "bigint", "d": "double"},
    not_null=["n"],
    defaults={"d": 2.0},
)
OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
NUMBERS = st.sampled_from(["0", "1", "2", "2.5", "3", "-1"])
TEXTS = st.sampled_from(["'a'", "'ab'", "'b'", "''"])
MODES = st.sampled_from(["null", "null", "strict", "default", "total"])


def _atoms(names: list[str]) -> st.SearchStrategy[str]:
    numbers = st.sampled_from([n for n in names if n in "xind"] or ["n"])
    kinds = [
        st.builds("{} {} {}".format, numbers, OPERATORS, NUMBERS),
        st.builds("{} BETWEEN {} AND {}".format, numbers, NUMBERS, NUMBERS),
        st.builds("{} NOT BETWEEN {} AND {}".format, numbers, NUMBERS, NUMBERS),
        st.builds("{} IN ({}, {}, {})".format, numbers, NUMBERS, NUMBERS, NUMBERS),
        st.builds("{} NOT IN ({}, {})".format, numbers, NUMBERS, NUMBERS),
        st.builds("{} {} NULL".format, numbers, OPERATORS),
        st.builds("{} IS NULL".format, st.sampled_from(names)),
        st.builds("{} IS NOT NULL".format, st.sampled_from(names)),
        st.sampled_from(["TRUE", "FALSE", "NULL"]),
    ]
    if "t" in names:
        kinds += [
            st.builds("t {} {}".format, OPERATORS, TEXTS),
            st.sampled_from(["t LIKE 'a%'", "t NOT LIKE 'ab%'", "t LIKE 'ab'", "t LIKE '%'", "t STARTS WITH 'a'"]),
        ]
    if "b" in names:
        kinds += [st.sampled_from(["b", "NOT b", "b = TRUE", "b <> TRUE"])]
    return st.one_of(kinds)


def filters(names: list[str], size: int = 6) -> st.SearchStrategy[str]:
    """Texts over some of the attributes of SCHEMA."""
    return st.recursive(
        _atoms(names),
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
        ),
        max_leaves=size,
    )

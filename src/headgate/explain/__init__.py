"""Why a subscription matched an event, or what blocked it: one file a family, one shape of answer."""

from headgate.explain.explanation import Atom, Explanation
from headgate.pictures import Picture

__all__ = ["Atom", "Explanation", "Picture"]

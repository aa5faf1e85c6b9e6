"""The durable book: subscriptions in a database, with a version and the changes since one; and the logs beside it.

`Store` is loaded when it is first used: what only reads a log need not load the compiler of the kernels.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.store.book import Store
    from headgate.store.records import Change
    from headgate.store.replica import Quarantined

__all__ = ["Change", "Quarantined", "Store"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'headgate.store' has no attribute {name!r}")
    from headgate.store import book, records, replica

    return getattr({"Change": records, "Quarantined": replica}.get(name, book), name)

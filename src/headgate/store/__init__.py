"""The durable book: subscriptions in a database, with a version and the changes since one; and the logs beside it."""

from headgate.store.book import Change, Store

__all__ = ["Change", "Store"]

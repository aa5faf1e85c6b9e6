"""The book of subscriptions: what may enter it, what it may refer to, and how it is read from scripts and tables."""

from headgate.subscriptions.book import ANONYMOUS, Subscriptions

__all__ = ["ANONYMOUS", "Subscriptions"]

"""Headgate: expressive publish/subscribe on Spark."""

"""The broker over HTTP."""

"""Conditions and expressions as programs of a small stack machine: the backend for compiled loops."""

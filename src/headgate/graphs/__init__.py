"""Subscriptions by meaning: RDF events, an ontology behind them, graph patterns over them (OPS, Middleware 2004).

Reading RDF text needs pyoxigraph (`pip install headgate[graphs]`); it is imported when the first text is read, so that
streams whose graphs are built from plain columns do without it.
"""

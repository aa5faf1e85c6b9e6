"""The one loop: decode, match, rows, with problems kept apart. No Spark, no HTTP.

The process, Spark's workers and the broker bring events here and take rows from here. The loop knows a compiled book by
what it offers (`book.CompiledBook`), not by how it was compiled, so it stands below `plan`, whose `match` is a call of it.
"""

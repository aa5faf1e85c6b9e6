"""Sequences in buckets, with their state as bytes: the loop that Spark's stateful step and the broker run.

`route` sends the events that matter to their buckets; `buckets` is the state of one bucket and what a batch does to it,
with `watermark` for time, `pages` and `packing` for bytes; `rebucket` deals state out anew.
"""

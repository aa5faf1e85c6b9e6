"""Sequences on Spark: the one stateful step of the pipeline.

`groups` says which sequences can be spread by the value of a key; `book` compiles them group by group; `route` sends the
events that matter to their buckets; `buckets` is the state of one bucket and what a batch does to it, with `watermark`
for time, `pages` and `packing` for bytes; `step` is all of it as a Spark operator, on a stream and on a batch;
`inspection` reads the state of a checkpoint, and `rebucket` deals it out anew.
"""

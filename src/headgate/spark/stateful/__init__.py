"""Sequences on Spark: the one stateful step of the pipeline, which runs the buckets of `runtime.stateful`.

`tasks` is what the stateless pass sends to the buckets, `step` the operator, on a stream and on a batch, `settings` what
the user says of time; `inspection` reads the state of a checkpoint and deals it out anew.
"""

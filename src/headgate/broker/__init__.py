"""The broker: people and programs subscribe over HTTP, publish, and get their matches.

    publish -> event log -> matching (Spark, or this process) -> notifications -> delivery

Everything between the arrows is in the store, so every part can be killed and started again: `log` takes events in,
`matching` finds notifications, `tail` follows them, `delivery` brings them to their subscribers, `peers` to other
brokers. `http` is the face of it all.
"""

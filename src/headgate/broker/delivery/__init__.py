"""How notifications reach their subscribers: at least once on the wire, each with an id that tells repetitions."""

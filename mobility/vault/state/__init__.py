"""State of a shard: presence, days, answers, visits, as arrays and as bytes."""

"""State of subscribers, sealed: keystore, shards, opt-outs, sanitising.

Imports extracts; knows no batch step.
"""

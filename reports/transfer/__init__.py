"""Signed messages from operator zones that run apart: received here, sent by mobility.batches.publication."""

"""Channels of the mechanisms: from epsilon to integer probabilities, one module per family."""

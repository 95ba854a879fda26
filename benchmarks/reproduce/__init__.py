"""`make reproduce`: what the papers claim, recomputed from `ldp`, and where it does not hold."""

"""Tables that are released row by row with noisy places: options, columns, approval, and writing them.

Everything about such a table belongs here. It may import the vault, the readers of extracts and what pages of
batches share; studies' totals know nothing of it.
"""

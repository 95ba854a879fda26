"""Sanitise with keyed bits: true codes of subscribers in, lasting reports out.

No probabilities (protocols). Imports kernels, protocols, geo, privacy.
"""

"""Protocols as channels: the only place that turns epsilon into integer probabilities.

Imports kernels; no keys (keyed), no counts (estimation).
"""

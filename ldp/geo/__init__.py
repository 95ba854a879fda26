"""Locations: planar Laplace noise on a metric grid (geo-indistinguishability)."""

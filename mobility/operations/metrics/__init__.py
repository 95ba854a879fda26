"""Metrics for Prometheus: what web processes, workers and the vault say."""

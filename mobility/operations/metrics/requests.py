"""Durations of requests, by view: each web process counts in its own file, and a scrape adds them up.

The files lie in a folder of the processes that belong together: of one host and one master process.
"""

from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics

BUCKETS_S: Final = (0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

disable_created_metrics()  # type: ignore[no-untyped-call] # as it is with several processes


def observe(*, view: str, method: str, status: int, seconds: float, come_again: bool = False) -> None:
    """Count a request; `view` is a name, never an address; an answer with Retry-After is no fault."""
    label = "again" if come_again else f"{status // 100}xx"
    _histogram().labels(view=view, method=method, status=label).observe(seconds)


@cache
def _histogram() -> Histogram:
    return Histogram(
        "mobility_http_request_seconds",
        "Duration of requests, by view, method and status class.",
        labelnames=("view", "method", "status"),
        buckets=BUCKETS_S,
        registry=own_registry(),
    )


@cache
def own_registry() -> CollectorRegistry:
    """Return the registry of this process; without a folder, of all known."""
    return CollectorRegistry()

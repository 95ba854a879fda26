"""Durations of tasks: workers on any host add to a hash of the broker, and a scrape reads it.

The broker keeps it as long as it lives; Prometheus takes what begins again for what it is.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import redis
from celery.signals import task_postrun, task_prerun
from django.conf import settings

from mobility.workers.app import TASKS
from mobility.workers.queues import client

log = logging.getLogger(__name__)
BUCKETS_S: Final = (0.1, 1.0, 10.0, 60.0, 600.0, 3600.0)
OUTCOMES: Final = {"SUCCESS": "done", "FAILURE": "failed", "RETRY": "retried"}
INFINITE: Final = "+Inf"
_began: dict[str, float] = {}


@task_prerun.connect
def _begins(task_id: str = "", **_: Any) -> None:
    if settings.MOBILITY_METRICS_TOKEN:
        _began[task_id] = time.perf_counter()


@task_postrun.connect
def _ends(task_id: str = "", task: Any = None, state: str | None = None, **_: Any) -> None:
    began = _began.pop(task_id, None)
    if began is not None and task.name in TASKS:
        add(_short(task.name), state=state or "", seconds=time.perf_counter() - began)


def add(task: str, *, state: str, seconds: float) -> None:
    """Count a task that has ended. Without a broker it is not counted: nothing waits for that."""
    outcome = OUTCOMES.get(state, "other")
    limit = next((str(each) for each in BUCKETS_S if seconds <= each), INFINITE)
    try:
        pipeline = client().pipeline(transaction=False)
        pipeline.hincrby(_key(), f"{task}|{outcome}|{limit}", 1)
        pipeline.hincrby(_key(), f"{task}|{outcome}|ms", round(seconds * 1000))
        pipeline.execute()
    except (redis.RedisError, OSError) as error:
        log.warning("task_uncounted error=%s", type(error).__name__)


def totals() -> Iterator[tuple[str, str, list[tuple[str, float]], float]]:
    """Return per task and outcome: (limit in seconds, number of tasks within it) and the sum of seconds.

    Every task has its failures, also where there were none: for Prometheus a number that begins above 0 has
    not grown.

    Raises
    ------
    redis.RedisError, OSError : the broker does not answer
    """
    counts: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    found: Any = client().hgetall(_key())
    for name, n in found.items():
        task, outcome, what = name.decode().split("|")
        counts[task, outcome][what] = int(n)
    for task in map(_short, TASKS):
        counts.setdefault((task, OUTCOMES["FAILURE"]), {})
    for (task, outcome), by_limit in sorted(counts.items()):
        buckets, so_far = [], 0
        for limit in (*map(str, BUCKETS_S), INFINITE):
            so_far += by_limit.get(limit, 0)
            buckets.append((limit, float(so_far)))
        yield task, outcome, buckets, by_limit.get("ms", 0) / 1000


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _key() -> str:
    return f"mobility:tasks:{settings.MOBILITY_ZONE}"

"""Redis: it must refuse rather than forget, and have our time."""

import time
from typing import Final

from redis.exceptions import ResponseError

from mobility.embedded.redis_program import redis_program
from mobility.operations.doctor.clocks import compared
from mobility.operations.doctor.diagnosis import Diagnoses, error_if, note
from mobility.operations.probes.broker import ERRORS, is_asleep
from mobility.workers.queues import client

SEE: Final = "see broker_unreachable, then run doctor again"


def forgets_nothing() -> Diagnoses:
    """A broker that is full must not drop tasks."""
    try:
        policy = str(client().config_get("maxmemory-policy")["maxmemory-policy"])
        limit = int(str(client().config_get("maxmemory")["maxmemory"]))
    except ResponseError:
        what = "this account may not read the broker's settings"
        yield note("broker_setting", what, "check that maxmemory-policy is noeviction")
        return
    except ERRORS as failure:
        if not is_asleep():
            what = f"the broker's settings could not be read ({type(failure).__name__})"
            yield note("broker_setting", what, SEE)
        return
    what = f"maxmemory-policy is {policy}: when Redis is full, it drops tasks"
    todo = "set maxmemory-policy noeviction in redis.conf"
    yield error_if(limit and policy != "noeviction", "broker_setting", what, todo)


def version() -> str | None:
    """Return the version of Redis, or of the one that commands would start; None if it does not answer."""
    try:
        return str(client().info("server")["redis_version"])
    except (*ERRORS, ResponseError):
        return redis_program().version_text if is_asleep() else None


def clock() -> Diagnoses:
    """Check the clock."""
    before = time.time()
    try:
        seconds, micros = client().time()
    except ERRORS as failure:
        if not is_asleep():
            what = f"the broker's clock could not be compared ({type(failure).__name__})"
            yield note("clock_skewed", what, SEE, subject="broker")
        return
    yield compared("broker", theirs=seconds + micros / 1e6, before=before, after=time.time())

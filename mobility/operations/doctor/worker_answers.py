"""Answer of a worker to the doctor: does it see the same keys, uploads and time.

Asked by `mobility.operations.doctor.workers`; imported by workers alone.
"""

import time
from typing import Any

from celery.worker.control import inspect_command
from django.conf import settings

from reports.base.version import software

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.batches.storages import staging_storage
    from mobility.vault.keystore import keystore


@inspect_command(args=[("staged", str), ("keys", list)])  # type: ignore[untyped-decorator]
def installation(state: Any, staged: str = "", keys: list[str] | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Version, zone and clock; where there is a vault: is a staged object seen, and how many keys are not.

    Parameters
    ----------
    staged : name of an object that the doctor has just staged
    keys : ids of keys that should be in the keystore
    """
    answer = {"version": software()["version"], "zone": settings.MOBILITY_ZONE, "time": time.time()}
    if settings.HAS_VAULT:
        missing = sum(not keystore().exists(key) for key in keys or [])
        answer |= {"sees_staged": _sees(staged), "keys_missing": missing}
    return answer


def _sees(staged: str) -> bool:
    try:
        return bool(staging_storage().read_range(staged))
    except (OSError, ValueError):  # absent, or the storage does not answer
        return False

"""Workers on other hosts: they need the same keys, the same staged uploads, this version and our time."""

import time
from typing import Any, Final

from django.conf import settings
from kombu.exceptions import OperationalError

from mobility.base.errors import StagingUnavailableError
from mobility.operations.doctor.clocks import compared
from mobility.operations.doctor.diagnosis import Diagnoses, Diagnosis, error, fine, note, warning
from mobility.operations.probes.broker import is_asleep
from mobility.workers.app import app
from reports.base.version import software

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.operations.doctor.storage import MARK, marked
    from mobility.vault.models.subscribers import VaultStudy

TIMEOUT_S: Final = 3.0


def same_installation() -> Diagnoses:
    """Ask every worker; that none answers is a probe's business."""
    if not settings.HAS_VAULT:
        yield from _asked(staged="", keys=[])
        return
    keys = list(VaultStudy.objects.filter(closed_at=None).values_list("key_id", flat=True))
    try:
        with marked() as (folder, _):
            yield from _asked(staged=f"{folder}/{MARK}", keys=keys)
    except (OSError, StagingUnavailableError):  # found by its own check
        yield from _asked(staged="", keys=keys)


def _asked(*, staged: str, keys: list[str]) -> Diagnoses:
    before = time.time()
    inspect = app.control.inspect(timeout=TIMEOUT_S)
    try:
        answers = inspect._request("installation", staged=staged, keys=keys) or {}
    except (OperationalError, OSError) as failure:
        if not is_asleep():
            what = f"the workers could not be queried ({type(failure).__name__})"
            yield note("version_mixed", what, "see broker_unreachable, then run doctor again")
        return
    for name, answer in sorted(answers.items()):
        if "version" in answer:
            yield from _compared(name, answer, before=before, staged=staged)
        else:  # it does not know the question
            yield _mixed(name, "an earlier version")


def _compared(name: str, answer: dict[str, Any], *, before: float, staged: str) -> Diagnoses:
    ours = software()["version"]
    yield fine("version_mixed", name) if answer["version"] == ours else _mixed(name, answer["version"])
    yield compared(name, theirs=float(answer["time"]), before=before, after=time.time())
    if answer.get("keys_missing"):
        what = f"{answer['keys_missing']} keys of open studies are missing from the keystore of this worker"
        yield error("keys_not_shared", what, "mount the same keystore on every host", subject=name)
    if staged and answer.get("sees_staged") is False:
        what = "this worker does not see the staged files"
        todo = "set MOBILITY_STAGING_DIR to a folder that all hosts share, or use a bucket"
        yield error("storage_not_shared", what, todo, subject=name)
    elif staged:
        yield fine("storage_not_shared", name)


def _mixed(name: str, version: str) -> Diagnosis:
    what = f"this worker runs {version}, but this command runs {software()['version']}"
    return warning("version_mixed", what, "finish the upgrade: docs/upgrading.md", subject=name)

"""Files of exports: asked for by a page or a script, made by a worker, kept until the tally changes.

Each account has one at a time. One for which no one waits any more is given up: anyone who waits asks again
every few seconds.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone, translation

from reports.base.outages import AWAY
from reports.base.tasks import send_on_commit
from reports.estimates.fingerprints import fingerprint_of
from reports.estimates.queries import WindowError
from reports.exports.boards.selection import board_named
from reports.exports.errors import ExportError
from reports.exports.formats.choosing import BOARD
from reports.exports.models import ExportFile
from reports.exports.recipes import BUNDLE, Recipe, write
from reports.maps.actions import state_of_places
from reports.privacy.composition import composition_facts
from reports.studies.models import Study

ABANDONED: Final = timedelta(seconds=90)  # a page in a hidden tab asks once a minute
RESTING: Final = timedelta(seconds=10)  # so long without asking, a file gives way to another of its account
UNSENT: Final = timedelta(seconds=30)  # so long without a worker, its message may be lost, and is sent again
REMEMBERED: Final = timedelta(seconds=30)  # a failure is shown for this long, and not tried again
KEPT_PER_STUDY: Final = 20
_TOLD_S: Final = 1.0  # from one sign of life of a worker to the next
_State = ExportFile.State


class AbandonedError(Exception):
    """No one waits for the file now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A file that was asked for; `waits_for` is another one of the account, which is made first."""

    file: ExportFile | None
    waits_for: ExportFile | None = None


def ask_for_file(study: Study, recipe: Recipe, *, by: User) -> Asked:
    """Ask for a file, or say that someone still waits for it; who waits does so every few seconds.

    Kept files, and those in the making, are not made again. `content` of the file is not loaded.
    """
    language = translation.get_language() or ""
    key = _key(study, recipe, language=language)
    fingerprint = _fingerprint(study, recipe)
    if (row := _made_or_coming(key, fingerprint)) is not None:  # nearly always: it takes no lock
        return Asked(file=_touched(row))
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(
            pk=by.pk
        )  # else two requests of an account start two files
        if (row := _made_or_coming(key, fingerprint)) is not None:
            return Asked(file=_touched(row))
        if (other := _other_of(by, key=key)) is not None:
            return Asked(file=None, waits_for=other)
        values = {
            "study": study,
            "recipe": recipe.to_json() | {"language": language},
            "asked_by": by,
            "asked_at": timezone.now(),
            "fingerprint": fingerprint,
            "state": _State.WAITING,
            "stage": 0,
            "reason": "",
            "content": None,
        }
        row, _ = ExportFile.objects.update_or_create(key=key, defaults=values)
        _forget_oldest(study)
        _send(row)
    return Asked(file=row)


def make_file(pk: int, *, is_again: bool = False) -> None:
    """Make a file that was asked for; one that is done, gone, or at which another worker is, stays as it is.

    `is_again` says that this worker was making it when the database failed. After any other error the file
    is marked as failed, and the error is raised.
    """
    now = timezone.now()
    since = now if is_again else now - ExportFile.PATIENCE
    is_free = Q(state=_State.WAITING) | Q(state=_State.RUNNING, changed_at__lt=since)
    rows = ExportFile.objects.filter(pk=pk)
    if not rows.filter(is_free).update(state=_State.RUNNING, changed_at=now):
        return
    try:
        _make(rows.select_related("study").get())
    except (AbandonedError, ExportFile.DoesNotExist):
        rows.filter(state=_State.RUNNING, asked_at__lt=timezone.now() - ABANDONED).delete()
    except (ExportError, WindowError) as error:
        rows.update(state=_State.FAILED, reason=str(error), changed_at=timezone.now())
    except AWAY:
        raise
    except Exception:
        rows.update(state=_State.FAILED, changed_at=timezone.now())
        raise


def _make(row: ExportFile) -> None:
    values = dict(row.recipe)
    language = values.pop("language")
    recipe = Recipe.from_json(values)
    with translation.override(language):
        fingerprint = _fingerprint(row.study, recipe)  # of what is read from here on, or of what was before
        made = write(row.study, recipe, tick=_ticking(row.pk))
    row.set_content(made.content)
    ExportFile.objects.filter(pk=row.pk, state=_State.RUNNING).update(
        fingerprint=fingerprint,
        state=_State.DONE,
        stage=100,
        name=made.name,
        content_type=made.content_type,
        size=row.size,
        content=row.content,
        changed_at=timezone.now(),
    )


def _ticking(pk: int) -> Callable[[int], None]:
    """Give signs of life and progress of a file; raises AbandonedError when no one waits for it."""
    told_at = 0.0

    def tick(percent: int) -> None:
        nonlocal told_at
        if time.monotonic() - told_at < _TOLD_S:
            return
        now = timezone.now()
        waited_for = ExportFile.objects.filter(pk=pk, state=_State.RUNNING, asked_at__gte=now - ABANDONED)
        if not waited_for.update(stage=percent, changed_at=now):
            raise AbandonedError
        told_at = time.monotonic()

    return tick


def _made_or_coming(key: str, fingerprint: str) -> ExportFile | None:
    """Return the file unless it must be made: one in the making continues, a failure is shown for a while."""
    row = ExportFile.objects.defer("content").filter(key=key).first()
    if row is None or row.is_on_its_way:
        return row
    has_just_failed = row.state == _State.FAILED and row.changed_at >= timezone.now() - REMEMBERED
    is_known_to_fail = has_just_failed and row.fingerprint == fingerprint
    return row if is_known_to_fail or not row.is_to_be_computed(fingerprint) else None


def _touched(row: ExportFile) -> ExportFile:
    """Return the same row; its maker knows that someone waits."""
    now = timezone.now()
    if row.is_on_its_way and row.asked_at < now - RESTING / 3:
        ExportFile.objects.filter(pk=row.pk).update(asked_at=now)
    if row.state == _State.WAITING and row.changed_at < now - UNSENT:
        ExportFile.objects.filter(pk=row.pk, state=_State.WAITING).update(changed_at=now)
        _send(row)
    return row


def _other_of(account: User, *, key: str) -> ExportFile | None:
    """Return another file of an account in the making; one that is not requested now gives way.

    A file of a worker counts until that worker stops: it checks at each sign of life.
    """
    rows = ExportFile.objects.filter(asked_by=account, state__in=(_State.WAITING, _State.RUNNING))
    now = timezone.now()
    for other in rows.defer("content").exclude(key=key):
        is_asked_for = other.asked_at >= now - RESTING
        if other.is_on_its_way and (is_asked_for or other.state == _State.RUNNING):
            if not is_asked_for:
                rows.filter(pk=other.pk, asked_at=other.asked_at).update(asked_at=now - 2 * ABANDONED)
            return other
        other.delete()
    return None


def _forget_oldest(study: Study) -> None:
    """Keep the newest files of a study only; what is on its way stays."""
    ended = ExportFile.objects.filter(study=study, state__in=(_State.DONE, _State.FAILED))
    oldest = list(ended.order_by("-changed_at").values_list("pk", flat=True)[KEPT_PER_STUDY:])
    ExportFile.objects.filter(pk__in=oldest).delete()


def _send(row: ExportFile) -> None:
    """Request a worker; during an outage of the broker, waiting clients request again."""
    send_on_commit("reports.tasks.make_export", row.pk, robust=True)


def _key(study: Study, recipe: Recipe, *, language: str) -> str:
    parts = [study.pk, recipe.to_json(), language]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _fingerprint(study: Study, recipe: Recipe) -> str:
    study.refresh_from_db()
    more: list[object] = [state_of_places(study, recipe.window)] if recipe.is_of_places else []
    if recipe.scope == BOARD and (board := board_named(study, recipe.options)) is not None:
        more.append([board.name, board.tiles])
    if recipe.scope == BUNDLE:  # its statement changes with other studies of the population, too
        more.append(composition_facts(study, with_names=False))
    return fingerprint_of(study, *more)

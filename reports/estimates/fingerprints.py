"""Version of the inputs of reports: equal versions mean equal reports, which are made once."""

import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from django.db.models import Count, Max
from django.utils.safestring import mark_safe
from django.utils.translation import get_language

from reports.base.version import software
from reports.estimates.models import DayNote
from reports.studies.models import Study
from reports.studies.plan_models import Plan
from reports.studies.tally_models import Publication

MOST_KEPT: Final = 256  # parts of pages, in each process; a part has some tens of kilobytes when compressed


def state_of(studies: Sequence[Study]) -> list[object]:
    """Return versions of the inputs of reports of some studies: rows, plans, notes, and counted deltas."""
    pks = [study.pk for study in studies]
    return [
        [[str(getattr(study, field.attname)) for field in study._meta.concrete_fields] for study in studies],
        list(Plan.objects.filter(study__in=pks).order_by("pk").values_list("spec_hash", "voided_days")),
        list(DayNote.objects.filter(study__in=pks).order_by("pk").values_list("pk", "at")),
        # How many, and which is the newest: totals only ever change with a publication.
        list(
            Publication.objects.filter(study__in=pks)
            .values("study")
            .annotate(n=Count("pk"), newest=Max("pk"), at=Max("received_at"))
            .order_by("study")
            .values_list("study", "n", "newest", "at")
        ),
    ]


def fingerprint_of(study: Study, *more: object) -> str:
    """Return the SHA-256 of all inputs of a file of a study; `more` is added to study and software."""
    parts = [software(), state_of([study]), *more]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def kept(study: Study, *asked: object, make: Callable[[], str]) -> str:
    """Return what `make` returns, which this process makes once for each state of the study and language.

    Parameters
    ----------
    asked : the rest of what the text depends on; nothing of its reader
    make : reads everything itself: what was read before may be older than the state, and would be kept
    """
    slot = slot_of(fingerprint_of(study, get_language(), *asked))
    if not slot:
        slot.append(zlib.compress(make().encode(), level=1))
    return mark_safe(zlib.decompress(slot[0]).decode())  # noqa: S308 - written by our templates


@lru_cache(maxsize=MOST_KEPT)
def slot_of(_key: str) -> list[bytes]:
    """Return where a text is kept; the one that was asked for least recently is forgotten."""
    return []

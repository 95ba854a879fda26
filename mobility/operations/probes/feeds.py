"""Feeds that are late: files that should have come without a person, and did not.

Only where there is a vault. Expectation: once a source (a profile of a study) has brought a file by a
feed's token or through the watched folder, one for every later day of the study. Before the first file: where
a study has a valid token or its own folder is watched, one for every day. A day is late
MOBILITY_FEED_GRACE_H hours after its end. It is no longer expected when it is closed, or the study is. Files
that a person sent count, too.

A source is forgotten FORGOTTEN_AFTER its last file, if what brought it continues with other sources (this one
was tried out, or renamed) or is shut (the token has ended, the folder is gone). A token or folder that is
open and brings nothing at all is not forgotten.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from mobility.batches.quality.deliveries import calendar_of, closed_days
from mobility.operations.findings import Finding, Level, finding
from mobility.operations.probes.batches import end_of
from mobility.uploads.watched_folder import ACTOR
from mobility.vault.models.batch import BY_FEED, Batch
from mobility.vault.models.profiles import FeedToken
from mobility.vault.models.subscribers import VaultStudy

FORGOTTEN_AFTER: Final = timedelta(days=7)  # people have been reminded each day until then


@dataclass(frozen=True, slots=True, kw_only=True)
class LateDays:
    """Days that the feeds of a study owe: how many, and the first one."""

    study: int
    slug: str
    days: int
    first: date


def late() -> Iterator[Finding]:
    """Days that feeds owe, by study."""
    expected = _expected()
    found = list(_late(expected, VaultStudy.objects.filter(pk__in=expected)))
    for each in found:
        yield finding("feed_late", Level.WARNING, each.slug, days=each.days, day=each.first.isoformat())
    if not found:
        yield finding("feed_late", studies=len(expected))


def late_days(*, among: Iterable[str]) -> list[LateDays]:
    """Days that the feeds of some studies owe."""
    expected = _expected()
    return list(_late(expected, VaultStudy.objects.filter(pk__in=expected, slug__in=list(among))))


def _late(expected: Mapping[int, Set[str]], studies: QuerySet[VaultStudy]) -> Iterator[LateDays]:
    for study_id, slug in studies.order_by("slug").values_list("pk", "slug"):
        if missing := _missing(study_id, expected[study_id]):
            first = calendar_of(study_id).date_of(missing[0])
            yield LateDays(study=study_id, slug=slug, days=len(missing), first=first)


def _expected() -> dict[int, set[str]]:
    """Open studies with automatic uploads, and their sources that are expected to send more."""
    found: dict[int, set[str]] = defaultdict(set)
    ways, now = _open_ways(), timezone.now()
    for (study_id, way), brought in _brought().items():
        until = max(brought.values()) if (study_id, way) in ways else now
        for source, at in brought.items():
            if until - at <= FORGOTTEN_AFTER:
                found[study_id].add(source)
    for study_id, _ in ways:
        found.setdefault(study_id, set())
    return found


def _open_ways() -> set[tuple[int, str]]:
    """Open studies, each with a token or a folder by which files may come now."""
    tokens = FeedToken.objects.filter(revoked_at=None, expires_at__gt=timezone.now(), study__closed_at=None)
    ways = {(study_id, f"{BY_FEED}{name}") for study_id, name in tokens.values_list("study", "name")}
    if settings.MOBILITY_WATCH_DIR:
        folder = Path(settings.MOBILITY_WATCH_DIR)
        studies = VaultStudy.objects.filter(closed_at=None).values_list("pk", "slug")
        ways |= {(study_id, ACTOR) for study_id, slug in studies if (folder / slug).is_dir()}
    return ways


def _brought() -> dict[tuple[int, str], dict[str, datetime]]:
    """Return when each source last brought a file, by study and way."""
    unattended = Q(created_by=ACTOR) | Q(created_by__startswith=BY_FEED)
    files = Batch.objects.filter(
        unattended, kind=Batch.Kind.EXTRACT, state=Batch.State.DONE, validate_only=False,
        study__closed_at=None,
    )  # fmt: skip
    last: dict[tuple[int, str], dict[str, datetime]] = defaultdict(dict)
    rows = files.order_by().values_list("study", "created_by", "profile").annotate(at=Max("created_at"))
    for study_id, way, source, at in rows:
        last[study_id, way][source] = at
    return last


def _missing(study_id: int, sources: Set[str]) -> list[int]:
    """Days that are late, the first one first."""
    calendar = calendar_of(study_id)
    limit = timezone.now() - timedelta(hours=settings.MOBILITY_FEED_GRACE_H)
    over = [day for day in calendar.all_days if end_of(calendar, day) < limit]
    covered = _covered(study_id)
    missing: set[int] = set()
    for source in sources:
        had = covered.get(source, set())
        missing |= {day for day in over if day not in had and had and day > min(had)}
    if not sources:
        missing = set(over) - set().union(*covered.values())
    return sorted(missing - closed_days(study_id))


def _covered(study_id: int) -> dict[str, set[int]]:
    """Days of which each source has brought rows."""
    files = Batch.objects.filter(
        study=study_id, kind=Batch.Kind.EXTRACT, state=Batch.State.DONE, validate_only=False,
        duplicate_of__isnull=True,
    )  # fmt: skip
    covered: dict[str, set[int]] = defaultdict(set)
    for source, touched in files.order_by().values_list("profile", "days_touched"):
        covered[source].update(touched)
    return covered

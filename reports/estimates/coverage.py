"""State of each day of a study: visitors, or the kind of blank, and people's notes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from django.db.models import QuerySet

from ldp.estimation.noisy_estimators import NoisyTotal
from reports.base.status import Status
from reports.estimates.models import DayNote
from reports.estimates.noise import noisy_first_time, noisy_window
from reports.estimates.queries import Counts, study_summaries
from reports.estimates.small_cells import ShownVisitors
from reports.studies.models import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCoverage:
    """One day; `visitors` and `first_time` are None where they are unreliable, never zero for a blank.

    `first_time` : of the visitors, those who were not there on an earlier day of the study
    `noisy`, `noisy_first_time` : both with presence noise; they may be negative then, and pages show 0
    """

    day: int
    date: date
    status: Status
    visitors: int | None
    first_time: int | None
    notes: tuple[DayNote, ...]
    noisy: NoisyTotal | None = None
    noisy_first_time: NoisyTotal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """All days of a study, with how many of them have data."""

    days: tuple[DayCoverage, ...]

    @property
    def published(self) -> int:
        """Days with data, shown or suppressed; one that is marked as an outage does not count."""
        return sum(day.status in (Status.OK, Status.SUPPRESSED) for day in self.days)

    @property
    def counts(self) -> list[tuple[Status, int]]:
        """Days by status, those that occur, in the order of Status."""
        found = Counter(day.status for day in self.days)
        return [(status, found[status]) for status in Status if found[status]]

    @property
    def next_missing(self) -> DayCoverage | None:
        """The first day without data that no one has explained."""
        return next((day for day in self.days if day.status == Status.NOT_COLLECTED), None)

    @property
    def weeks(self) -> list[list[DayCoverage | None]]:
        """Rows from Monday to Sunday; None for days outside the study."""
        start = self.days[0].date - timedelta(days=self.days[0].date.weekday())
        n_weeks = ((self.days[-1].date - start).days // 7) + 1
        by_date = {day.date: day for day in self.days}
        return [
            [by_date.get(start + timedelta(days=7 * week + weekday)) for weekday in range(7)]
            for week in range(n_weeks)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOverview:
    """A study with the state of its days; `n_visitors` is None where the small-cell rule hides it."""

    study: Study
    n_visitors: int | None
    coverage: Coverage
    noisy_visitors: NoisyTotal | None = None

    @property
    def has_data(self) -> bool:
        if self.study.presence is not None:
            return self.study.noisy_through > 0
        return self.n_visitors is None or self.n_visitors > 0


def study_overviews(studies: QuerySet[Study]) -> list[StudyOverview]:
    """Some studies with their indicators, newest first; three queries."""
    return [
        StudyOverview(
            study=each.study,
            n_visitors=each.n_visitors,
            coverage=coverage_of(each.study, visitors=each.visitors, notes=each.study.day_notes.all()),
            noisy_visitors=noisy_window(each.study, each.visitors, first_day=1, last_day=each.study.days),
        )
        for each in study_summaries(studies.prefetch_related("indicators"))
    ]


def coverage_of(study: Study, *, visitors: Counts, notes: Iterable[DayNote]) -> Coverage:
    """Return the state of each day, from `visitor_unions` and all notes of the study."""
    found, shown = tuple(notes), ShownVisitors(study, visitors)
    return Coverage(days=tuple(_day(shown, day, notes=found) for day in range(1, study.days + 1)))


def _day(shown: ShownVisitors, day: int, *, notes: tuple[DayNote, ...]) -> DayCoverage:
    study = shown.study
    of_day = tuple(note for note in notes if note.day == day)
    is_outage = any(note.kind == DayNote.Kind.OUTAGE for note in of_day)
    status = shown.status(day, day, is_outage=is_outage)
    is_shown = status == Status.OK
    return DayCoverage(
        day=day,
        date=study.date_of(day),
        status=status,
        visitors=shown.of(day, day) if is_shown else None,
        first_time=shown.first_time(day) if is_shown else None,
        notes=of_day,
        noisy=noisy_window(study, shown.unions, first_day=day, last_day=day) if is_shown else None,
        noisy_first_time=noisy_first_time(study, shown.unions, day=day) if is_shown else None,
    )

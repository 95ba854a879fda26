"""Answers to scenarios: least, most and likely people, by category and by pattern, from published tallies.

No answer is asked for again, so nothing here costs epsilon. Windows that the small-cell rule hides are known
to the library only as "1 to small_cell - 1" people. Visitors of a category are scaled by the market share,
totals are not, as in every report.
"""

from dataclasses import asdict, dataclass
from math import isnan
from typing import Any, Final, Self

import numpy as np
from django.utils.translation import gettext

from ldp import CellNoise, NoReportsError, all_unions, category_people, likely_patterns, scenario_people
from ldp import noisy_people as people_of_noisy
from ldp.errors import FewVisitorsError
from ldp.estimation.scenario.bounds import ScenarioPeople
from ldp.estimation.scenario.flows import hidden_windows
from ldp.estimation.scenario.stays import PresenceTallies
from ldp.estimation.windows import IndicatorTallies
from reports.base.status import Status
from reports.estimates.loading import Loaded, load, tallies_of
from reports.estimates.noise import VisitorNoise, has_totals, visitor_noise
from reports.estimates.queries import LEVEL, Counts, WindowError
from reports.scenario.query import LEAST_DAYS, Kind, Question, counted_days, program_seconds
from reports.studies.models import Indicator, Study
from reports.studies.names import category_name
from reports.studies.queries import (
    current_plan,
    has_lasting_reports,
    has_unions,
    scale_of,
    stays_of,
    visitors_of,
)
from reports.studies.tally_models import VisitorTally

N_PATTERNS: Final = 20
AT_ONCE_S: Final = 0.3  # a page waits so long; what takes more is computed by a worker
_PER_STEP_S: Final = 1.2e-4  # of a linear program, for each pair of edge and state
_OF_CATEGORY: Final = 5  # times as long: its windows have limits, too, and its flows are projected
_OF_NOISE: Final = 3


class NoScenarioError(WindowError):
    """A study or an indicator without scenarios; the text says what works instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """People from the least to the most; `estimate` is None where it is not shown.

    Parameters
    ----------
    name, name_fr : of a category; "" of all people and of patterns
    days : of a pattern
    """

    least: float
    most: float
    estimate: float | None
    name: str = ""
    days: tuple[int, ...] = ()
    name_fr: str | None = None

    @property
    def shown_name(self) -> str:
        """Name of the category in the active language."""
        return category_name(self.name, self.name_fr)

    @property
    def is_determined(self) -> bool:
        """Return whether the number is known."""
        return self.least == self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer to a question.

    Parameters
    ----------
    status : OK, or why there are no numbers
    total : people of the study, exact, or None
    is_noisy : with presence noise, bounds hold with probability LEVEL
    people : None without numbers
    stays : of exactly the days in a row that are asked for, by all people; None where it is not known
    categories : of an indicator; in plan order, scaled; each bar holds the truth with probability LEVEL
    patterns : the likeliest ones
    """

    status: Status
    total: int | None
    is_noisy: bool
    people: Bar | None = None
    stays: int | None = None
    categories: tuple[Bar, ...] = ()
    patterns: tuple[Bar, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Build what `to_json` returned."""
        bars = {name: tuple(map(_bar_of_json, value[name])) for name in ("categories", "patterns")}
        people = None if value["people"] is None else _bar_of_json(value["people"])
        return cls(**(value | bars | {"people": people, "status": Status(value["status"])}))


def refusal(study: Study, indicator: Indicator | None = None) -> str:
    """Return why there are no scenarios, and what works instead; empty where there are."""
    days, noise = counted_days(study), visitor_noise(study)
    if study.days < LEAST_DAYS:
        return gettext(
            "The study covers only one day, so everyone was present on the same day. See the report for "
            "that day instead."
        )
    if days < LEAST_DAYS:
        return gettext(
            "Scenarios need at least two published days. Until then, read the report for the first day."
        )
    if noise is not None and noise.max_days < days:
        return gettext(
            "This page needs to know on which days each person was present, but the plan counts a person "
            "on at most %(most)d of them. Use the reports of single days instead."
        ) % {"most": noise.max_days}
    if indicator is not None and indicator.kind == Indicator.Kind.DAILY:
        return gettext(
            "A person's value for “%(name)s” can differ from day to day, so there is no single value to "
            "use in a scenario. You can run a scenario either for all people combined or for an "
            "indicator with categories. For such an indicator, each person's category must stay the same "
            "from day to day."
        ) % {"name": indicator.shown_name}
    if (
        indicator is not None
        and indicator.kind == Indicator.Kind.STATIC
        and not has_lasting_reports(indicator)
    ):
        return gettext(
            "A person's value for “%(name)s” is reported again on each day, with new noise. Reports "
            "from different days cannot be combined in a scenario. Scenarios are available "
            "for all people combined."
        ) % {"name": indicator.shown_name}
    if indicator is not None and not has_unions(indicator):
        return gettext(
            "For “%(name)s”, each person gives an answer on at most %(most)d of %(days)d days, so answers "
            "from different days cannot be combined in a scenario. Scenarios are therefore available "
            "only for all people combined."
        ) % {"name": indicator.shown_name, "most": indicator.max_values, "days": study.days}
    if indicator is not None and scale_of(indicator) is not None:
        return gettext(
            "The value of “%(name)s” is a number, but scenarios count people by category. Scenarios are "
            "available for all people combined and for indicators with categories."
        ) % {"name": indicator.shown_name}
    if indicator is not None and study.small_category:
        return gettext(
            "This study hides small categories, so scenarios are available only for all people combined."
        )
    if indicator is not None and study.classes:
        return gettext(
            "Scenarios by category are not available for this study yet, because its classes answer with "
            "different epsilons. Scenarios are available only for all people combined."
        )
    if indicator is not None and indicator.protect:
        return gettext(
            "Scenarios by category are not available for this indicator yet, because its answers disclose "
            "groups or categories. Scenarios are available only for all people combined."
        )
    return ""


def answer(question: Question, indicator: Indicator | None = None) -> Answer:
    """Answer a question, about all people or by the categories of an indicator.

    Raises
    ------
    NoScenarioError : the study or the indicator has none
    """
    return Prepared.of(question, indicator).answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Tallies of one publication, with what every number needs: read once, so an answer needs no database."""

    question: Question
    visitors: Counts
    more: PresenceTallies | None
    noise: VisitorNoise | None
    loaded: Loaded | None

    @classmethod
    def of(cls, question: Question, indicator: Indicator | None) -> Self:
        """Read the tallies of a question; NoScenarioError if the study or the indicator has no scenarios."""
        study, days = question.study, question.days
        if text := refusal(study, indicator):
            raise NoScenarioError(text)
        loaded = load([indicator])[0] if indicator else None
        plan = loaded.plan if loaded else current_plan(study)
        row = plan.study.visitor_tally if loaded else VisitorTally.objects.get(study=study)
        visitors = visitors_of(row)[: days + 1, : days + 1]
        return cls(
            question=question,
            visitors=visitors,
            more=_further(visitors, stays_of(row, plan), small_cell=study.small_cell),
            noise=visitor_noise(study),
            loaded=loaded,
        )

    @property
    def small_cell(self) -> int:
        return self.question.study.small_cell

    @property
    def has_hidden(self) -> bool:
        return bool(hidden_windows(self.visitors, small_cell=self.small_cell).any())

    @property
    def is_quick(self) -> bool:
        """Return whether a page waits for the answer; else a worker computes it."""
        return self.seconds <= AT_ONCE_S

    @property
    def known(self) -> tuple[int, int] | None:
        """Return least and most people as the further tallies of presence count them."""
        question, more = self.question, self.more
        if more is None:
            return None
        if question.in_a_row:
            return more.people_in_a_row(question.in_a_row)
        if question.kind == Kind.EXACTLY:
            people = more.people_by_days.exactly(question.k) if more.people_by_days else None
        else:
            people = more.people_on(present=question.present, absent=question.absent)
        return None if people is None else (people, people)

    @property
    def seconds(self) -> float:
        """Estimate how long the answer takes, in seconds on one core."""
        scenario = self.question.scenario
        program = program_seconds(scenario, per_step_s=_PER_STEP_S)
        least, most = self.known or (0, 1)
        is_closed = scenario.pattern is not None and not self.has_hidden and self.noise is None
        is_closed = is_closed or least == most
        n_categories = len(self.loaded.indicator.categories) if self.loaded else 0
        of_all = 0 if is_closed else 1 if self.noise is None else _OF_NOISE
        return program * (of_all + _OF_CATEGORY * n_categories)

    def answer(self) -> Answer:
        """Compute the answer."""
        study = self.question.study
        total = int(all_unions(self.visitors)[1, -1])
        is_noisy = self.noise is not None
        if not has_totals(study, all_unions(self.visitors)):
            return Answer(status=Status.NOT_COLLECTED, total=None, is_noisy=is_noisy)
        try:
            people = self._people()
            patterns = likely_patterns(
                self.visitors, n=N_PATTERNS, small_cell=self.small_cell, noise=self._channel, level=LEVEL
            )
        except FewVisitorsError:
            return Answer(status=Status.SUPPRESSED, total=None, is_noisy=is_noisy)
        return Answer(
            status=Status.OK,
            total=None if is_noisy else total,
            is_noisy=is_noisy,
            people=people,
            stays=self._stays(),
            categories=self._categories(people),
            patterns=tuple(_bar(each.people, days=each.pattern) for each in patterns),
        )

    @property
    def _channel(self) -> Any:
        return self.noise.channel if self.noise else None

    def _people(self) -> Bar:
        scenario = self.question.scenario
        if self.noise is not None:
            found = people_of_noisy(self.visitors, scenario, noise=self.noise.channel, level=LEVEL)
            return _bar(found)
        found = scenario_people(self.visitors, scenario, small_cell=self.small_cell, known=self.known)
        return _bar(found)

    def _stays(self) -> int | None:
        stays = self.more.stays_by_length if self.more else None
        return stays.exactly(self.question.in_a_row) if stays and self.question.in_a_row else None

    def _categories(self, people: Bar) -> tuple[Bar, ...]:
        """Bars by category; none for so few people that they are hidden, or without answers."""
        if self.loaded is None or 0 < people.most < self.small_cell:
            return ()
        noise = None
        if self.noise is not None and self.loaded.noise is not None:
            noise = CellNoise(visitors=self.noise.channel, answers=self.loaded.noise.channel)
        try:
            found = category_people(
                _cut(tallies_of(self.loaded), days=self.question.days),
                self.question.scenario,
                noise=noise,
                level=LEVEL,
            )
        except NoReportsError:
            return ()
        scale = 1 / float(self.question.study.market_share)
        names = self.loaded.indicator.categories
        most = people.most if self.noise is None else np.inf
        columns = (found.ci_low, found.ci_high, found.estimate)
        scaled = ((np.minimum(column, most) * scale).tolist() for column in columns)
        rows = zip(names, self.loaded.indicator.categories_fr or [None] * len(names), *scaled, strict=True)
        return tuple(
            Bar(name=name, name_fr=name_fr, least=least, most=most, estimate=estimate)
            for name, name_fr, least, most, estimate in rows
        )


def _further(visitors: Counts, stays: dict[str, Counts], *, small_cell: int) -> PresenceTallies | None:
    """Further tallies of presence; None without any, or where a window is hidden."""
    if not stays or hidden_windows(visitors, small_cell=small_cell).any():
        return None
    return PresenceTallies(
        visits=stays.get("visits"),
        runs=stays.get("runs"),
        people=int(visitors[0].sum()),
        small_cell=small_cell,
    )


def _cut(tallies: IndicatorTallies, *, days: int) -> IndicatorTallies:
    """The first days of some tallies."""
    return IndicatorTallies(
        counts=tallies.counts[:, : days + 1, : days + 1],
        n_reports=tallies.n_reports[: days + 1, : days + 1],
        visitors=tallies.visitors[: days + 1, : days + 1],
        kind=tallies.kind,
        channel=tallies.channel,
        small_cell=tallies.small_cell,
    )


def _bar(found: ScenarioPeople, *, days: tuple[int, ...] = ()) -> Bar:
    estimate = None if isnan(found.estimate) else found.estimate
    return Bar(least=found.least, most=found.most, estimate=estimate, days=days)


def _bar_of_json(value: dict[str, Any]) -> Bar:
    return Bar(**(value | {"days": tuple(value["days"])}))

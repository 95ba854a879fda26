"""Prediction of a plan's results and risks for an expected crowd: for the simulator and for drafts.

Nothing here looks at data. The figures are in `ldp.estimation.simulation` and `ldp.privacy.attacker`; here
it is put together for the questions of a study, and judged by the limits that pages of reports go by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final, get_args

from ldp import (
    Certificate,
    FakeDataChannel,
    IndicatorCertificate,
    IndicatorRequest,
    PlanSpec,
    build_plan,
    certify,
)
from ldp.errors import LdpError
from ldp.estimation.error_curves import ErrorCurve
from ldp.estimation.simulation import (
    Candidate,
    Crowd,
    Forecast,
    epsilon_for_plan,
    forecast,
    has_union,
    most_categories,
    promise,
    rank_plans,
    visitors_error,
)
from ldp.privacy.attacker import (
    answer_success,
    answered_success,
    guess_success,
    known_day_success,
    largest_success,
    promised_ratio,
)
from ldp.privacy.classes import OF_CLASSES
from ldp.privacy.first_reports import HashCells
from ldp.privacy.joint import SIDES, joint_size
from ldp.privacy.plan_requests import suited
from ldp.privacy.plans import OF_FIRST, STREAM, Mechanism, ReportChannel
from ldp.protocols.channels import Unit
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel
from reports.base.status import WIDE_INTERVAL, WIDEST_INTERVAL
from reports.estimates.queries import visitor_unions
from reports.privacy.days_texts import repeated
from reports.simulator.classes import ClassShare
from reports.simulator.example import example_shares
from reports.studies.models import Study
from reports.studies.queries import current_plan
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.hours import OF_HOURS


class Reading(StrEnum):
    """Readability of the bars of an indicator.

    clear : each of them
    large_only : a category of average size cannot be distinguished from an empty one
    imprecise : pages say that the report is imprecise
    noise : pages show intervals only
    """

    CLEAR = "clear"
    LARGE_ONLY = "large_only"
    IMPRECISE = "imprecise"
    NOISE = "noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(IndicatorRequest):
    """One indicator, as a study file has it."""

    name: str

    @property
    def part_size(self) -> int:
        """Number of values as a part of a combination."""
        return self.domain_size if self.scale is None else SIDES

    @property
    def has_size(self) -> bool:
        """Return whether its number of categories is its own: parts, cuts, zones or groups set it."""
        is_plain = not self.parts and self.scale is None and self.moves is None
        return is_plain and not (self.by_code or self.regions or self.sensitive)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Setting of a simulation; valid only if `plan` can be made.

    small_cell : least visitors of a window that is shown; 0 = no such rule
    presence_epsilon, presence_days : of the noise that hides who was there; None = totals are exact
    epsilon_first, hash_cells : of smp-loloha and smp-allomfree, which others leave out; None = half of
        epsilon, and two
    window_days : of smp-stream, which others leave out; None = seven, or all days of a shorter study
    classes : of subscribers; epsilon is then the largest of theirs, and all figures but those of
        `reports.simulator.classes` are as if everyone were in a class with it
    """

    mechanism: Mechanism
    unit: Unit
    epsilon: Decimal
    days: int
    crowd: Crowd
    questions: tuple[Question, ...]
    small_cell: int = 0
    presence_epsilon: Decimal | None = None
    presence_days: int | None = None
    epsilon_first: Decimal | None = None
    hash_cells: HashCells | None = None
    window_days: int | None = None
    classes: tuple[ClassShare, ...] = ()

    @property
    def has_own(self) -> bool:
        """Return whether a question has its own epsilon or weight, which only some mechanisms know."""
        return any(each.epsilon is not None or each.weight is not None for each in self.questions)

    @property
    def requests(self) -> tuple[IndicatorRequest, ...]:
        """Return the requests of the library, with settings that only some mechanisms know."""
        return tuple(
            replace(
                each,
                max_values=None if each.kind == "static" else each.max_values,
                by_code=each.by_code and self.presence_epsilon is None,
            )
            for each in self.questions
        )

    def plan_at(self, epsilon: Decimal) -> PlanSpec:
        """The plan with another epsilon; LdpError if the mechanism cannot do it."""
        return build_plan(
            mechanism=self.mechanism,
            unit=self.unit,
            version=1,
            days=self.days,
            epsilon=epsilon,
            indicators=suited(self.requests, mechanism=self.mechanism),
            presence_epsilon=self.presence_epsilon,
            presence_days=None if self.presence_epsilon is None else self.presence_days,
            epsilon_first=self.epsilon_first if self.mechanism in OF_FIRST else None,
            hash_cells=self.hash_cells if self.mechanism in OF_FIRST else None,
            window_days=self.window_days if self.mechanism == STREAM else None,
            classes={each.slug: each.epsilon for each in self.classes},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """Success of guesses of a person's value: before and after her report is seen."""

    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """Success of the best guess among all reports of a person, most of them made up.

    answered : which report is the answer
    with_value : that, and its true value
    """

    answered: Guess
    with_value: Guess


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question with all that is foretold of it.

    certified : what its answers reveal at most
    knowing_nothing : of an attacker to whom all categories are alike
    knowing_shares : of one who knows the shares of the example
    at_most : success of any guess after this report, for any other knowledge except other reports of
        the same person, if all categories are alike before
    knowing_a_day : of one who knows another day's value and sees both reports; None if no one sends two
    """

    question: Question
    forecast: Forecast
    channel: ReportChannel
    certified: IndicatorCertificate
    knowing_nothing: Guess
    knowing_shares: Guess
    at_most: float
    knowing_a_day: float | None

    @property
    def day_half_width(self) -> float:
        """Half of the 95% interval of a category of average size, on one day."""
        return self.forecast.day.half_width(self.forecast.even)

    @property
    def union_half_width(self) -> float | None:
        """Return the same of all days together; None where there is no union."""
        union = self.forecast.union
        return None if union is None else union.half_width(self.forecast.even)

    @property
    def day_reading(self) -> Reading:
        """Return the readability of bars of one day."""
        return reading(self.forecast.day, even=self.forecast.even)

    @property
    def union_reading(self) -> Reading | None:
        """Return the readability of bars of all days together."""
        union = self.forecast.union
        return None if union is None else reading(union, even=self.forecast.even)


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """A setting, its plan, and what follows."""

    setting: Setting
    plan: PlanSpec
    certificate: Certificate
    rows: tuple[Row, ...]

    @cached_property
    def widest(self) -> Row:
        """The question with the widest interval of a day, in proportion to its average category."""
        return max(self.rows, key=lambda row: row.day_half_width / row.forecast.even)

    @cached_property
    def ranking(self) -> tuple[Candidate, ...]:
        """Mechanisms that promise as much for the unit, the best first."""
        return rank_plans(
            self.setting.requests,
            unit=self.setting.unit,
            days=self.setting.days,
            promised=promise(self.certificate, unit=self.setting.unit),
            crowd=self.setting.crowd,
            among=OF_CLASSES if self.setting.classes else get_args(Mechanism),
        )

    @cached_property
    def recognition(self) -> tuple[Recognition, Recognition] | None:
        """Success without knowledge, and with the example's shares; None without made-up reports."""
        if not self.plan.has_fakes or self.plan.d == 1:
            return None
        sizes = [each.domain_size for each in self.plan.indicators]
        return (
            _recognition(self.plan.fake_data, tuple((1 / k,) * k for k in sizes)),
            _recognition(self.plan.fake_data, tuple(map(example_shares, sizes))),
        )

    @cached_property
    def visitors_error(self) -> int:
        """Half of the 95% interval of the visitors of a day; 0 if totals are exact."""
        return visitors_error(self.plan)

    def row(self, slug: str) -> Row:
        """Return the row of a question; without one, that with the widest interval."""
        return next((row for row in self.rows if row.question.slug == slug), self.widest)


def reading(curve: ErrorCurve, *, even: float) -> Reading:
    """Return the readability of bars whose categories have a share of `even` in the mean."""
    half_width = curve.half_width(even)
    if 2 * half_width > WIDEST_INTERVAL:
        return Reading.NOISE
    if half_width > WIDE_INTERVAL:
        return Reading.IMPRECISE
    return Reading.LARGE_ONLY if half_width > even else Reading.CLEAR


def simulate(setting: Setting) -> Simulation:
    """All that is foretold of a setting; LdpError if the mechanism cannot do it."""
    plan = setting.plan_at(setting.epsilon)
    if setting.classes:  # all but the errors of classes is of the largest
        plan = plan.of_class([each.epsilon for each in setting.classes].index(setting.epsilon))
    certificate = certify(plan)
    rows = [
        _row(plan, question, foretold, certified)
        for question, foretold, certified in zip(
            setting.questions, forecast(plan, crowd=setting.crowd), certificate.indicators, strict=True
        )
    ]
    return Simulation(setting=setting, plan=plan, certificate=certificate, rows=tuple(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The mechanism that pages propose for a study.

    other, gain : what it was compared with, and by which share its intervals are narrower; None and 0 where
        nothing had to be compared
    """

    mechanism: Mechanism = "smp-adp"
    other: Mechanism | None = None
    gain: float = 0


# All that ask one indicator per person; smp-adp takes the better one of GRR and OUE.
RIVALS: Final[tuple[Mechanism, ...]] = ("smp-adp", "smp-question", "smp-loloha", "smp-stream")


def recommended(setting: Setting) -> Recommendation:
    """Mechanism for a study by the formulas: for daily indicators the most exact one.

    All that ask one indicator per person are compared, under one epsilon for all of a person's values. One
    without date ranges is left out where another one has them.
    """
    if setting.presence_epsilon is not None:
        return Recommendation(mechanism="smp-grr")
    if setting.classes or all(each.kind == "static" for each in setting.questions):
        return Recommendation()
    try:
        plan = replace(setting, mechanism="smp-question").plan_at(setting.epsilon)
        ranked = rank_plans(
            setting.requests,
            unit="profile",
            days=setting.days,
            promised=certify(plan).nominal_profile,
            crowd=setting.crowd,
            among=RIVALS,
        )
    except LdpError:  # too many categories to tally
        return Recommendation()
    unions = [n_unions(each.plan) for each in ranked]
    first, *others = (each for each, n in zip(ranked, unions, strict=True) if n == max(unions))
    if not others:
        return Recommendation(mechanism=first.mechanism)
    gain = 1 - first.mean_half_width / others[0].mean_half_width
    return Recommendation(mechanism=first.mechanism, other=others[0].mechanism, gain=gain)


def n_unions(plan: PlanSpec) -> int:
    """Return the number of indicators with figures for date ranges of several days."""
    return sum(has_union(plan, index) for index in range(plan.d))


def epsilon_wanted(setting: Setting, *, half_width: float, slugs: Sequence[str], of_union: bool) -> Decimal:
    """Epsilon of the plan with which all of some questions are as exact as wanted on one day, or in all.

    With half of it for one report with separate noise, since errors follow from that alone.
    LdpError if no epsilon will do; its message names what can be reached.
    """
    indexes = [index for index, each in enumerate(setting.questions) if each.slug in slugs]
    plan_at = replace(setting, epsilon_first=None).plan_at
    return epsilon_for_plan(
        plan_at, half_width=half_width, crowd=setting.crowd, indexes=indexes, of_union=of_union
    )


def follows_plan(setting: Setting, question: Question) -> bool:
    """Return whether the epsilon of the plan is that of a question, because it has no individual one."""
    return question.epsilon is None or not setting.mechanism.startswith("smp-")


def visitors_needed(row: Row, *, half_width: float) -> float:
    """Visitors of a day with whom a day is so exact: errors fall at least with the root of their number."""
    return row.forecast.day.n_visitors * (row.day_half_width / half_width) ** 2


def with_sizes(questions: Sequence[Question], sizes: Mapping[str, int]) -> tuple[Question, ...]:
    """Questions with other numbers of categories, by slug; those of joint ones follow from their parts."""
    resized = [replace(each, domain_size=sizes.get(each.slug, each.domain_size)) for each in questions]
    of_part = {each.slug: each.part_size for each in resized}
    return tuple(
        replace(each, domain_size=joint_size([of_part[part] for part in each.parts])) if each.parts else each
        for each in resized
    )


def categories_possible(setting: Setting, index: int, *, half_width: float) -> int | None:
    """Most categories, fewer than there are, with which a day is so exact; None if not even two are.

    None, too, where its number of categories is not its own.
    """
    question = setting.questions[index]
    if not question.has_size:
        return None

    def plan_of(n_categories: int) -> PlanSpec:
        questions = with_sizes(setting.questions, {question.slug: n_categories})
        return replace(setting, questions=questions).plan_at(setting.epsilon)

    return most_categories(
        plan_of,
        index=index,
        fewer_than=question.domain_size,
        half_width=half_width,
        crowd=setting.crowd,
    )


# --- where settings come from ---------------------------------------------------------------


def questions_of_study(study: Study) -> tuple[Question, ...]:
    """Indicators of a study, as its plan in force asks them."""
    plan = current_plan(study)
    spec = plan.parsed
    typed = {each.indicator_id: each.epsilon for each in plan.indicators.all()}
    return tuple(
        Question(
            slug=each.slug,
            name=each.shown_name,
            kind=spec.indicators[index].kind,
            domain_size=len(each.categories),
            epsilon=typed.get(each.pk),
            weight=None if spec.shares is None else Decimal(spec.shares[index]),
            max_values=None if spec.is_stream(index) else spec.indicators[index].max_values,
            parts=spec.indicators[index].parts,
            scale=spec.indicators[index].scale,
            moves=spec.indicators[index].moves,
            by_code=spec.indicators[index].by_code,
            regions=spec.indicators[index].regions,
            sensitive=spec.indicators[index].sensitive,
        )
        for index, each in enumerate(study.indicators.all())
    )


def questions_of_definition(definition: StudyDefinition) -> tuple[Question, ...]:
    """Indicators of a study that is only planned."""
    return tuple(
        Question(
            slug=each.slug,
            name=each.shown_name,
            kind=each.kind,
            domain_size=len(each.categories),
            epsilon=each.epsilon,
            weight=each.weight,
            max_values=None if definition.plan.mechanism == STREAM else each.max_values,
            parts=each.parts,
            scale=each.scale,
            moves=each.moves,
            by_code=each.derive in OF_HOURS,
            regions=each.regions,
            sensitive=each.hidden,
        )
        for each in definition.indicators
    )


def crowd_so_far(study: Study) -> Crowd | None:
    """Mean visitors of the days with data, and the days on which one is present; None without enough of them.

    Days on which pages hide the number are left out.
    """
    unions = visitor_unions(study)
    days = range(1, study.days + 1)
    of_days = [int(unions[day, day]) for day in days if unions[day, day] >= max(study.small_cell, 1)]
    if not of_days or unions[1, study.days] < 1:
        return None
    present = sum(of_days) / int(unions[1, study.days]) * study.days / len(of_days)
    return Crowd(visitors=sum(of_days) / len(of_days), days_present=min(max(present, 1.0), study.days))


def _row(plan: PlanSpec, question: Question, foretold: Forecast, certified: IndicatorCertificate) -> Row:
    channel = plan.channel(foretold.index)
    known, at_most = _guesses(channel, float(min(certified.epsilon, certified.epsilon_attribute).exp()))
    return Row(
        question=question,
        forecast=foretold,
        channel=channel,
        certified=certified,
        knowing_nothing=known[0],
        knowing_shares=known[1],
        at_most=at_most,
        knowing_a_day=known_day_success(channel) if foretold.index in repeated(plan) else None,
    )


@lru_cache(maxsize=64)
def _recognition(channel: FakeDataChannel, known: tuple[tuple[float, ...], ...]) -> Recognition:
    shares = [float(report.share) for report in channel.reports]
    likeliest = max(share * max(prior) for share, prior in zip(shares, known, strict=True))
    return Recognition(
        answered=Guess(before=max(shares), after=answered_success(channel, priors=known)),
        with_value=Guess(before=likeliest, after=answer_success(channel, priors=known)),
    )


@lru_cache(maxsize=1024)
def _guesses(channel: ReportChannel, ratio: float) -> tuple[tuple[Guess, Guess], float]:
    k = channel.domain_size + isinstance(channel, ThresholdChannel | WaveChannel)  # levels of a number
    even, example = [1 / k] * k, example_shares(k)
    return (
        (
            Guess(before=1 / k, after=guess_success(channel, prior=even)),
            Guess(before=max(example), after=guess_success(channel, prior=example)),
        ),
        largest_success(promised_ratio(channel, ratio), prior=1 / k),
    )

"""Promise of a plan, computed from the integer thresholds it uses, never from the epsilon typed."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from ldp.errors import LdpError, PlanError
from ldp.privacy.certificates import worst_ratio
from ldp.privacy.plans import PlanSpec
from ldp.privacy.presence import CountNoise, replaced_cells
from ldp.privacy.streams import most_answers
from ldp.protocols.channels import epsilon_of
from ldp.protocols.repeated.renewed import rounds_of
from ldp.protocols.two_round import TwoRoundGrr
from ldp.protocols.two_round_unary import TwoRoundUnary

_UP = Context(prec=30, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorCertificate:
    """Maximum loss of the answers to one indicator.

    Parameters
    ----------
    slug : str
    n_values : int; most answers of one person; on a number or a permanent question, most different ones; of
        hashed values, and of values reported again each day, most kept ones
    ratio : Fraction; exact probability ratio of one answer, known to be no fake
    epsilon : Decimal; logarithm of `ratio`, rounded up
    epsilon_attribute : Decimal; what one value loses, rounded up; smaller than `epsilon` if fakes hide it; of
        hashed values, and of values reported again each day, in the reports of all days
    epsilon_profile : Decimal; what all answers lose, known to be no fakes, rounded up
    nominal : Fraction; epsilon of one answer in the plan, never below `epsilon`
    """

    slug: str
    n_values: int
    ratio: Fraction
    epsilon: Decimal
    epsilon_attribute: Decimal
    epsilon_profile: Decimal
    nominal: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Realised loss of a plan in both units, rounded up, and the nominal values.

    Parameters
    ----------
    indicators : tuple of IndicatorCertificate, in plan order
    epsilon_attribute : Decimal; one value of a person (of a daily indicator: that of one day; of a static
        part of a daily joint indicator: in the answers of all days)
    epsilon_profile : Decimal; all values of a person in the study
    nominal_attribute, nominal_profile : Fraction; the same from the plan's epsilons, never below: with fake
        data the epsilon that the plan promises for the unit attribute, and that of the answers for a profile
    epsilon_window : Decimal or None; of a plan with streams: all values on any `window_days` consecutive days
    nominal_window : Fraction or None; the same from the plan's epsilons, never below
    epsilon_person : Decimal or None; of a plan of events that limits those of a person: all values of all her
        events, where only `max_events` of them are answered
    nominal_person : Fraction or None; the same from the plan's epsilons, never below
    """

    indicators: tuple[IndicatorCertificate, ...]
    epsilon_attribute: Decimal
    epsilon_profile: Decimal
    nominal_attribute: Fraction
    nominal_profile: Fraction
    epsilon_window: Decimal | None = None
    nominal_window: Fraction | None = None
    epsilon_person: Decimal | None = None
    nominal_person: Fraction | None = None


def certify(plan: PlanSpec, *, extra_daily_values: int = 0) -> Certificate:
    """Realised loss of a plan; LdpError if extra_daily_values < 0.

    Values are protected; *whether* a daily value changed is not, since an unchanged value keeps its answer.
    Of a number, so does one on the same side of the cut: it has two answers, on any number of days. So does a
    value on the same side of a permanent question. A hashed value is protected as its cell: for sequences of
    cells that change on the same days, a profile loses what the worst days of each cell do. Of a stream the
    loss is against all other values on any days, changes too: there is one answer in a window of days. One
    change is not protected: that between two versions of a day that is processed again. Bits belong to a
    value and a day, so an equal value repeats its answer for certain.
    Where a person answers one indicator, a profile loses at most the largest of the indicators' losses;
    otherwise the losses add up. Fake reports are added to an answer without knowing the value, so they never
    add to a loss. If all indicators are static, what they hide is certified exactly (`FakeDataChannel`).
    Answers of different events are independent, so a person loses the sum of those of her answered events.
    Extra daily values are those of a daily indicator answered on top of the plan's (voided days). They hold
    for values that are equal in the same versions of a day.
    """
    if extra_daily_values < 0:
        raise LdpError(f"extra_daily_values must be >= 0, got {extra_daily_values}")
    n_values = [
        plan.answers_per_person(index, extra_daily_values=extra_daily_values) for index in range(plan.d)
    ]
    whole = [
        _answers_ratio(plan, index, n=n, extra_reports=extra_daily_values) for index, n in enumerate(n_values)
    ]
    attributes, profile = _ratios(plan, n_values, whole=whole, extra_reports=extra_daily_values)
    answers_one = plan.is_sampled or plan.has_fakes
    losses = [spec.epsilon * n for spec, n in zip(plan.indicators, n_values, strict=True)]
    window = (
        _window_answers(plan, days=plan.window_days, extra_daily_values=extra_daily_values)
        if plan.window_days is not None and plan.has_streams
        else None
    )
    nominal = max(losses) if answers_one else sum(losses, start=Fraction(0))
    epsilon = epsilon_of(max(profile)) if answers_one else epsilon_of(*profile)
    events = plan.max_events
    return Certificate(
        indicators=tuple(
            _certify_indicator(plan, index, n_values=n, attribute=attribute, whole=ratio)
            for index, (n, attribute, ratio) in enumerate(zip(n_values, attributes, whole, strict=True))
        ),
        epsilon_attribute=epsilon_of(max(attributes)),
        epsilon_profile=epsilon,
        nominal_attribute=plan.epsilon
        or max(
            plan.indicators[place].epsilon * n
            for of_value in _answers_with(plan, n_values)
            for place, n in of_value
        ),
        nominal_profile=nominal,
        epsilon_window=None if window is None else epsilon_of(max(ratio for ratio, _ in window)),
        nominal_window=None if window is None else max(loss for _, loss in window),
        epsilon_person=None if events is None else _UP.multiply(epsilon, Decimal(events)),
        nominal_person=None if events is None else nominal * events,
    )


def certify_classes(plan: PlanSpec, *, extra_daily_values: int = 0) -> tuple[Certificate, ...]:
    """Realised loss of the people of each class, in the order of the plan; parameters as of `certify`.

    That of the plan is the largest of them: `certify` reads the largest epsilon. Which class a person is in
    is public, and not protected. Of a plan without classes there is one, its own.
    """
    return tuple(certify(each, extra_daily_values=extra_daily_values) for each in plan.of_classes)


def window_epsilon(plan: PlanSpec, *, days: int, extra_daily_values: int = 0) -> Decimal:
    """Realised loss of all values on any `days` consecutive days, rounded up.

    Parameters
    ----------
    days : int; in [1, days of the study]
    extra_daily_values : as of `certify`; all of them may lie in the window

    Raises
    ------
    LdpError : the plan has no streams, or days are out of range. Answers that are kept have no such limit:
        a constant value and one that changes give reports of which the other never gives some
    """
    if not plan.has_streams:
        raise LdpError(
            f"a plan must have streams to limit the loss of {days} days in a row, got {plan.mechanism}: "
            "whether a kept answer changes is not protected"
        )
    if not 1 <= days <= plan.days:
        raise LdpError(f"days must be in [1, {plan.days}], got {days}")
    found = _window_answers(plan, days=days, extra_daily_values=extra_daily_values)
    return epsilon_of(max(ratio for ratio, _ in found))


def _window_answers(plan: PlanSpec, *, days: int, extra_daily_values: int) -> list[tuple[Fraction, Fraction]]:
    """Ratio and nominal epsilon of a person's answers to each indicator on consecutive days.

    Of a static indicator it is that of its one answer, which belongs to all days.
    """
    found = []
    for index, spec in enumerate(plan.indicators):
        n = 1
        if plan.is_stream(index) and plan.window_days is not None:
            n = most_answers(days, window_days=plan.window_days) + extra_daily_values
        found.append((plan.answer_channel(index).ratio ** n, spec.epsilon * n))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PresenceCertificate:
    """Loss of presence from all counts of a study; all values rounded up.

    Parameters
    ----------
    visitors, answers : CountNoise; of the cells of the visitors, and of those of all categories
    max_days : int; first days of a subscriber that count
    epsilon : Decimal; a subscriber is added or removed, with all days and answers
    epsilon_moved : Decimal; a subscriber was there on other days, and her answers stay what they are, one for
        each indicator
    epsilon_replaced : Decimal; a subscriber is replaced by another one, with other days and other answers
    nominal : Fraction; twice the plan's presence epsilon, never below `epsilon`
    """

    visitors: CountNoise
    answers: CountNoise
    max_days: int
    epsilon: Decimal
    epsilon_moved: Decimal
    epsilon_replaced: Decimal
    nominal: Fraction


def certify_presence(plan: PlanSpec) -> PresenceCertificate | None:
    """Realised loss of presence under a plan; None if its counts are exact.

    Holds for any computation from the counts, over all closings of days: each cell is published once,
    and a subscriber is in `max_days` cells of the visitors, and of the answers, in all. Replacing one is
    removing her and adding another.
    """
    visitors, answers = plan.visitor_noise, plan.answer_noise
    if plan.presence is None or visitors is None or answers is None:
        return None
    cells = replaced_cells(max_days=plan.presence.max_days, days=plan.days)
    codes_a_day = answers.sensitivity // plan.presence.max_days
    moved = _UP.add(
        _UP.multiply(visitors.channel.epsilon, Decimal(cells)),
        _UP.multiply(answers.channel.epsilon, Decimal(cells * codes_a_day)),
    )
    epsilon = _UP.add(visitors.epsilon, answers.epsilon)
    return PresenceCertificate(
        visitors=visitors,
        answers=answers,
        max_days=plan.presence.max_days,
        epsilon=epsilon,
        epsilon_moved=moved,
        epsilon_replaced=_UP.multiply(epsilon, Decimal(2)),
        nominal=2 * plan.presence.epsilon,
    )


def check_cap(plan: PlanSpec, epsilon_profile: Decimal, *, extra_daily_values: int = 0) -> None:
    """Raise PlanError, with the certified loss, if that is above a cap per profile."""
    certified = certify(plan, extra_daily_values=extra_daily_values).epsilon_profile
    if epsilon_profile.is_nan() or certified > epsilon_profile:
        raise PlanError(
            f"epsilon_profile must be >= the certified loss per profile {six_digits(certified)}, "
            f"got {epsilon_profile}"
        )


def six_digits(epsilon: Decimal) -> str:
    """Return an epsilon for a message, rounded up to six significant digits: "7.00001"."""
    short = Context(prec=6, rounding=ROUND_CEILING).create_decimal(epsilon)
    return f"{short.normalize():f}"


def _ratios(
    plan: PlanSpec, n_values: Sequence[int], *, whole: Sequence[Fraction], extra_reports: int
) -> tuple[Sequence[Fraction], Sequence[Fraction]]:
    """Ratios of one value of each indicator, and of all values of each, or of the profile as a whole."""
    if plan.has_fakes and all(spec.kind == "static" for spec in plan.indicators):
        return plan.fake_data.ratios_attribute, [plan.fake_data.ratio_profile]
    values = [
        max(_answers_ratio(plan, other, n=n, extra_reports=extra_reports) for other, n in of_value)
        for of_value in _answers_with(plan, n_values)
    ]
    return values, whole


def _answers_ratio(plan: PlanSpec, index: int, *, n: int, extra_reports: int) -> Fraction:
    """Ratio of n different answers to an indicator; with noise of each report, in all reports."""
    channel = plan.answer_channel(index)
    rounds = rounds_of(channel)
    if rounds is None:
        return channel.ratio**n
    return _worst_ratio(rounds, plan.reports_per_person(index, extra_daily_values=extra_reports), n)


@lru_cache(maxsize=256)
def _worst_ratio(rounds: TwoRoundGrr | TwoRoundUnary, reports: int, n_values: int) -> Fraction:
    """Kept, since it takes some milliseconds, and each certificate asks for a few of them."""
    return worst_ratio(rounds, reports=reports, n_values=n_values)


def _answers_with(plan: PlanSpec, n_values: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Indicators whose answers depend on one value of each indicator, with how many answers do.

    A person who answers a joint indicator shows the values of its parts: a static one on all days.
    """
    return [
        [
            (place, n if spec.kind == "static" else 1)
            for place, (other, n) in enumerate(zip(plan.indicators, n_values, strict=True))
            if spec.slug in (other.slug, *other.parts)
        ]
        for spec in plan.indicators
    ]


def _certify_indicator(
    plan: PlanSpec, index: int, *, n_values: int, attribute: Fraction, whole: Fraction
) -> IndicatorCertificate:
    channel = plan.answer_channel(index)
    return IndicatorCertificate(
        slug=plan.indicators[index].slug,
        n_values=n_values,
        ratio=channel.ratio,
        epsilon=channel.epsilon,
        epsilon_attribute=epsilon_of(attribute),
        epsilon_profile=epsilon_of(whole),
        nominal=plan.indicators[index].epsilon,
    )

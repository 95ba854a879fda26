"""Targets of the audit that are plans: all words that the product stores of a subscriber."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER, WORD_BITS
from ldp.errors import LdpError
from ldp.kernels.entropy import KeyedPrf
from ldp.keyed.sanitiser import Sanitiser
from ldp.privacy.accounting import certify
from ldp.privacy.joint import joint_codes
from ldp.privacy.plans import AnswerChannel, PlanSpec
from ldp.privacy.report_words import n_words
from ldp.protocols.channels import Unit
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.partial.regions import RegionChannel, regions_of
from ldp.protocols.partial.sensitive import SensitiveChannel
from ldp.protocols.projective_space import DesignChannel, is_orthogonal
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.two_round_unary import TwoRoundUnary
from ldp.protocols.unary import UnaryChannel
from ldp.research.audit import ALL_ASKED, Target

Inputs = Sequence[Sequence[tuple[int, int]]]
Table = NDArray[np.int64]
Words = NDArray[np.uint64]
AttackedUnit = Unit | Literal["window"]


def plan_target(plan: PlanSpec, *, unit: AttackedUnit | None = None) -> Target:
    """Target of a whole plan, with the certificate of a unit.

    Parameters
    ----------
    plan : PlanSpec
    unit : "profile" (all values differ, on every day), "attribute" (only the value that loses most; of a
        daily indicator, that of the first day, which is the only one), "window" (of a plan with streams: as
        of a profile, on `window_days` days in the middle of the study), or None: that of the plan

    Raises
    ------
    LdpError : unit is "window", and the plan has no streams

    Notes
    -----
    The inputs differ in the last and the first value, whose bits lie in different words of a long report. Of
    moves, one person has none and the other makes one and the same: the largest loss there is.
    """
    certificate = certify(plan)
    if (unit or plan.unit) == "profile":
        certified = certificate.epsilon_profile
        inputs = [_values(plan, index) for index in range(plan.d)]
    elif unit == "window":
        if plan.window_days is None or certificate.epsilon_window is None:
            raise LdpError(f"unit window needs a plan with streams, got {plan.mechanism}")
        certified = certificate.epsilon_window
        inputs = [_of_window(plan, _values(plan, index)) for index in range(plan.d)]
    else:
        certified = certificate.epsilon_attribute
        entries = zip(plan.indicators, certificate.indicators, strict=True)
        losses = [0 if spec.parts else entry.epsilon_attribute for spec, entry in entries]
        inputs = [[(first, first) for first, _ in _values(plan, index)] for index in range(plan.d)]
        differing = losses.index(max(losses))
        values = _values(plan, differing)
        inputs[differing] = values if plan.is_renewed(differing) else values[:1]
    for index, spec in enumerate(plan.indicators):
        if spec.parts:
            inputs[index] = _combined(plan, spec.parts, inputs)
    return Target(
        mechanism=plan.mechanism,
        unit=unit or plan.unit,
        epsilon_certified=certified,
        observe=partial(_observe, plan, inputs),
        summarise=partial(_summarise, plan, inputs),
        beside="for a value of both" if plan.has_fakes else "",
    )


def _values(plan: PlanSpec, index: int) -> list[tuple[int, int]]:
    """Values of an indicator, one pair per day; the second input is one ahead."""
    spec = plan.indicators[index]
    days = plan.days if spec.kind == "daily" else 1
    if spec.scale is not None:  # the two ends of the scale lie on different sides of every cut
        return [(spec.domain_size * (day % 2), spec.domain_size * (1 - day % 2)) for day in range(days)]
    if spec.moves is not None:
        return [(spec.moves.nothing, min(1, spec.moves.nothing - 1))] * days
    channel, n = plan.answer_channel(index), spec.domain_size
    if isinstance(channel, RegionChannel):  # the region is no secret
        own = max(regions_of(channel), key=lambda region: region.channel.ratio).values.tolist()
        return [(own[(day - 1) % len(own)], own[day % len(own)]) for day in range(days)]
    if isinstance(channel, SensitiveChannel):  # others are no secret
        hidden = channel.sensitive
        return [(hidden[(day - 1) % len(hidden)], hidden[day % len(hidden)]) for day in range(days)]
    if isinstance(channel, QuestionChannel):  # most of the questions have these values in different groups
        n = min(n, channel.groups)
    if plan.is_renewed(index):
        return [(n - 1, 0)] * plan.days
    return [((day - 1) % n, day % n) for day in range(days)]


def _of_window(plan: PlanSpec, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the values of an indicator, which differ only on the days of one window if it has a day each."""
    if len(pairs) == 1 or plan.window_days is None:
        return pairs
    start = (plan.days - plan.window_days) // 2
    inside = range(start, start + plan.window_days)
    return [(first, second if day in inside else first) for day, (first, second) in enumerate(pairs)]


def _combined(plan: PlanSpec, parts: Sequence[str], inputs: Inputs) -> list[tuple[int, int]]:
    """Return the values of a joint indicator, one pair per day, from those of its parts."""
    places = [plan.index(part) for part in parts]
    sizes = [plan.indicators[place].part_size for place in places]
    daily = [len(inputs[place]) for place in places if plan.indicators[place].kind == "daily"]
    found = []
    for day in range(min(daily, default=1)):
        of_day = (inputs[place][day if len(inputs[place]) > 1 else 0] for place in places)
        # The ends of a scale lie on the sides 0 and 1 of every cut.
        values = [
            np.minimum(pair, size - 1).astype(np.int32) for pair, size in zip(of_day, sizes, strict=True)
        ]
        first, second = joint_codes(values, sizes=sizes)
        found.append((int(first), int(second)))
    return found


def _observe(plan: PlanSpec, inputs: Inputs, prf: KeyedPrf, pseudonyms: Words, side: int) -> Table:
    """Words of all reports: by indicator, then by day."""
    sanitiser = Sanitiser(plan, prf)
    answers = [
        sanitiser.answer_days(index, pseudonyms) if spec.kind == "daily" else np.ones_like(pseudonyms)
        for index, spec in enumerate(plan.indicators)
    ]
    sent = []
    for day in range(max(map(len, inputs))):
        values = []
        for index, (pairs, days) in enumerate(zip(inputs, answers, strict=True)):
            value: Any = pairs[day][side] if day < len(pairs) else -1
            asked = plan.indicators[index].moves
            if asked is not None and day < len(pairs):
                moves = [] if value == asked.nothing else [value] * asked.per_day
                value = _picked(sanitiser, index, pseudonyms, moves=moves, day=day + 1)
            values.append(np.where(days >> np.uint64(day) & np.uint64(1) == 1, value, -1).astype(np.int32))
        sent.append(sanitiser.reports(pseudonyms, values, day=day + 1))
    columns = [sent[day][index] for index, pairs in enumerate(inputs) for day in range(len(pairs))]
    return np.concatenate(columns, axis=1).astype(np.int64)


def _picked(
    sanitiser: Sanitiser, index: int, pseudonyms: Words, *, moves: Sequence[int], day: int
) -> NDArray[np.int32]:
    """Pick one of the same moves for everyone."""
    n = pseudonyms.shape[0]
    starts, codes = np.arange(n + 1) * len(moves), np.tile(np.array(moves, np.int32), n)
    return sanitiser.picked_moves(index, pseudonyms, starts=starts, codes=codes, day=day)


def _summarise(plan: PlanSpec, inputs: Inputs, table: Table) -> Table:
    summary = np.zeros((table.shape[0], 4), np.int64)
    reports = _by_indicator(plan, inputs, table)
    summary[:, 0] = answered = _answered(plan, reports)
    for index, (words, pairs) in enumerate(zip(reports, inputs, strict=True)):
        # Once the answer is found, the other reports are known to be fakes.
        counts = np.isin(answered, (ALL_ASKED, index))
        for day, pair in enumerate(pairs):
            channel = plan.answer_channel(index)
            first, second = (counts & _supports(words[:, day], value, channel=channel) for value in pair)
            summary[:, 1] += first & ~second
            summary[:, 2] += second & ~first
            if plan.has_fakes:
                summary[:, 3] += first & second & (pair[0] == pair[1])
    return summary


def _by_indicator(plan: PlanSpec, inputs: Inputs, table: Table) -> list[Table]:
    """Words per indicator, shape (n, days, words)."""
    widths = [n_words(plan.answer_channel(index)) for index in range(plan.d)]
    stops = np.cumsum([width * len(pairs) for width, pairs in zip(widths, inputs, strict=True)])
    parts = np.split(table, stops[:-1], axis=1)
    return [part.reshape(part.shape[0], -1, width) for part, width in zip(parts, widths, strict=True)]


def _answered(plan: PlanSpec, reports: Sequence[Table]) -> Table:
    """Indicator that a subscriber is seen to answer; ALL_ASKED if it is none, or not just one.

    It is the one with reports, or, among fakes, the one whose reports change: a fake is the same on all days.
    """
    if not (plan.is_sampled or plan.has_fakes):
        return np.full(reports[0].shape[0], ALL_ASKED)
    shown = []
    for words in reports:
        is_there = words[:, :, 0] != NO_ANSWER
        if plan.has_fakes:
            first = np.take_along_axis(words, is_there.argmax(axis=1)[:, None, None], axis=1)
            is_there &= (words != first).any(axis=2)
        shown.append(is_there.any(axis=1))
    found = np.column_stack(shown)
    return np.where(found.sum(axis=1) == 1, found.argmax(axis=1), ALL_ASKED)


def _supports(words: Table, value: int, *, channel: AnswerChannel) -> NDArray[np.bool_]:
    """Return whether a report, shape (n, words), supports a value; none does without words."""
    if isinstance(channel, ThresholdChannel):
        return np.asarray((words[:, 0] != NO_ANSWER) & (words[:, 0] % 2 == (value > words[:, 0] // 2)))
    if isinstance(channel, WaveChannel):
        return np.asarray((value <= words[:, 0]) & (words[:, 0] < value + channel.width))
    if isinstance(channel, RegionChannel):
        own = next(region for region in regions_of(channel) if value in region.values)
        is_here = (own.codes.start <= words[:, 0]) & (words[:, 0] < own.codes.stop)
        place = int(np.searchsorted(own.values, value))
        return np.asarray(is_here & _supports(words - own.codes.start, place, channel=own.channel))
    if isinstance(channel, DesignChannel):
        return np.isin(words[:, 0], np.flatnonzero(is_orthogonal(value, channel=channel)))
    if not isinstance(channel, UnaryChannel | TwoRoundUnary):
        return np.asarray(words[:, 0] == value)
    word, place = divmod(value, WORD_BITS)
    return np.asarray((words[:, word] != NO_ANSWER) & (words[:, word] >> place & 1 == 1))

"""Presence noise: its law in exact rationals, what it certifies, and what its sampler draws."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
import pytest

from ldp import Delta, InvalidBudgetError, KeyedPrf, LdpError, PlanError, PlanSpec, epsilon_of
from ldp.kernels.entropy import PRESENCE_NOISE
from ldp.keyed.noise.presence import VISITORS, noise_delta
from ldp.privacy.accounting import certify_presence
from ldp.privacy.presence import PresenceSpec, replaced_cells
from ldp.protocols.channels import WORD
from ldp.protocols.geometric import GeometricChannel, geometric_channel
from tests.ldp.exact import make_plan, reference_words, refuses

STEPS = [Fraction(1, 10**8), Fraction(1, 1000), Fraction(1, 62), Fraction(1, 7), Fraction(1), Fraction(20)]


def plan(*indicators, **changes) -> PlanSpec:
    settings = {"presence_epsilon": Decimal(1), "presence_days": 7} | changes
    return make_plan(*(indicators or (("static", 3), ("daily", 2))), **settings)


def key(n: int) -> KeyedPrf:
    return KeyedPrf(n.to_bytes(16, "big"))


@pytest.mark.parametrize("step", STEPS)
def test_certified_step_is_never_above_the_nominal_one_and_near_it(step: Fraction) -> None:
    assert step * Fraction(999_999, 10**6) < Fraction(geometric_channel(step=step).epsilon) <= step


@pytest.mark.parametrize("step", [Fraction(1, 7), Fraction(1), Fraction(5)])
def test_probabilities_add_up_and_no_neighbours_are_further_apart_than_the_ratio(step: Fraction) -> None:
    channel = geometric_channel(step=step)
    law = {z: channel.probability(z) for z in range(-120, 121)}
    assert 1 - Fraction(1, 10**6) < sum(law.values()) <= 1
    ratios = [law[z] / law[z + 1] for z in range(-120, 120)]
    assert max(max(ratio, 1 / ratio) for ratio in ratios) == channel.ratio


@pytest.mark.parametrize(
    ("second", "tail", "worst"), [(5, 7, "the lowest digit"), (9, 7, "a carry"), (5, 2, "the tail, upwards")]
)
def test_any_two_counts_have_outputs_in_common_only(second: int, tail: int, worst: str) -> None:
    coarse = GeometricChannel(digits=(WORD // 3, WORD // second), tail=WORD // tail)
    assert all(coarse.probability(z) > 0 for z in range(-1000, 1001))
    ratios = [coarse.probability(z) / coarse.probability(z + 1) for z in range(64)]
    places = {"the lowest digit": ratios[0], "a carry": ratios[1], "the tail, upwards": 1 / ratios[3]}
    assert coarse.ratio == max(max(ratio, 1 / ratio) for ratio in ratios)
    assert max(places.values()) == places[worst] == coarse.ratio


@pytest.mark.parametrize("step", STEPS[1:-1])
def test_moments_are_those_of_the_two_sided_geometric_law(step: Fraction) -> None:
    a = np.exp(-float(step))
    variance, kurtosis = geometric_channel(step=step).moments
    assert variance == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-9)
    assert kurtosis == pytest.approx((1 + 4 * a + a * a) / (2 * a), rel=1e-6)


@pytest.mark.parametrize("step", [Fraction(0), Fraction(33), Fraction(-1)])
def test_steps_out_of_range_are_refused(step: Fraction) -> None:
    with pytest.raises(InvalidBudgetError, match="presence epsilon of one count must be in"):
        geometric_channel(step=step)


@pytest.mark.parametrize(
    ("mechanism", "days", "epsilon", "codes_a_day"),
    [("smp-grr", 7, "1", 1), ("smp-grr", 62, "0.001", 1), ("spl-grr", 5, "2.5", 2), ("smp-grr", 1, "20", 1)],
)
def test_presence_certifies_at_most_twice_what_was_typed(mechanism, days, epsilon, codes_a_day) -> None:
    spec = plan(mechanism=mechanism, days=62, presence_epsilon=Decimal(epsilon), presence_days=days)
    certificate = certify_presence(spec)
    assert certificate.visitors.sensitivity == days
    assert certificate.answers.sensitivity == days * codes_a_day
    nominal = 2 * Fraction(epsilon)
    assert certificate.nominal == nominal
    assert nominal * Fraction(999_999, 10**6) < Fraction(certificate.epsilon) <= nominal
    assert certificate.epsilon_moved <= certificate.epsilon_replaced <= 2 * nominal


def cells_of(days: tuple[int, ...]) -> set[tuple[int, int]]:
    return set(zip((0, *days), days, strict=False))


def day_sets(days: int, most: int) -> Iterator[tuple[int, ...]]:
    for n in range(most + 1):
        yield from combinations(range(1, days + 1), n)


@pytest.mark.parametrize("days", [1, 2, 3, 5, 7])
def test_sensitivity_by_enumeration(days: int) -> None:
    for most in range(1, days + 1):
        sets = list(day_sets(days, most))
        assert max(len(cells_of(each)) for each in sets) == most
        moved = max(len(cells_of(one) ^ cells_of(other)) for one in sets for other in sets)
        assert moved == replaced_cells(max_days=most, days=days)


def test_worst_output_loses_exactly_what_is_certified_for_adding_and_never_more_for_moving() -> None:
    noise = plan(days=3, presence_days=2).visitor_noise
    chance = noise.channel.probability
    grid = [(p, t) for t in range(1, 4) for p in range(t)]
    people = list(day_sets(3, 2))
    worst_added = worst_moved = Fraction(1)
    for choice in range(2 ** len(grid)):
        output = {cell: (choice >> i & 1) * 4 - 1 for i, cell in enumerate(grid)}
        laws = [prod(chance(y - (cell in cells_of(days))) for cell, y in output.items()) for days in people]
        worst_added = max(worst_added, *(max(law / laws[0], laws[0] / law) for law in laws))
        worst_moved = max(worst_moved, max(laws) / min(laws))
    assert worst_added == noise.channel.ratio**2
    assert epsilon_of(worst_added) <= noise.epsilon
    assert worst_moved <= noise.channel.ratio ** replaced_cells(max_days=2, days=3)


def test_plans_that_count_more_than_one_code_a_day_are_refused_with_the_reason() -> None:
    for changes, reason in (
        ({"mechanism": "smp-oue"}, "marks up to 3 categories"),
        ({"mechanism": "rsfd-grr"}, "most of them made up"),
        ({"presence_days": 8}, r"presence_days must be in \[1, 7\], got 8"),
        ({"presence_days": None}, "presence_days must be present with presence_epsilon"),
        ({"presence_epsilon": None}, "presence_days must be absent without presence_epsilon"),
        ({"presence_epsilon": Decimal("0.0001")}, r"presence_epsilon must be in \[0.001, 20\], got 0.0001"),
        ({"presence_epsilon": Decimal("NaN")}, "must be a finite number"),
        ({"tallies": ("runs",)}, "they are exact, and its noise does not cover them; got runs"),
        ({"tallies": ("runs", "visits")}, "tallies must be some of"),
        ({"tallies": ("runs", "runs")}, "tallies must be some of"),
    ):
        refuses(reason, plan, **changes)
    refuses("a report on i0 marks up to 90 categories", plan, ("static", 90), mechanism="smp-adp")


def test_presence_is_in_the_json_of_a_plan_only_where_it_has_some() -> None:
    assert certify_presence(plan(presence_epsilon=None, presence_days=None)) is None
    spec = plan(mechanism="smp-adp")  # of small domains: its reports are codes
    assert spec.presence == PresenceSpec(epsilon=Fraction(1), max_days=7)
    assert spec.to_json()["presence"] == {"epsilon": "1/1", "max_days": 7}
    assert PlanSpec.from_json(spec.to_json()) == spec
    more = replace(spec, presence=None, tallies=("visits",))
    assert (more.to_json()["tallies"], PlanSpec.from_json(more.to_json())) == (["visits"], more)
    assert not {"presence", "tallies"} & replace(more, tallies=()).to_json().keys()
    with pytest.raises(PlanError, match="as to_json writes it"):
        PlanSpec.from_json(spec.to_json() | {"presence": {"epsilon": "1"}})


def test_noise_is_the_law_drawn_from_the_words_of_the_block() -> None:
    spec = plan()
    channel = spec.answer_noise.channel
    secret = bytes(range(16))
    drawn = noise_delta(spec, prf=KeyedPrf(secret), first_day=1, last_day=7)
    for previous, day, code in [(0, 1, 0), (2, 5, 1), (6, 7, 2)]:
        expected = _by_hand(secret, channel, previous=previous, day=day, code=code)
        assert drawn.counts[0][code, previous, day] == expected


def _by_hand(secret: bytes, channel: GeometricChannel, *, previous: int, day: int, code: int) -> int:
    fields = {"purpose": PRESENCE_NOISE, "indicator": 0, "plan_version": 1, "counter": 0}
    for attempt in range(100):
        draws = iter(range(attempt * 2**24, (attempt + 1) * 2**24))

        def word() -> int:
            cell = next(draws) << 16 | previous << 8 | day  # noqa: B023
            return reference_words(secret, pseudonym=cell, value=code, **fields)[0]

        is_negative = word() >= 2**63
        magnitude = sum((word() < threshold) << j for j, threshold in enumerate(channel.digits))
        while word() < channel.tail:
            magnitude += 1 << len(channel.digits)
        if magnitude or not is_negative:
            return -magnitude if is_negative else magnitude
    raise AssertionError("minus zero a hundred times")


def test_noise_of_a_cell_does_not_depend_on_how_the_days_are_closed() -> None:
    spec, prf = plan(), key(3)
    whole = noise_delta(spec, prf=prf, first_day=1, last_day=7)
    parts = noise_delta(spec, prf=prf, first_day=1, last_day=2)
    parts.add(noise_delta(spec, prf=prf, first_day=3, last_day=7))
    assert np.array_equal(parts.visitors, whole.visitors)
    for mine, theirs in zip(parts.counts, whole.counts, strict=True):
        assert np.array_equal(mine, theirs)


def test_every_cell_of_the_days_has_noise_of_its_own_and_no_other_cell_has_any() -> None:
    spec = plan(presence_epsilon=Decimal("0.001"))  # so wide that hardly two cells can be equal
    delta = noise_delta(spec, prf=key(1), first_day=3, last_day=7)
    inside = np.zeros((8, 8), np.bool_)
    for day in range(3, 8):
        inside[:day, day] = True
    drawn = [delta.visitors[inside]]
    assert not delta.visitors[~inside].any()
    for counts, n_reports in zip(delta.counts, delta.n_reports, strict=True):
        assert not counts[:, ~inside].any()
        assert np.array_equal(counts.sum(axis=0), n_reports)
        drawn += [of_code[inside] for of_code in counts]
    values = np.concatenate(drawn)
    assert np.unique(values).size > 0.99 * values.size
    assert VISITORS not in range(spec.d)


def test_plans_without_noise_and_days_outside_the_study_are_refused() -> None:
    with pytest.raises(LdpError, match="presence noise must be part of the plan"):
        noise_delta(plan(presence_epsilon=None, presence_days=None), prf=key(1), first_day=1, last_day=2)
    with pytest.raises(LdpError, match=r"days must be in \[1, 7\] and in order, got 3\.\.8"):
        noise_delta(plan(), prf=key(1), first_day=3, last_day=8)


def test_frequencies_of_the_noise_follow_the_exact_law() -> None:
    spec = plan(presence_epsilon=Decimal(7))  # one a day: most of the law lies on few values
    noise = spec.visitor_noise
    drawn = [noise_delta(spec, prf=key(n), first_day=1, last_day=7).visitors for n in range(300)]
    cells = np.concatenate([visitors[np.triu_indices(8, 1)] for visitors in drawn])
    statistic = 0.0
    for z in range(-4, 5):
        expected = float(noise.channel.probability(z)) * cells.size
        statistic += (int((cells == z).sum()) - expected) ** 2 / expected
    assert statistic < 30  # 9 values and the rest: chi-square of 9 degrees exceeds it once in 2,000 times


def test_packed_delta_keeps_the_day_up_to_which_it_is_noisy() -> None:
    spec = plan()
    delta = replace(noise_delta(spec, prf=key(1), first_day=1, last_day=2), noisy_through=2)
    back = Delta.unpack(delta.pack(), plan=spec)
    assert back.noisy_through == 2
    assert np.array_equal(back.visitors, delta.visitors)
    assert Delta.unpack(Delta.zero(spec).pack()).noisy_through == 0
    refuses("packed delta must", Delta.unpack, delta.pack()[:10])

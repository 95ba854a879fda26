"""Keys of events, and answers that are given under them: equal rows never share bits."""

from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from ldp import Delta, IndicatorRequest, KeyedPrf, LdpError, PlanError, PlanSpec, build_plan, certify
from ldp.estimation.estimators import pure_variance
from ldp.estimation.unions import union
from ldp.kernels.entropy import EVENT
from ldp.keyed.events import content_keys, event_keys, occurrence_numbers
from ldp.protocols.channels import epsilon_of

PRF = KeyedPrf(bytes(range(16)))
NAMES = np.zeros(4, np.uint64)


def plan(mechanism="smp-grr", *, days=400, **changes) -> PlanSpec:
    return build_plan(
        **{
            "mechanism": mechanism,
            "unit": "profile",
            "version": 1,
            "days": days,
            "epsilon": Decimal("0.7"),
            "indicators": [IndicatorRequest(slug="region", kind="static", domain_size=4)],
            "events": True,
            **changes,
        }
    )


def test_equal_contents_have_one_key_and_different_ones_others() -> None:
    parts = [np.array([7, 7, 8, 2**31 + 7], np.uint32), np.array([1, 1, 1, 1], np.uint16)]
    keys = content_keys(NAMES, parts, prf=PRF)
    assert (keys[0] == keys[1], len(set(keys.tolist()))) == (True, 3)
    swapped = content_keys(NAMES, parts[::-1], prf=PRF)
    named = content_keys(NAMES + np.uint64(1), parts, prf=PRF)
    assert not set(keys.tolist()) & (set(swapped.tolist()) | set(named.tolist()))


def test_keys_are_the_chain_of_blocks_that_the_docs_describe() -> None:
    fields = {"purpose": EVENT, "indicator": 0}
    low = PRF.words(NAMES[:1], values=5, counter=0, plan_version=0, **fields)[:, 0]
    high = PRF.words(low, values=1, counter=0, plan_version=1, **fields)[:, 0]
    part = np.array([2**24 + 5], np.uint32)
    assert content_keys(NAMES[:1], [part], prf=PRF) == high
    second = PRF.words(high, values=2, counter=1, plan_version=0, **fields)[0, 0]
    assert event_keys(np.repeat(high, 2), prf=PRF)[1] == second


def test_each_of_equal_rows_has_a_key_and_their_order_does_not_matter() -> None:
    contents = np.array([5, 9, 5, 5, 9], np.uint64)
    assert occurrence_numbers(contents).tolist() == [1, 1, 2, 3, 2]
    keys = event_keys(contents, prf=PRF)
    assert len(set(keys.tolist())) == 5
    assert set(event_keys(contents[[4, 2, 0, 1, 3]], prf=PRF)) == set(keys)
    assert set(event_keys(contents[:3], prf=PRF)) < set(keys)  # a row more changes none of the others
    assert event_keys(contents[:0], prf=PRF).tolist() == []


def test_more_equal_rows_than_a_block_can_number_are_refused(monkeypatch) -> None:
    monkeypatch.setattr("ldp.keyed.events.MAX_EQUAL", 3)
    with pytest.raises(LdpError, match="equal rows must be at most 3, got 4"):
        event_keys(np.zeros(4, np.uint64), prf=PRF)


@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-oue", "smp-adp", "spl-grr"])
def test_the_certificate_of_an_event_is_the_ratio_found_by_enumeration(mechanism) -> None:
    two = [IndicatorRequest(slug=slug, kind="static", domain_size=k) for slug, k in (("a", 2), ("b", 3))]
    spec = plan(mechanism, indicators=two)
    worst = [_worst_ratio(spec, index) for index in range(2)]
    found = certify(spec)
    assert found.epsilon_profile == (epsilon_of(*worst) if mechanism == "spl-grr" else epsilon_of(max(worst)))
    assert found.epsilon_attribute == epsilon_of(max(worst))
    assert found.epsilon_profile <= Decimal("0.7")


def _worst_ratio(spec: PlanSpec, index: int) -> Fraction:
    """Largest ratio of probabilities of one report, of any two values: all reports are listed."""
    channel, k = spec.answer_channel(index), spec.indicators[index].domain_size
    if not spec.is_unary(index):
        return max(
            (channel.p if report == one else channel.q) / (channel.p if report == other else channel.q)
            for report, one, other in product(range(k), repeat=3)
        )

    def chance(bits, value):
        found = Fraction(1)
        for place, bit in enumerate(bits):
            p = channel.p if place == value else channel.q
            found *= p if bit else 1 - p
        return found

    return max(
        chance(bits, one) / chance(bits, other)
        for bits in product((0, 1), repeat=k)
        for one, other in product(range(k), repeat=2)
    )


def test_tallies_have_one_row_and_unions_are_sums_of_days() -> None:
    delta = Delta.zero(plan(days=7_320))
    assert (delta.visitors.shape, delta.counts[0].shape) == ((1, 7321), (4, 1, 7321))
    delta.visitors[0, [1, 300, 7320]] = 5, 7, 11
    delta.counts[0][2, 0, 300] = 3
    packed = delta.pack()
    back = Delta.unpack(packed, plan=plan(days=7_320))
    assert (back.visitors == delta.visitors).all()
    assert union(back.visitors, first_day=2, last_day=7_320) == 18
    assert union(back.counts[0], first_day=1, last_day=7_320).tolist() == [0, 0, 3, 0]
    with pytest.raises(LdpError, match="of the plan"):
        Delta.unpack(packed, plan=plan(days=7_319))
    with pytest.raises(LdpError, match="of the plan"):
        Delta.unpack(packed, plan=plan(days=62, events=False))


def test_plans_without_events_are_written_as_before() -> None:
    assert "events" not in plan(days=62, events=False).to_json()
    assert PlanSpec.from_json(plan().to_json()) == plan()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mechanism": "rsfd-grr"}, "mechanism of a plan of events must be one of"),
        ({"mechanism": "smp-stream"}, "mechanism of a plan of events must be one of"),
        ({"days": 7_321}, r"days must be in \[1, 7320\]"),
        ({"days": 63, "events": False}, r"days must be in \[1, 62\]"),
        ({"indicators": [IndicatorRequest(slug="a", kind="daily", domain_size=2)]}, "a must be static"),
        ({"tallies": ("visits",)}, "tallies must be absent in a plan of events"),
        ({"presence_epsilon": Decimal(1), "presence_days": 1}, "presence_epsilon must be absent"),
    ],
)
def test_a_plan_of_events_has_nothing_of_people(changes, message) -> None:
    with pytest.raises(PlanError, match=message):
        plan(**changes)


@pytest.mark.parametrize(
    ("n", "at_ln_2", "at_ln_7"),
    [(80.5, 0.0994, 0.0097), (2_449, 0.0033, 0.00032), (29_388, 0.00027, 0.0000265)],
)
def test_errors_of_the_thesis_interventions_are_those_of_the_docs(n, at_ln_2, at_ln_7) -> None:
    """Chapter 9: OUE, a region without events, 80.5 a day, 2,449 a month and 29,388 a year."""
    for epsilon, expected in (("0.693147", at_ln_2), ("1.945910", at_ln_7)):
        spec = plan("smp-oue", epsilon=Decimal(epsilon))
        of_one = pure_variance(0, n_reports=1, n_population=1, channel=spec.answer_channel(0))
        assert float(of_one) / n == pytest.approx(expected, rel=0.02)

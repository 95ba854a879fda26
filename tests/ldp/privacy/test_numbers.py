"""Threshold reports: what a person can say in all, and what that loses, by enumeration in fractions."""

import json
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.codes import NO_ANSWER
from ldp.keyed.designs.threshold import choose_cut
from ldp.privacy import attacker
from ldp.protocols.channels import WORD
from ldp.protocols.numbers.threshold import Scale, threshold_channel
from ldp.research.audit import attack
from ldp.research.audit_plans import plan_target
from tests.ldp.exact import refuses
from tests.ldp.privacy.test_plans import built

HOURS = Scale(cuts=(60, 120, 240), unit="min")
NUMBER = {"slug": "stay", "kind": "daily", "domain_size": 3, "scale": HOURS}
PEOPLE = np.arange(1, 13, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)

# Recomputed by hand from the layout of the block: purposes 12 and 3.
GOLDEN_CUTS = [1, 2, 0, 0, 1, 2, 2, 2, 0, 0, 0, 2]
GOLDEN_BELOW = [3, 4, 0, 1, 3, 4, 4, 4, 0, 1, 0, 4]
GOLDEN_ABOVE = [3, 5, 1, 1, 2, 5, 5, 5, 1, 0, 1, 5]


def number_plan(**settings: Any) -> ldp.PlanSpec:
    change = {
        key: settings.pop(key) for key in ("kind", "max_values", "scale", "domain_size") & settings.keys()
    }
    return built(NUMBER | change, **settings)


def laws(channel: Any, levels: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
    """Probability of all reports of a person with these levels on consecutive days, by memo and cut."""
    found: dict[tuple[int, ...], Fraction] = {}
    for cut, share in enumerate(channel.shares):
        bits = [int(level > cut) for level in levels]
        for memo in product((0, 1), repeat=2):  # the answers below and above the cut, drawn once each
            chance = Fraction(share, WORD)
            for bit in set(bits):
                chance *= channel.p if memo[bit] == bit else channel.q
            if len(set(bits)) == 1 and memo[1 - bits[0]]:
                continue  # a memo that is never shown
            sent = tuple(2 * cut + memo[bit] for bit in bits)
            found[sent] = found.get(sent, Fraction(0)) + chance
    return found


@pytest.mark.parametrize("days", [1, 2, 5])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_certificate_is_the_loss_of_two_answers_on_any_number_of_days(days: int, epsilon: str) -> None:
    plan = number_plan(days=days, epsilon=Decimal(epsilon))
    channel = plan.answer_channel(0)
    series = [*product((0, 3), repeat=days), (1,) * days, (2,) * days]
    found = [laws(channel, each) for each in series]
    assert all(sum(law.values()) == 1 for law in found)
    patterns = [tuple(a == b for a in each for b in each) for each in series]
    ratios = [
        one[sent] / other[sent]
        for (one, pattern), (other, same) in product(zip(found, patterns, strict=True), repeat=2)
        if pattern == same
        for sent in one
    ]
    certificate = ldp.certify(plan)
    assert certificate.epsilon_profile == ldp.epsilon_of(max(ratios))
    assert max(ratios) == channel.ratio ** min(days, 2)
    assert certificate.indicators[0].n_values == min(days, 2)
    assert certificate.nominal_profile == min(days, 2) * Fraction(epsilon) >= certificate.epsilon_profile
    assert ldp.certify(plan, extra_daily_values=3).epsilon_profile <= 2 * Fraction(epsilon)


def test_a_person_who_crosses_the_cut_is_told_from_one_who_does_not() -> None:
    channel = threshold_channel(epsilon=Fraction(1), spacings=HOURS.spacings)
    staying, crossing = laws(channel, (0, 0)), laws(channel, (0, 3))
    assert any(sent not in staying for sent in crossing)


def test_reports_are_the_frozen_ones() -> None:
    plan, prf = number_plan(), ldp.KeyedPrf(bytes(range(16)))
    sanitiser, channel = ldp.Sanitiser(plan, prf), plan.answer_channel(0)
    cuts = choose_cut(PEOPLE, prf=prf, indicator=0, channel=channel)
    by_level = [
        sanitiser.report(0, PEOPLE, np.full(12, level, np.int32))[:, 0].tolist() for level in range(-1, 4)
    ]
    assert cuts.tolist() == GOLDEN_CUTS
    assert by_level[0] == [NO_ANSWER] * 12
    assert by_level[1] == GOLDEN_BELOW
    assert by_level[4] == GOLDEN_ABOVE
    for level, reports in enumerate(by_level[1:]):
        sides = [GOLDEN_ABOVE[i] if level > cut else GOLDEN_BELOW[i] for i, cut in enumerate(cuts)]
        assert reports == sides  # two answers a person, for any number


def test_cuts_are_drawn_in_proportion_to_their_spacing() -> None:
    channel = number_plan().answer_channel(0)
    assert sum(channel.shares) == WORD
    assert [abs(4 * share - WORD * n) <= 8 for share, n in zip(channel.shares, (1, 1, 2), strict=True)]
    people = np.arange(40_000, dtype=np.uint64)
    cuts = choose_cut(people, prf=ldp.KeyedPrf(bytes(16)), indicator=3, channel=channel)
    expected = np.array([10_000, 10_000, 20_000])
    assert ((np.bincount(cuts) - expected) ** 2 / expected).sum() < 14  # chi-square, 2 degrees of freedom


@pytest.mark.parametrize("unit", ["attribute", "profile"])
def test_the_audit_finds_no_more_than_the_certificate(unit) -> None:
    plan = number_plan(days=1 if unit == "attribute" else 4, unit=unit)
    target = plan_target(plan, unit=unit)
    result = attack(target, runs=30_000, confidence=0.99, key=bytes(16))
    assert result.is_within
    assert result.epsilon_lower_bound > 0.8 * float(target.epsilon_certified)


@pytest.mark.parametrize("counts", [(1, 1, 1, 1), (9, 1, 0, 4)])
def test_best_guesses_are_right_as_often_as_by_enumeration(counts: Sequence[int]) -> None:
    channel, prior = number_plan().answer_channel(0), [Fraction(count, sum(counts)) for count in counts]
    codes = range(channel.n_codes)
    of_level = [laws(channel, (level,)) for level in range(4)]
    exact = sum(
        max(b * law.get((y,), Fraction(0)) for b, law in zip(prior, of_level, strict=True)) for y in codes
    )
    found = attacker.guess_success(channel, prior=[float(each) for each in prior])
    assert found == pytest.approx(float(exact), rel=1e-12)
    for known in range(4):
        days = [laws(channel, (known, level)) for level in range(4)]
        sent = set().union(*days)
        known_day = sum(max(law.get(each, Fraction(0)) for law in days) for each in sent) / 4
        assert attacker.known_day_success(channel) == pytest.approx(float(known_day), rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mechanism": "spl-grr"}, "cuts of stay must be absent under spl-grr: use smp"),
        ({"mechanism": "rsfd-grr", "kind": "static"}, "cuts of stay must be absent under rsfd-grr: use smp"),
        ({"domain_size": 4}, "stay must have no parts and domain_size 3"),
        ({"presence_epsilon": Decimal(1), "presence_days": 1}, "absent with the number stay"),
    ],
)
def test_what_cannot_be_kept_is_refused(settings, message) -> None:
    refuses(message, number_plan, error=ldp.PlanError, **settings)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ({"cuts": (60,)}, "cuts must be 2 to 127, got 1"),
        ({"cuts": (60, 60)}, "cuts must rise from above the minimum 0"),
        ({"cuts": (0, 60)}, "cuts must rise from above the minimum 0"),
        ({"cuts": (1, 2.5)}, "must be integers"),
        ({"cuts": (1, 2 * 10**9)}, "must be integers of at most"),
    ],
)
def test_scales_without_order_are_refused(scale, message) -> None:
    refuses(message, Scale, error=ldp.InvalidDomainError, **scale)


def test_json_keeps_the_scale_and_has_none_without_it() -> None:
    plan = built({}, NUMBER)
    written = json.loads(json.dumps(plan.to_json()))
    assert ldp.PlanSpec.from_json(written) == plan
    assert ["scale" in each for each in written["indicators"]] == [False, True]
    assert plan.tally_sizes[1] == 6
    for bad in (3, {"cuts": [1]}, {"cuts": ["a", "b"]}, {"cuts": [1, 2], "other": 1}):
        written["indicators"][1]["scale"] = bad
        refuses("must", ldp.PlanSpec.from_json, written, error=ldp.LdpError)

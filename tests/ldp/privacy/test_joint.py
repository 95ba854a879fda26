"""Joint indicators and numbers: codes and plans, what a person loses by enumeration, and estimates."""

import json
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.codes import NO_ANSWER
from ldp.estimation.unions import union
from ldp.keyed.designs.threshold import choose_cut
from ldp.privacy import attacker
from ldp.privacy.joint import joint_codes, joint_size, part_codes
from ldp.protocols.channels import WORD
from ldp.protocols.numbers.threshold import Scale
from ldp.protocols.projective import ProjectiveChannel
from ldp.protocols.projective_space import is_orthogonal, support_of, value_counts
from tests.ldp.exact import largest_ratios, refuses
from tests.ldp.fakes import differing
from tests.ldp.privacy.test_plans import built

PAIR = {"slug": "pair", "domain_size": 12, "parts": ("i0", "i1")}


def joint_plan(*changes: dict[str, Any], **settings: Any) -> ldp.PlanSpec:
    """Indicators of 2 and 3 values, and their combination; fields of each may be changed."""
    usual = ({"domain_size": 2}, {}, PAIR)
    more = [*changes, {}, {}, {}][:3]
    return built(*[one | change for one, change in zip(usual, more, strict=True)], **settings)


def law_of(channel: Any, value: int) -> list[Fraction]:
    if not isinstance(channel, ProjectiveChannel):
        return [channel.p if y == value else channel.q for y in range(channel.domain_size)]
    inside = channel.p / channel.support_size
    outside = (1 - channel.p) / (channel.n_codes - channel.support_size)
    return [inside if hit else outside for hit in is_orthogonal(value, channel=channel)]


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 4)])
def test_codes_count_combinations_with_no_value_last(sizes: Sequence[int]) -> None:
    values = list(product(*(range(size + 1) for size in sizes)))
    columns = [np.array(column, np.int32) for column in zip(*values, strict=True)]
    assert joint_codes(columns, sizes=sizes).tolist() == list(range(joint_size(sizes)))
    codes = np.arange(joint_size(sizes), dtype=np.int32)
    assert joint_codes(part_codes(codes, sizes=sizes), sizes=sizes).tolist() == codes.tolist()
    for none in (-1, -2, 65535):
        pairs = zip(columns, sizes, strict=True)
        unsaid = [np.where(one == k, none, one).astype(np.int32) for one, k in pairs]
        assert joint_codes(unsaid, sizes=sizes).tolist() == list(range(len(values)))


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        ({}, {"mechanism": "spl-grr"}, "parts of pair must be absent under spl-grr: use smp"),
        ({"parts": ("i0",)}, {}, "parts of pair must be 2 to 3 indicators"),
        ({"parts": ("i0", "i0")}, {}, "parts of pair must be 2 to 3 indicators"),
        ({"parts": ("i0", "other")}, {}, "parts of pair must be indicators without parts, got 'other'"),
        ({"parts": ("i0", "pair")}, {}, "parts of pair must be indicators without parts, got 'pair'"),
        ({"kind": "daily"}, {}, "kind of pair must be static, as of its parts, got 'daily'"),
        ({"domain_size": 6}, {}, "domain_size of pair must be 12, got 6"),
        ({}, {"presence_epsilon": Decimal(1), "presence_days": 1}, "epsilon must be absent with the joint"),
    ],
)
def test_what_cannot_be_combined_is_refused(change, settings, message) -> None:
    refuses(message, joint_plan, {}, {}, change, error=ldp.PlanError, **settings)


def test_a_daily_part_makes_it_daily_and_the_same_parts_make_one_only() -> None:
    refuses("kind of pair must be daily", joint_plan, {}, {"kind": "daily"}, error=ldp.PlanError)
    asked = [{"domain_size": 2}, {}, PAIR, PAIR | {"slug": "again", "parts": ("i1", "i0")}]
    refuses("parts of again must differ from those of pair", built, *asked, error=ldp.PlanError)


def test_json_keeps_parts_and_has_none_without_them() -> None:
    written = json.loads(json.dumps(joint_plan().to_json()))
    assert ldp.PlanSpec.from_json(written) == joint_plan()
    assert ["parts" in each for each in written["indicators"]] == [False, False, True]
    for bad in ("i0", None, ["i0", 1], [["i0"], "i1"], {"i0": 1}):
        written["indicators"][2]["parts"] = bad
        refuses("parts must be a list of texts", ldp.PlanSpec.from_json, written, error=ldp.PlanError)


def test_answers_have_the_better_channel_that_the_tally_has_room_for() -> None:
    assert isinstance(joint_plan().answer_channel(2), ProjectiveChannel)
    assert isinstance(joint_plan({}, {}, {"epsilon": Decimal(4)}).answer_channel(2), ldp.GrrChannel)
    large = ({"domain_size": 40}, {"domain_size": 40}, {"domain_size": 41 * 41})
    plan = joint_plan(*large, days=62)
    assert plan.tally_sizes[2] == plan.answer_channel(2).n_codes <= 8_000_000 // 63**2


@pytest.mark.parametrize("epsilon", ["0.8", "4"])
def test_certificate_is_the_worst_of_all_reports(epsilon: str) -> None:
    plan = joint_plan({"epsilon": Decimal("0.5")}, {"epsilon": Decimal(1)}, {"epsilon": Decimal(epsilon)})
    laws = {}
    for x, y in product(range(2), range(3)):
        code = joint_codes([np.array([x], np.int32), np.array([y], np.int32)], sizes=(2, 3)).item()
        values = zip(map(plan.answer_channel, range(3)), (x, y, code), strict=True)
        chances = [chance / 3 for channel, value in values for chance in law_of(channel, value)]
        laws[x, y] = dict(enumerate(chances))
    found = largest_ratios(laws, alike=differing)
    certificate = ldp.certify(plan)
    by_part = [entry.epsilon_attribute for entry in certificate.indicators]
    assert by_part[:2] == [ldp.epsilon_of(found[0,]), ldp.epsilon_of(found[1,])]
    assert by_part[2] == certificate.indicators[2].epsilon
    assert certificate.epsilon_profile == ldp.epsilon_of(max(found.values()))
    assert certificate.epsilon_attribute == max(by_part) <= certificate.nominal_attribute


@pytest.mark.parametrize("k", [3, 7, 12])
def test_a_known_day_of_a_combination_tells_as_much_as_by_enumeration(k: int) -> None:
    channel = ldp.projective_channel(epsilon=Fraction(1), domain_size=k)
    laws, right = [law_of(channel, value) for value in range(k)], Fraction(0)
    for known, first in enumerate(laws):
        others = [law for value, law in enumerate(laws) if value != known]
        for code, chance in enumerate(first):
            likeliest = [max(law[second] for law in others) for second in range(channel.n_codes)]
            likeliest[code] = max(likeliest[code], Fraction(1))  # the same answer stays with the same value
            right += chance * sum(likeliest) / k**2
    assert attacker.known_day_success(channel) == pytest.approx(float(right), rel=1e-12)


DAILY_PAIR = ({"epsilon": Decimal("0.5")}, {"kind": "daily", "epsilon": Decimal(1)}, {"kind": "daily"})


@pytest.mark.parametrize("epsilon", ["0.8", "1.7"])
def test_certificate_of_two_days_is_the_worst_of_all_reports(epsilon: str) -> None:
    static, daily, pair = DAILY_PAIR
    plan = joint_plan(static, daily, pair | {"epsilon": Decimal(epsilon)}, days=2)
    x_channel, y_channel, xy_channel = map(plan.answer_channel, range(3))
    people = [(x, y1, y2) for x in range(2) for y1, y2 in permutations(range(3), 2)]
    laws = {}
    for x, y1, y2 in people:
        codes = joint_codes([np.array([x, x], np.int32), np.array([y1, y2], np.int32)], sizes=(2, 3)).tolist()
        chances = [
            *law_of(x_channel, x),
            *(a * b for a, b in product(law_of(y_channel, y1), law_of(y_channel, y2))),
            *(a * b for a, b in product(*(law_of(xy_channel, code) for code in codes))),
        ]
        laws[x, y1, y2] = dict(enumerate(chances))
    found = largest_ratios(laws, alike=differing)
    certificate = ldp.certify(plan)
    by_part = [entry.epsilon_attribute for entry in certificate.indicators]
    assert by_part[:2] == [ldp.epsilon_of(found[0,]), ldp.epsilon_of(max(found[1,], found[2,]))]
    assert certificate.epsilon_profile == ldp.epsilon_of(max(found.values()))
    assert certificate.epsilon_attribute == max(by_part) <= certificate.nominal_attribute
    assert certificate.epsilon_profile <= certificate.nominal_profile


def test_tallies_by_value_are_those_of_the_windows(monkeypatch) -> None:
    monkeypatch.setattr("ldp.protocols.projective_space.BATCH", 1500)  # several cells, not all
    channel, rng = ldp.projective_channel(epsilon=Fraction(1), domain_size=40), np.random.default_rng(5)
    codes = rng.poisson(3, (channel.n_codes, 5, 5)) * np.triu(np.ones((5, 5), np.int64), 1)
    counts = value_counts(codes, channel=channel)
    for first, last in ((1, 1), (2, 3), (1, 4)):
        points = union(codes, first_day=first, last_day=last)
        expected = [points[is_orthogonal(value, channel=channel)].sum() for value in range(40)]
        assert union(counts, first_day=first, last_day=last).tolist() == expected
        assert support_of(points, channel=channel).tolist() == expected
    assert value_counts(codes, channel=ldp.grr_channel(epsilon=Fraction(1), domain_size=2)) is codes


HOURS = Scale(cuts=(60, 120, 240), unit="min")
NUMBER = {"slug": "stay", "kind": "daily", "domain_size": 3, "scale": HOURS}
PEOPLE = np.arange(1, 13, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)

# Recomputed by hand from the layout of the block: purposes 12 and 3.
GOLDEN_CUTS = [1, 2, 0, 0, 1, 2, 2, 2, 0, 0, 0, 2]
GOLDEN_BELOW = [3, 4, 0, 1, 3, 4, 4, 4, 0, 1, 0, 4]
GOLDEN_ABOVE = [3, 5, 1, 1, 2, 5, 5, 5, 1, 0, 1, 5]


def number_plan(**settings: Any) -> ldp.PlanSpec:
    own = ("kind", "max_values", "scale", "domain_size") & settings.keys()
    change = {key: settings.pop(key) for key in own}
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
    pairs = product(zip(found, patterns, strict=True), repeat=2)
    same = [(one, other) for (one, pattern), (other, like) in pairs if pattern == like]
    ratios = [one[sent] / other[sent] for one, other in same for sent in one]
    certificate = ldp.certify(plan)
    assert certificate.epsilon_profile == ldp.epsilon_of(max(ratios))
    assert max(ratios) == channel.ratio ** min(days, 2)
    assert certificate.indicators[0].n_values == min(days, 2)
    assert certificate.nominal_profile == min(days, 2) * Fraction(epsilon) >= certificate.epsilon_profile
    assert ldp.certify(plan, extra_daily_values=3).epsilon_profile <= 2 * Fraction(epsilon)


def test_reports_are_the_frozen_ones() -> None:
    plan, prf = number_plan(), ldp.KeyedPrf(bytes(range(16)))
    sanitiser, channel = ldp.Sanitiser(plan, prf), plan.answer_channel(0)
    cuts = choose_cut(PEOPLE, prf=prf, indicator=0, channel=channel)
    levels = [np.full(12, level, np.int32) for level in range(-1, 4)]
    by_level = [sanitiser.report(0, PEOPLE, each)[:, 0].tolist() for each in levels]
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


@pytest.mark.parametrize("counts", [(1, 1, 1, 1), (9, 1, 0, 4)])
def test_best_guesses_are_right_as_often_as_by_enumeration(counts: Sequence[int]) -> None:
    channel, prior = number_plan().answer_channel(0), [Fraction(count, sum(counts)) for count in counts]
    codes = range(channel.n_codes)
    of_level = [laws(channel, (level,)) for level in range(4)]
    chances = [[law.get((y,), Fraction(0)) for law in of_level] for y in codes]
    exact = sum(max(b * chance for b, chance in zip(prior, row, strict=True)) for row in chances)
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
        ({"cuts": (1, True)}, "must be integers"),
        ({"cuts": (1, 2 * 10**9)}, "must be integers of at most"),
        ({"cuts": (60, 120), "unit": 5}, "unit"),
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

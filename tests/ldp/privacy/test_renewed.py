"""Values that last, reported again each day: what reports lose, their bits, estimates, and refused plans."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.codes import NO_ANSWER, WORD_BITS
from ldp.estimation.joint.linear import frequency_covariances
from ldp.estimation.tallies import Delta
from ldp.estimation.windows import IndicatorTallies, Window, part_of, window_difference
from ldp.keyed.designs import question
from ldp.keyed.tallying import tally_reports, tally_visitors
from ldp.privacy import attacker
from ldp.privacy.plans import PlanSpec
from ldp.protocols.adaptive import adp_channel
from ldp.protocols.repeated.hashed import hash_channel
from ldp.protocols.repeated.renewed import RenewedChannel, renewed_channel
from ldp.protocols.two_round import TwoRoundGrr
from ldp.protocols.two_round_unary import TwoRoundUnary
from tests.ldp.exact import digest, reference_grr, reference_numbers, refuses
from tests.ldp.privacy.test_plans import built
from tests.ldp.privacy.test_repeated import groups

KEY = bytes(range(16))
PEOPLE = np.arange(1, 41, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
FEW, MANY = 3, 70  # values: L-GRR and L-OSUE at epsilon 1 of a report
Law = dict[Any, Fraction]

renews = partial(built, mechanism="smp-allomfree")


def channel_of(k: int, *, epsilon: str = "2", first: str = "1") -> RenewedChannel:
    return renewed_channel(epsilon=Fraction(epsilon), first=Fraction(first), domain_size=k)


def bits_of(k: int, *values: int) -> tuple[int, ...]:
    return tuple(int(each in values) for each in range(k))


def round_law(channel: RenewedChannel, of: Any, *, second: bool) -> Law:
    """Answers of one round to a value, or to the answer of the first; of unary ones the first two places.

    Places are independent, and those of other values have one law for either value: they cancel in a ratio.
    """
    rounds: Any = channel.second if second else channel.first
    if isinstance(channel, TwoRoundGrr):
        return {each: rounds.p if each == of else rounds.q for each in range(channel.domain_size)}
    chances = [rounds.p if bit else rounds.q for bit in (of if second else bits_of(2, of))]
    return {
        sent: prod((p if bit else 1 - p for p, bit in zip(chances, sent, strict=True)), start=Fraction(1))
        for sent in product((0, 1), repeat=2)
    }


@cache
def law_of_days(channel: RenewedChannel, value: int, days: int) -> Law:
    """Probability of the reports of some days, all on one kept answer."""
    found = Counter[Any]()
    for kept, chance in round_law(channel, value, second=False).items():
        reports = round_law(channel, kept, second=True)
        for sent in product(reports, repeat=days):
            found[sent] += chance * prod((reports[each] for each in sent), start=Fraction(1))
    return found


@pytest.mark.parametrize(
    ("k", "days", "epsilon", "first", "kind"),
    [
        (2, 4, "0.5", None, TwoRoundGrr),
        (3, 3, "2", "0.3", TwoRoundGrr),
        (4, 3, "6", "2", TwoRoundGrr),
        (6, 3, "0.5", None, TwoRoundUnary),
    ],
)
def test_certificate_is_the_loss_of_the_reports_of_all_days(k, days, epsilon, first, kind) -> None:
    typed = {"epsilon": Decimal(epsilon), "epsilon_first": first and Decimal(first)}
    plan = renews({"domain_size": k}, days=days, **typed)
    channel: Any = plan.answer_channel(0)
    assert isinstance(channel, kind)
    worst = []
    for n in (1, days):
        one, other = (law_of_days(channel, value, n) for value in (0, 1))
        assert sum(one.values()) == sum(other.values()) == 1
        worst.append(max(max(one[sent] / p, p / one[sent]) for sent, p in other.items()))
    certificate = ldp.certify(plan)
    of_first = Decimal(first or epsilon) / (1 if first else 2)
    assert certificate.indicators[0].ratio == worst[0]
    assert certificate.indicators[0].epsilon == ldp.epsilon_of(worst[0]) <= of_first
    assert certificate.indicators[0].epsilon > of_first - Decimal("1e-15")
    assert certificate.indicators[0].n_values == 1
    of_all = ldp.epsilon_of(worst[1])
    assert certificate.epsilon_profile == certificate.epsilon_attribute == of_all <= Decimal(epsilon)
    assert certificate.nominal_profile == certificate.nominal_attribute == Fraction(epsilon)


@pytest.mark.parametrize("k", [FEW, MANY])
def test_no_number_of_days_loses_more_than_the_kept_answer(k: int) -> None:
    plans = [renews({"domain_size": k}, days=days, epsilon=Decimal(2)) for days in (1, 2, 7, 30, 62)]
    losses = [ldp.certify(plan).epsilon_profile for plan in plans]
    assert losses == sorted(losses)
    assert losses[0] == plans[0].answer_channel(0).epsilon <= 1
    assert Decimal("1.999") < losses[-1] <= 2
    # A day that is undone and sent again repeats its report.
    assert ldp.certify(plans[2], extra_daily_values=3) == ldp.certify(plans[2])


def test_one_report_is_that_of_the_better_oracle_with_the_epsilon_of_one() -> None:
    for k in (2, 9, 10, 11, 200):
        channel, one = channel_of(k), adp_channel(epsilon=Fraction(1), domain_size=k)
        assert isinstance(channel, TwoRoundGrr) == isinstance(one, ldp.GrrChannel) == (k <= 10)
        for name in ("p", "q"):
            assert float(getattr(channel, name)) == pytest.approx(float(getattr(one, name)), rel=1e-12)
        prior = np.arange(1, k + 1) / (k * (k + 1) / 2)
        best = attacker.guess_success(channel, prior=prior)
        assert best == pytest.approx(attacker.guess_success(one, prior=prior), rel=1e-9)
        sizes = {"n_reports": 900, "n_population": 2500}
        spread = frequency_covariances(prior, channel=channel, **sizes)
        expected = frequency_covariances(prior, channel=one, **sizes)
        assert spread == pytest.approx(expected, rel=1e-9, abs=1e-15)


def written_out(channel: RenewedChannel, value: int, *, day: int, **at: int) -> list[int]:
    """The words of a report, from keyed blocks: the noise of a day has value 0, of any answer."""
    first, second = at | {"purpose": 3, "value": value}, at | {"purpose": 5, "value": 0}
    if isinstance(channel, TwoRoundGrr):
        kept = reference_grr(KEY, value, channel=channel.first, **first)
        return [reference_grr(KEY, kept, channel=channel.second, counter=day << 10, **second)]
    k, bits = channel.domain_size, []
    for place in range(k):
        group, lane = divmod(place, 64)
        size = min(64, k - 64 * group)
        limit = channel.first.threshold_p if place == value else channel.first.threshold_q
        kept = reference_numbers(KEY, size, counter=32 * group, **first)[lane] < limit
        group, lane = divmod(place, 60)
        size, limit = min(60, k - 60 * group), channel.second.threshold_p
        noise = reference_numbers(KEY, size, counter=(day << 10) + 32 * group, **second)[lane]
        bits.append(noise < limit if kept else noise < 2**64 - limit)
    starts = range(0, k, WORD_BITS)
    return [sum(bit << i for i, bit in enumerate(bits[at : at + WORD_BITS])) for at in starts]


@pytest.mark.parametrize(
    ("k", "people", "values", "frozen"),
    [(FEW, 40, (-1, 0, 2), "b1ed73fa828afaf4"), (MANY, 3, (-1, 0, 66), "b5a175dbea82f759")],
)
def test_reports_are_the_frozen_ones_and_follow_from_the_kept_answers(k, people, values, frozen) -> None:
    plan = renews({"domain_size": k}, version=2, epsilon=Decimal(2))
    channel: Any = plan.answer_channel(0)
    sanitiser, sent, some = ldp.Sanitiser(plan, ldp.KeyedPrf(KEY)), [], PEOPLE[:people]
    for value, day in product(values, (1, 62)):
        column = np.full(people, value, np.int32)
        words = sanitiser.report(0, some, column, day=day)
        kept = sanitiser.kept(0, some, column)
        assert np.array_equal(sanitiser.renewed(0, some, kept, day=day), words)
        for row, person in enumerate(some.tolist()):
            at = {"pseudonym": person, "indicator": 0, "plan_version": 2}
            expected = written_out(channel, value, day=day, **at) if value >= 0 else [NO_ANSWER]
            assert set(words[row]) == {NO_ANSWER} if value < 0 else words[row].tolist() == expected
        sent.append(words)
    assert digest(*sent) == frozen


PAIR = ({}, {}, {"domain_size": 16, "parts": ("i0", "i1")})


def test_combinations_of_values_that_last_are_hashed_and_renewed() -> None:
    """Reports and certificate are those of the cells; the hash of a person stays, and is the best one."""
    plan = renews(*PAIR, version=2, days=3, epsilon=Decimal(4), epsilon_first=Decimal("1.3"))
    channel: Any = plan.answer_channel(2)
    assert channel == hash_channel(epsilon=Fraction(4), first=Fraction("1.3"), domain_size=16)
    rounds, shapes = channel.answer, [plan.is_renewed(2), plan.is_hashed(2), plan.reports_per_person(2)]
    assert (shapes, rounds.domain_size) == ([True, False, 3], 5)
    one, other = law_of_days(rounds, 0, 3), law_of_days(rounds, 1, 3)
    worst = max(one[sent] / p for sent, p in other.items())
    certificate = ldp.certify(plan)
    assert certificate.indicators[2].epsilon_profile == ldp.epsilon_of(worst) <= 4
    assert certificate.indicators[2].epsilon <= Decimal("1.3") < certificate.indicators[2].epsilon_profile
    # Everyone who answers the combination shows both parts.
    assert certificate.indicators[0].epsilon_attribute >= ldp.epsilon_of(worst)
    prf, cells, values = ldp.KeyedPrf(KEY), groups(channel), np.arange(40, dtype=np.int32) % 16
    values[7] = -1
    sanitiser, asked = ldp.Sanitiser(plan, prf), {"prf": prf, "indicator": 2, "channel": channel}
    hashes = question.choose_question(PEOPLE, **asked).tolist()
    kept = sanitiser.kept(2, PEOPLE, values)
    for day in (1, 3):
        sent = sanitiser.report(2, PEOPLE, values, day=day)
        assert np.array_equal(sanitiser.renewed(2, PEOPLE, kept, day=day), sent)
        for row, (person, own) in enumerate(zip(PEOPLE.tolist(), hashes, strict=True)):
            if values[row] < 0:
                assert sent[row] == NO_ANSWER
                continue
            at = {"pseudonym": person, "indicator": 2, "plan_version": 2}
            true = int(cells[own, values[row]])
            first = reference_grr(KEY, true, channel=rounds.first, purpose=3, value=5 * own + true, **at)
            second = at | {"purpose": 5, "value": 0, "counter": day << 10}
            assert sent[row] == 5 * own + reference_grr(KEY, first, channel=rounds.second, **second)


def test_reports_of_two_days_are_independent_but_for_the_kept_answer() -> None:
    """Pairs of reports have the chances that the law says, in standard errors; so do their kept answers."""
    n, channel = 60_000, channel_of(FEW)
    plan = renews({"domain_size": FEW}, epsilon=Decimal(2))
    sanitiser, people = ldp.Sanitiser(plan, ldp.KeyedPrf(KEY)), np.arange(n, dtype=np.uint64)
    days = [sanitiser.report(0, people, np.ones(n, np.int32), day=day)[:, 0] for day in (3, 4)]
    for sent, chance in law_of_days(channel, 1, 2).items():
        found = np.count_nonzero((days[0] == sent[0]) & (days[1] == sent[1]))
        assert abs(found - n * chance) < 5 * (n * chance * (1 - chance)) ** 0.5
    assert law_of_days(channel, 1, 2)[1, 1] > law_of_days(channel, 1, 1)[(1,)] ** 2


def counted(plan: PlanSpec, days: np.ndarray, values: np.ndarray, *, key: int) -> IndicatorTallies:
    """Gap tallies of people whose reports of each day follow from kept answers."""
    sanitiser, people = ldp.Sanitiser(plan, ldp.KeyedPrf(key.to_bytes(16))), np.arange(1, days.size + 1)
    some, delta = people.astype(np.uint64), Delta.zero(plan)
    kept = sanitiser.kept(0, some, values)
    words = np.stack([sanitiser.renewed(0, some, kept, day=day + 1) for day in range(plan.days)], axis=1)
    tally_reports(days, words, delta, index=0, is_unary=plan.is_unary(0), sign=1)
    tally_visitors(days, delta.visitors, sign=1)
    return IndicatorTallies(
        counts=delta.counts[0],
        n_reports=delta.n_reports[0],
        visitors=delta.visitors,
        kind="daily",
        channel=plan.channel(0),
    )


@pytest.mark.parametrize("k", [FEW, 20])
def test_windows_are_unbiased_and_as_exact_as_they_say(k: int) -> None:
    """Over 200 keys, in standard errors: each counts with the report of the first day in a window."""
    plan, runs, n = renews({"domain_size": k}, days=5, epsilon=Decimal(2)), 200, 2000
    assert plan.is_unary(0) == (k == 20)
    days = np.random.default_rng(5).integers(1, 32, n).astype(np.uint64)
    values = (np.arange(n) ** 2 % 97 % k).astype(np.int32)
    windows = Window(1, 5), Window(2, 3), Window(4, 4)
    masks = [sum(1 << (day - 1) for day in range(each.first_day, each.last_day + 1)) for each in windows]
    truth = [np.bincount(values[days & np.uint64(mask) != 0], minlength=k) for mask in masks]
    scores, apart = [[] for _ in windows], []
    for run in range(runs):
        tallies = counted(plan, days, values, key=run)
        for of_window, window, people in zip(scores, windows, truth, strict=True):
            part, size = part_of(tallies, window), int(people.sum())
            assert part.n_reports == part.n_visitors == size
            asked = {"n_reports": size, "n_population": size, "channel": tallies.channel}
            found = ldp.pure_frequencies(part.counts, **asked).frequency - people / size
            of_window.append(found / ldp.pure_variance(people / size, **asked) ** 0.5)
        both = window_difference(tallies, first=windows[1], second=windows[2], of="frequency")
        change = truth[2] / truth[2].sum() - truth[1] / truth[1].sum()
        apart.append((both.value - change) / both.std_error)
        assert not both.is_exact
    for each in (column for of_window in scores for column in np.array(of_window).T):
        assert abs(each.mean()) * runs**0.5 < 5
        assert abs((each**2).mean() - 1) < 5 * (2 / runs) ** 0.5
    # The error of a difference is an upper bound: people of both windows share a kept answer.
    assert (np.mean(np.array(apart) ** 2, axis=0) < 1 + 5 * (2 / runs) ** 0.5).all()


def test_daily_categories_are_hashed_as_under_loloha_and_moves_have_new_noise_anyway() -> None:
    daily = {"kind": "daily", "domain_size": 9}
    plan = renews({}, daily, {"kind": "daily", "domain_size": 40, "parts": ("i0", "i1")}, epsilon=Decimal(2))
    other = built({}, daily, mechanism="smp-loloha", epsilon=Decimal(2))
    assert [plan.is_renewed(index) for index in range(3)] == [True, False, False]
    assert [plan.is_hashed(index) for index in range(3)] == [False, True, True]
    assert plan.answer_channel(1) == other.answer_channel(1)
    entries = ldp.certify(plan).indicators
    assert entries[1] == ldp.certify(other).indicators[1]
    # The value that lasts is in the combinations of all days, too.
    assert entries[0].epsilon_attribute > 2 >= entries[0].epsilon_profile


def test_a_plan_is_read_as_it_was_written_and_others_have_no_new_key() -> None:
    plan = renews({}, epsilon_first=Decimal("0.25"), hash_cells="optimal")
    assert plan.to_json()["first"] == {"epsilon": "1/4", "cells": "optimal"}
    assert PlanSpec.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    plain = built({}).to_json()
    assert plain.keys() == {"mechanism", "unit", "version", "days", "indicators"}
    assert renews({}).to_json() == plain | {
        "mechanism": "smp-allomfree", "first": {"epsilon": None, "cells": "two"},
    }  # fmt: skip


NUMBER = {"domain_size": 2, "scale": ldp.Scale(cuts=(1, 2), minimum=0, unit="min")}
DAILY = {"kind": "daily"}


@pytest.mark.parametrize(
    ("indicators", "settings", "message"),
    [
        ([{}, NUMBER], {}, "cuts of i1 must be absent under smp-allomfree: an answer about a number is kept"),
        ([{}, NUMBER | DAILY], {}, "cuts of i1 must be absent under smp-allomfree"),
        ([{}], {"presence_epsilon": Decimal(1), "presence_days": 1}, "presence_epsilon must be absent under"),
        ([{}], {"epsilon_first": Decimal(1)}, "epsilon_first must be below the epsilon of i0, 1, got 1"),
        ([{"domain_size": 1921}], {}, "categories of i0: domain_size must be <= 1920 for a bit per value"),
        ([{"domain_size": 2016}], {"days": 62}, "of i0: domain_size must be <= 2015 to be tallied, got 2016"),
        ([{}], {"mechanism": "smp-adp", "epsilon_first": Decimal("0.5")}, "use smp-loloha or smp-allomfree"),
    ],
)  # fmt: skip
def test_what_would_link_reports_is_refused(indicators, settings, message) -> None:
    refuses(message, renews, *indicators, **settings)


def test_what_cannot_be_is_refused() -> None:
    refuses("first of a smp-allomfree plan must be present", replace, renews({}), first=None)
    many = renews({"domain_size": 1921}, epsilon=Decimal(20), epsilon_first=Decimal(10))
    assert isinstance(many.answer_channel(0), TwoRoundGrr)
    sanitiser = ldp.Sanitiser(renews({}, DAILY), ldp.KeyedPrf(KEY))
    kept = sanitiser.kept(0, PEOPLE, np.zeros(40, np.int32))
    refuses(r"day must be in \[0, 63\], got 64", sanitiser.renewed, 0, PEOPLE, kept, day=64)
    refuses("reports on i1 must be renewed each day", sanitiser.renewed, 1, PEOPLE, kept, day=1)
    refuses("reports on i1 must be renewed", sanitiser.kept, 1, PEOPLE, np.zeros(40, np.int32))
    refuses("answer needs a mechanism", sanitiser.answer, 0, PEOPLE, np.zeros(40, np.int32))

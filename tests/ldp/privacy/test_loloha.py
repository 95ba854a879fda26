"""Hashed daily values in plans: one report, all reports of a person by enumeration, and estimates."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.codes import NO_ANSWER
from ldp.estimation.windows import least_noise
from ldp.keyed.designs.question import choose_question
from ldp.keyed.sanitiser import Sanitiser
from ldp.privacy import attacker
from ldp.privacy.plans import PlanSpec
from ldp.protocols.channels import noise_at_zero
from ldp.protocols.projective import PRIMES
from ldp.protocols.repeated.hashed import hash_channel
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.two_round import TwoRoundGrr
from ldp.research.audit import attack
from ldp.research.audit_plans import plan_target
from tests.ldp.exact import digest, reference_below, reference_grr, refuses
from tests.ldp.privacy.test_plans import built
from tests.ldp.privacy.test_question import groups, law

KEY = bytes(range(16))
PEOPLE = np.arange(1, 41, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
LOLOHA: dict[str, Any] = {"mechanism": "smp-loloha"}


def channel_of(k: int, *, epsilon: str = "2", first: str = "1", cells: int | None = 2) -> QuestionChannel:
    return hash_channel(epsilon=Fraction(epsilon), first=Fraction(first), domain_size=k, cells=cells)


def rounds_of(channel: QuestionChannel) -> TwoRoundGrr:
    assert isinstance(channel.answer, TwoRoundGrr)
    return channel.answer


def plan_of(k: int = 4, **settings: Any) -> PlanSpec:
    return built({"kind": "daily", "domain_size": k}, **LOLOHA | settings)


@pytest.mark.parametrize(("k", "cells"), [(2, 2), (7, 2), (10, 3), (11, 5), (6, 7), (37, None)])
@pytest.mark.parametrize(("epsilon", "first"), [("1", "0.4"), ("6", "3")])
def test_one_report_is_a_pure_protocol_with_all_of_epsilon_first(k, cells, epsilon: str, first: str) -> None:
    channel = channel_of(k, epsilon=epsilon, first=first, cells=cells)
    rounds = rounds_of(channel)
    laws = [law(channel, value) for value in range(k)]
    assert all(sum(each) == 1 for each in laws)
    worst = max(a / b for one, two in product(laws, repeat=2) for a, b in zip(one, two, strict=True))
    assert worst == channel.ratio
    assert Decimal(first) - Decimal("1e-15") < channel.epsilon <= Decimal(first)
    stronger = replace(rounds.second, threshold=rounds.second.threshold + 1)
    assert replace(rounds, second=stronger).epsilon > Decimal(first)
    assert rounds.first == ldp.grr_channel(epsilon=Fraction(epsilon), domain_size=channel.groups)


@pytest.mark.parametrize(("k", "first"), [(3, "0.5"), (37, "0.5"), (37, "1.6"), (37, "2.5"), (1000, "4")])
def test_the_best_number_of_cells_has_the_least_variance(k: int, first: str) -> None:
    asked = {"epsilon": Fraction(6), "first": Fraction(first), "domain_size": k, "max_codes": 5000}
    found = []
    for cells in PRIMES:
        try:
            found.append(hash_channel(**asked, cells=cells))
        except ldp.InvalidDomainError:
            continue
    best = hash_channel(**asked)
    assert noise_at_zero(best) == min(map(noise_at_zero, found))
    assert {each.groups for each in found} > {2}
    assert best.n_codes <= 5000


@cache
def laws_of_days(channel: QuestionChannel, series: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """Probability of the noisy cells on consecutive days, from the true ones."""
    rounds, found = rounds_of(channel), Counter[tuple[int, ...]]()
    shown = sorted(set(series))
    for kept in product(range(channel.groups), repeat=len(shown)):
        memo, chance = dict(zip(shown, kept, strict=True)), Fraction(1)
        for true, answer in memo.items():
            chance *= rounds.first.p if true == answer else rounds.first.q
        for sent in product(range(channel.groups), repeat=len(series)):
            fresh = chance
            for true, cell in zip(series, sent, strict=True):
                fresh *= rounds.second.p if memo[true] == cell else rounds.second.q
            found[sent] += fresh
    return found


@pytest.mark.parametrize(
    ("k", "days", "settings"),
    [
        (3, 3, {"epsilon": Decimal("0.5")}),
        (4, 5, {"epsilon": Decimal(2), "epsilon_first": Decimal("0.3")}),
        (3, 3, {"epsilon": Decimal(4), "epsilon_first": Decimal("1.3"), "hash_cells": "optimal"}),
        (9, 3, {"epsilon": Decimal(4), "epsilon_first": Decimal("1.1"), "hash_cells": "optimal"}),
    ],
)
def test_certificate_is_the_loss_of_all_reports_by_enumeration(k: int, days: int, settings) -> None:
    """The worst of all pairs of series whose cells repeat and change on the same days, under any hash."""
    plan = plan_of(k, days=days, **settings)
    channel = plan.answer_channel(0)
    assert isinstance(channel, QuestionChannel)
    assert channel.groups == (3 if "hash_cells" in settings else 2)
    of_all, of_one = [], []
    series = {
        tuple(row[value] for value in values)
        for row in {tuple(row) for row in groups(channel).tolist()}
        for values in product(range(k), repeat=days)
    }
    laws = {each: laws_of_days(channel, each) for each in series}
    assert all(sum(each.values()) == 1 for each in laws.values())
    for one, other in product(series, repeat=2):
        if [[a == b for b in one] for a in one] == [[a == b for b in other] for a in other]:
            ratios = [laws[one][sent] / laws[other][sent] for sent in laws[one]]
            of_all += ratios
            of_one += ratios if len(set(one)) == 1 else []
    certificate = ldp.certify(plan)
    assert certificate.epsilon_profile == ldp.epsilon_of(max(of_all))
    assert certificate.epsilon_attribute == ldp.epsilon_of(max(of_one))
    assert certificate.indicators[0].n_values == min(days, channel.groups)
    assert certificate.indicators[0].epsilon == channel.epsilon < certificate.epsilon_attribute
    assert certificate.nominal_profile == min(days, channel.groups) * Fraction(settings["epsilon"])


@pytest.mark.parametrize("cells", ["two", "optimal"])
def test_no_number_of_days_loses_more_than_all_cells_do(cells: str) -> None:
    settings = {"epsilon": Decimal(3), "epsilon_first": Decimal("1.5"), "hash_cells": cells}
    plans = [plan_of(37, days=days, **settings) for days in (1, 2, 7, 30, 62)]
    found = [ldp.certify(plan) for plan in plans]
    losses = [each.epsilon_profile for each in found]
    assert losses == sorted(losses)
    assert found[0].epsilon_profile == found[0].epsilon_attribute == plans[0].answer_channel(0).epsilon
    n_cells = {"two": 2, "optimal": 7}[cells]
    assert 3 * n_cells - Decimal("0.001") < losses[-1] <= found[-1].nominal_profile == 3 * n_cells
    again = ldp.certify(plans[2], extra_daily_values=3)
    assert again.epsilon_profile == ldp.certify(plan_of(37, days=10, **settings)).epsilon_profile > losses[2]


def test_no_more_cells_count_than_there_are_values() -> None:
    """One of five cells stays empty if there are four values."""
    plan = plan_of(4, days=7, epsilon=Decimal(6), epsilon_first=Decimal(3), hash_cells="optimal")
    channel = plan.answer_channel(0)
    assert isinstance(channel, QuestionChannel) and channel.groups == 5
    four = ldp.epsilon_of_study(rounds_of(channel), reports=7, n_values=4)
    certificate = ldp.certify(plan)
    assert (certificate.indicators[0].n_values, certificate.epsilon_profile) == (4, four)
    assert certificate.nominal_profile == 4 * 6


@pytest.mark.parametrize(("k", "cells"), [(10, 2), (10, 3)])
def test_reports_are_the_frozen_ones(k: int, cells: int) -> None:
    plan = plan_of(k, version=2)
    channel, prf = channel_of(k, cells=cells), ldp.KeyedPrf(KEY)
    if cells == 2:
        channel = plan.answer_channel(0)
    rounds = rounds_of(channel)
    asked = choose_question(PEOPLE, prf=prf, indicator=0, channel=channel)
    sent = []
    for value, day in product((-1, 0, 4, 9), (1, 62)):
        fields = {"pseudonyms": PEOPLE, "prf": prf, "indicator": 0, "plan_version": 2}
        values = np.full(40, value, np.int32)
        codes = ldp.keyed.designs.question.answers(values, channel=channel, day=day, **fields)
        if cells == 2:
            assert Sanitiser(plan, prf).report(0, PEOPLE, values, day=day)[:, 0].tolist() == codes.tolist()
        sent.append(codes)
        for row, person in enumerate(PEOPLE.tolist()):
            at = {"pseudonym": person, "indicator": 0}
            own = reference_below(KEY, channel.n_questions, **at, purpose=17, plan_version=0, value=0)
            assert asked[row] == own
            if value < 0:
                assert codes[row] == NO_ANSWER
                continue
            true = int(groups(channel)[own, value])
            block = at | {"plan_version": 2, "value": true}
            kept = reference_grr(KEY, true, channel=rounds.first, purpose=3, **block)
            noisy = reference_grr(KEY, kept, channel=rounds.second, purpose=5, counter=day << 10, **block)
            assert codes[row] == cells * own + noisy
    assert digest(*sent) == {2: "b297f7942b7b9e1a", 3: "347e6da883d77364"}[cells]


@pytest.mark.parametrize(("k", "cells"), [(5, 2), (16, 2), (11, 3)])
def test_shares_are_unbiased_and_as_exact_as_they_say(k: int, cells: int) -> None:
    """Over the noise and the sample of 200 keys, in standard errors; each key on another day."""
    n, runs, channel = 1000, 200, channel_of(k, cells=cells)
    everyone = (np.arange(2 * n) ** 2 % 97 % k).astype(np.int32)
    truth = np.bincount(everyone, minlength=k) / everyone.size
    exact = ldp.pure_variance(truth, n_reports=n, n_population=2 * n, channel=channel)
    scores = []
    for run in range(runs):
        values = np.random.default_rng(run).permutation(everyone)[:n]
        codes = ldp.keyed.designs.question.answers(
            values,
            pseudonyms=np.arange(n, dtype=np.uint64),
            prf=ldp.KeyedPrf(run.to_bytes(16)),
            channel=channel,
            day=1 + run % 62,
            indicator=0,
            plan_version=1,
        )
        counts = ldp.count_support(codes, channel=channel)
        found = ldp.pure_frequencies(counts, n_reports=n, n_population=2 * n, channel=channel)
        scores.append((found.frequency - truth) / exact**0.5)
    for each in np.array(scores).T:
        assert abs(each.mean()) * runs**0.5 < 5.5
        assert abs((each**2).mean() - 1) < 5.5 * (2 / runs) ** 0.5


def test_noise_is_fresh_on_each_day_and_the_same_when_a_day_is_read_again() -> None:
    people, values = np.arange(20_000, dtype=np.uint64), np.full(20_000, 3, np.int32)
    plan = plan_of(8, days=62)
    sanitiser, rounds = Sanitiser(plan, ldp.KeyedPrf(KEY)), rounds_of(plan.answer_channel(0))
    first, again, other = (sanitiser.report(0, people, values, day=day) for day in (4, 4, 5))
    assert np.array_equal(first, again)
    assert np.array_equal(first // 2, other // 2)  # one hash
    equal = float(rounds.second.p**2 + rounds.second.q**2)
    assert abs((first == other).mean() - equal) < 5.5 * (equal * (1 - equal) / 20_000) ** 0.5


@pytest.mark.parametrize(("k", "cells"), [(5, 2), (7, 3)])
def test_reports_of_two_days_share_no_less_noise_than_their_bound(k: int, cells: int) -> None:
    channel, least = channel_of(k, epsilon="6", first="4", cells=cells), Fraction(1)
    rows = groups(channel).tolist()
    for own, one, other in product(range(k), repeat=3):
        if own in (one, other):
            continue
        both = Fraction(0)
        for row in rows:
            days = laws_of_days(channel, (row[one], row[other]))
            both += days[row[own], row[own]]
        least = min(least, both / channel.n_questions - channel.q**2)
    assert channel.least_covariance <= min(least, 0)
    assert least_noise(channel) <= 0


@pytest.mark.parametrize("unit", ["attribute", "profile"])
def test_the_audit_finds_no_more_than_the_certificate(unit) -> None:
    plan = plan_of(10, days=4, unit=unit, epsilon=Decimal(2), epsilon_first=Decimal("1.5"))
    target = plan_target(plan, unit=unit)
    result = attack(target, runs=30_000, confidence=0.99, key=bytes(16))
    assert result.is_within
    # Of one value, the attack reads one report only.
    readable = plan.answer_channel(0).epsilon if unit == "attribute" else target.epsilon_certified
    assert result.epsilon_lower_bound > 0.8 * float(readable)


@pytest.mark.parametrize(("k", "cells"), [(5, 2), (5, 3), (4, 7), (10, 3)])
def test_best_guesses_are_right_as_often_as_by_enumeration(k: int, cells: int) -> None:
    channel = channel_of(k, epsilon="3", first="1.5", cells=cells)
    laws = [law(channel, value) for value in range(k)]
    alone = sum(max(each[code] for each in laws) for code in range(channel.n_codes)) / k
    assert attacker.guess_success(channel, prior=[1 / k] * k) == pytest.approx(float(alone), rel=1e-12)
    right = Fraction(0)
    for known, row in product(range(k), groups(channel).tolist()):
        days = {row[value]: laws_of_days(channel, (row[known], row[value])) for value in range(k)}
        right += sum(max(each[both] for each in days.values()) for both in product(range(cells), repeat=2))
    expected = float(right / (channel.n_questions * k * k))
    assert attacker.known_day_success(channel) == pytest.approx(expected, rel=1e-12)


def test_only_daily_categories_are_hashed_and_keys_of_other_plans_stay_as_they_were() -> None:
    plan = built({"domain_size": 9}, {"kind": "daily", "domain_size": 9}, **LOLOHA)
    assert [plan.is_hashed(index) for index in range(2)] == [False, True]
    assert plan.answer_channel(0) == ldp.code_channel(epsilon=Fraction(1), domain_size=9)
    assert plan.answer_channel(1) == hash_channel(
        epsilon=Fraction(1), first=Fraction(1, 2), domain_size=9, cells=2
    )
    assert plan.to_json()["first"] == {"epsilon": None, "cells": "two"}
    typed = plan_of(epsilon_first=Decimal("0.25"), hash_cells="optimal")
    assert typed.to_json()["first"] == {"epsilon": "1/4", "cells": "optimal"}
    assert PlanSpec.from_json(typed.to_json()) == typed
    assert "first" not in built({}).to_json()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon_first": Decimal(1)}, r"epsilon_first must be below the epsilon of i0, 1, got 1"),
        ({"epsilon_first": Decimal(0)}, r"epsilon of one answer must be in \[0.000001, 64\], got 0"),
        ({"hash_cells": "three"}, "hash_cells must be one of two, optimal, got 'three'"),
        ({"k": 513, "days": 62}, "categories of i0: domain_size must be <= 512 for one hash, got 513"),
        (
            {"k": 1850, "days": 62, "hash_cells": "optimal"},
            "domain_size must be <= 1849 for one hash, got 1850",
        ),
        ({"presence_epsilon": Decimal(1), "presence_days": 1}, "absent under smp-loloha: a category is"),
        (
            {"mechanism": "smp-grr", "hash_cells": "two"},
            "epsilon_first and hash_cells must be absent under smp-grr",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused(settings, message) -> None:
    refuses(message, plan_of, error=ldp.LdpError, **settings)


def test_a_plan_without_fresh_noise_is_no_plan_of_hashes() -> None:
    refuses("first of a smp-loloha plan must be present", replace, plan_of(), first=None, error=ldp.PlanError)
    refuses(
        "cells must be a prime number up to 251, got 4", channel_of, 5, cells=4, error=ldp.InvalidDomainError
    )

"""Permanent questions and hashed daily values: one report, all reports of a person, and estimates."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.codes import NO_ANSWER
from ldp.estimation.joint.linear import linear_variance
from ldp.estimation.windows import least_noise
from ldp.keyed.designs import question
from ldp.keyed.sanitiser import Sanitiser
from ldp.privacy import attacker
from ldp.privacy.plans import PlanSpec
from ldp.protocols.channels import noise_at_zero
from ldp.protocols.projective import PRIMES
from ldp.protocols.projective_space import is_orthogonal, support_of
from ldp.protocols.repeated.hashed import hash_channel
from ldp.protocols.repeated.question import QuestionChannel, question_channel
from ldp.protocols.two_round import TwoRoundGrr
from tests.ldp.exact import digest, largest_ratios, reference_below, reference_grr, refuses
from tests.ldp.privacy.test_plans import built

KEY = bytes(range(16))
PEOPLE = np.arange(1, 41, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def question_of(k: int, *, epsilon: str = "1", groups: int = 2) -> QuestionChannel:
    if groups == 2:
        return question_channel(epsilon=Fraction(epsilon), domain_size=k)
    dimension = next(t for t in range(1, 9) if groups**t >= k)
    answer = ldp.grr_channel(epsilon=Fraction(epsilon), domain_size=groups)
    return QuestionChannel(domain_size=k, dimension=dimension, answer=answer)


def hash_of(k: int, *, epsilon: str = "2", first: str = "1", cells: int | None = 2) -> QuestionChannel:
    return hash_channel(epsilon=Fraction(epsilon), first=Fraction(first), domain_size=k, cells=cells)


def rounds_of(channel: QuestionChannel) -> TwoRoundGrr:
    assert isinstance(channel.answer, TwoRoundGrr)
    return channel.answer


def plan_of(k: int = 4, *, mechanism: str = "smp-question", **settings: Any) -> PlanSpec:
    return built({"kind": "daily", "domain_size": k}, mechanism=mechanism, **settings)


hashes = partial(plan_of, mechanism="smp-loloha")


def groups(channel: QuestionChannel) -> np.ndarray:
    """Group of each value, shape (questions, values), from which code of a question supports it."""
    hits = np.array([is_orthogonal(value, channel=channel) for value in range(channel.domain_size)])
    table = hits.reshape(channel.domain_size, channel.n_questions, channel.groups)
    assert (table.sum(axis=2) == 1).all()
    return table.argmax(axis=2).T


def law(channel: QuestionChannel, value: int) -> list[Fraction]:
    """Probability of each code."""
    answer = channel.answer
    return [
        (answer.p if group == true else answer.q) / channel.n_questions
        for true in groups(channel)[:, value]
        for group in range(channel.groups)
    ]


@cache
def laws_of_days(channel: QuestionChannel, series: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """Probability of the answers to one question on consecutive days, from the true ones."""
    lasting, fresh = channel.answer, (Fraction(1), Fraction(0))  # a question has no noise of a day
    if isinstance(lasting, TwoRoundGrr):
        lasting, fresh = lasting.first, (lasting.second.p, lasting.second.q)
    found = Counter[tuple[int, ...]]()
    shown = sorted(set(series))
    for kept in product(range(channel.groups), repeat=len(shown)):
        memo, chance = dict(zip(shown, kept, strict=True)), Fraction(1)
        for true, answer in memo.items():
            chance *= lasting.p if true == answer else lasting.q
        for sent in product(range(channel.groups), repeat=len(series)):
            of_days = chance
            for true, group in zip(series, sent, strict=True):
                of_days *= fresh[memo[true] != group]
            if of_days:
                found[sent] += of_days
    return found


@pytest.mark.parametrize(
    ("k", "n_groups"), [(2, 2), (3, 2), (4, 2), (7, 2), (10, 2), (5, 3), (9, 3), (11, 3), (6, 5), (7, 7)]
)
def test_reports_are_those_of_a_pure_protocol(k: int, n_groups: int) -> None:
    channel = question_of(k, groups=n_groups)
    laws = [law(channel, value) for value in range(k)]
    assert all(sum(each) == 1 for each in laws)
    for value, other in product(range(k), repeat=2):
        hits = is_orthogonal(other, channel=channel)
        supported = sum(chance for chance, hit in zip(laws[value], hits, strict=True) if hit)
        assert supported == (channel.p if value == other else channel.q)
    worst = max(a / b for one, two in product(laws, repeat=2) for a, b in zip(one, two, strict=True))
    assert worst == channel.ratio
    counts = np.random.default_rng(k).integers(0, 1000, (channel.n_codes, 3))
    expected = [counts[is_orthogonal(value, channel=channel)].sum(axis=0).tolist() for value in range(k)]
    assert support_of(counts, channel=channel).tolist() == expected


@pytest.mark.parametrize(("k", "cells"), [(2, 2), (7, 2), (10, 3), (11, 5), (6, 7), (37, None)])
@pytest.mark.parametrize(("epsilon", "first"), [("1", "0.4"), ("6", "3")])
def test_one_hashed_report_is_a_pure_protocol_with_all_of_epsilon_first(k, cells, epsilon, first) -> None:
    channel = hash_of(k, epsilon=epsilon, first=first, cells=cells)
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


@pytest.mark.parametrize(
    "channel",
    [
        *(
            question_of(k, epsilon=epsilon, groups=n_groups)
            for k, n_groups in ((5, 2), (8, 2), (9, 3), (7, 3), (10, 5)) for epsilon in ("0.5", "9")
        ),
        *(hash_of(k, epsilon="6", first="4", cells=cells) for k, cells in ((5, 2), (7, 3))),
    ],
)  # fmt: skip
def test_reports_on_other_values_or_days_share_no_less_noise_than_their_bound(channel) -> None:
    rows, least = groups(channel).tolist(), Fraction(1)
    for own, one, other in product(range(channel.domain_size), repeat=3):
        if own not in (one, other):
            both = sum(laws_of_days(channel, (row[one], row[other]))[row[own], row[own]] for row in rows)
            least = min(least, both / channel.n_questions - channel.q**2)
    assert channel.least_covariance <= min(least, 0)
    of_shares = float(channel.least_covariance / (channel.p - channel.q) ** 2)
    assert least_noise(channel) == pytest.approx(of_shares)
    assert least_noise(ldp.grr_channel(epsilon=Fraction(1), domain_size=channel.domain_size)) == 0


@pytest.mark.parametrize("days", [3, 5])
@pytest.mark.parametrize(("k", "epsilon"), [(3, "0.5"), (4, "2")])
def test_certificate_is_the_loss_of_two_answers_on_any_number_of_days(k, days, epsilon) -> None:
    """The worst of all pairs of series whose true answers change on the same days, under any question."""
    plan = plan_of(k, days=days, epsilon=Decimal(epsilon))
    channel = plan.answer_channel(0)

    def changes_alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool | None:
        return [a == b for a, b in pairwise(one)] == [a == b for a, b in pairwise(other)] or None

    ratios = []
    for row in groups(channel).tolist():
        series = {tuple(row[value] for value in values) for values in product(range(k), repeat=days)}
        laws = {each: laws_of_days(channel, each) for each in series}
        assert all(sum(each.values()) == 1 for each in laws.values())
        ratios += largest_ratios(laws, alike=changes_alike).values()
    certificate = ldp.certify(plan)
    assert certificate.epsilon_profile == ldp.epsilon_of(max(ratios))
    assert max(ratios) == channel.ratio**2
    assert certificate.epsilon_attribute == channel.epsilon
    assert certificate.indicators[0].n_values == 2
    assert certificate.nominal_profile == 2 * Fraction(epsilon) >= certificate.epsilon_profile
    assert ldp.certify(plan, extra_daily_values=3) == certificate


@pytest.mark.parametrize(
    ("k", "days", "settings"),
    [
        (3, 3, {"epsilon": Decimal("0.5")}),
        (4, 5, {"epsilon": Decimal(2), "epsilon_first": Decimal("0.3")}),
        (3, 3, {"epsilon": Decimal(4), "epsilon_first": Decimal("1.3"), "hash_cells": "optimal"}),
        (9, 3, {"epsilon": Decimal(4), "epsilon_first": Decimal("1.1"), "hash_cells": "optimal"}),
    ],
)
def test_certificate_is_the_loss_of_all_reports_on_hashed_values(k: int, days: int, settings) -> None:
    """The worst of all pairs of series whose cells repeat and change on the same days, under any hash."""
    plan = hashes(k, days=days, **settings)
    channel = plan.answer_channel(0)
    assert isinstance(channel, QuestionChannel)
    assert channel.groups == (3 if "hash_cells" in settings else 2)
    series = {
        tuple(row[value] for value in values)
        for row in {tuple(row) for row in groups(channel).tolist()}
        for values in product(range(k), repeat=days)
    }
    laws = {each: laws_of_days(channel, each) for each in series}
    assert all(sum(each.values()) == 1 for each in laws.values())

    def values_if_repeated_alike(one: tuple[int, ...], other: tuple[int, ...]) -> int | None:
        alike = [[a == b for b in one] for a in one] == [[a == b for b in other] for a in other]
        return len(set(one)) if alike else None

    worst = largest_ratios(laws, alike=values_if_repeated_alike)
    certificate = ldp.certify(plan)
    assert certificate.epsilon_profile == ldp.epsilon_of(max(worst.values()))
    assert certificate.epsilon_attribute == ldp.epsilon_of(worst[1])
    assert certificate.indicators[0].n_values == min(days, channel.groups)
    assert certificate.indicators[0].epsilon == channel.epsilon < certificate.epsilon_attribute
    assert certificate.nominal_profile == min(days, channel.groups) * Fraction(settings["epsilon"])


@pytest.mark.parametrize("cells", ["two", "optimal"])
def test_no_number_of_days_loses_more_than_all_cells_do(cells: str) -> None:
    settings = {"epsilon": Decimal(3), "epsilon_first": Decimal("1.5"), "hash_cells": cells}
    plans = [hashes(37, days=days, **settings) for days in (1, 2, 7, 30, 62)]
    found = [ldp.certify(plan) for plan in plans]
    losses = [each.epsilon_profile for each in found]
    assert losses == sorted(losses)
    assert found[0].epsilon_profile == found[0].epsilon_attribute == plans[0].answer_channel(0).epsilon
    n_cells = {"two": 2, "optimal": 7}[cells]
    assert 3 * n_cells - Decimal("0.001") < losses[-1] <= found[-1].nominal_profile == 3 * n_cells
    again = ldp.certify(plans[2], extra_daily_values=3)
    assert again.epsilon_profile == ldp.certify(hashes(37, days=10, **settings)).epsilon_profile > losses[2]


def test_no_more_cells_count_than_there_are_values() -> None:
    """One of five cells stays empty if there are four values."""
    plan = hashes(4, days=7, epsilon=Decimal(6), epsilon_first=Decimal(3), hash_cells="optimal")
    channel = plan.answer_channel(0)
    assert isinstance(channel, QuestionChannel) and channel.groups == 5
    four = ldp.epsilon_of_study(rounds_of(channel), reports=7, n_values=4)
    certificate = ldp.certify(plan)
    assert (certificate.indicators[0].n_values, certificate.epsilon_profile) == (4, four)
    assert certificate.nominal_profile == 4 * 6


def test_a_value_that_is_reported_twice_at_most_has_no_question() -> None:
    """The best code loses as much there and is more exact; so has a value that lasts."""
    static = built({"kind": "static", "domain_size": 37}, mechanism="smp-question")
    for plan, n_values in ((plan_of(37, days=1), 1), (plan_of(37, days=2), 2), (static, 1)):
        assert plan.answer_channel(0) == ldp.code_channel(epsilon=Fraction(1), domain_size=37)
        assert n_values - Decimal("0.001") < ldp.certify(plan).epsilon_profile <= n_values
    once = built({"kind": "daily", "max_values": 1}, mechanism="smp-question")
    assert isinstance(once.answer_channel(0), ldp.GrrChannel)
    assert plan_of().to_json()["indicators"] == plan_of(mechanism="smp-grr").to_json()["indicators"]


def written_out(channel: QuestionChannel, own: int, true: int, *, day: int, **at: int) -> int:
    """The code of a person who is asked the question `own`."""
    if not isinstance(channel.answer, TwoRoundGrr):
        block = at | {"purpose": 3, "value": channel.groups * own + true}
        return channel.groups * own + reference_grr(KEY, true, channel=channel.answer, **block)
    block, rounds = at | {"value": true}, channel.answer
    kept = reference_grr(KEY, true, channel=rounds.first, purpose=3, **block)
    noisy = reference_grr(KEY, kept, channel=rounds.second, purpose=5, counter=day << 10, **block)
    return channel.groups * own + noisy


@pytest.mark.parametrize(
    ("channel", "indicator", "values", "days", "frozen"),
    [
        (question_of(10), 3, range(-1, 10), (1,), "3da4e1f295f23841"),
        (question_of(10, groups=3), 3, range(-1, 10), (1,), "2628f5e22a0594a6"),
        (hashes(10).answer_channel(0), 0, (-1, 0, 4, 9), (1, 62), "b297f7942b7b9e1a"),
        (hash_of(10, cells=3), 0, (-1, 0, 4, 9), (1, 62), "347e6da883d77364"),
    ],
)
def test_reports_are_the_frozen_ones(channel, indicator: int, values: Sequence[int], days, frozen) -> None:
    prf, sent = ldp.KeyedPrf(KEY), []
    asked = question.choose_question(PEOPLE, prf=prf, indicator=indicator, channel=channel)
    for value, day in product(values, days):
        fields = {"pseudonyms": PEOPLE, "prf": prf, "indicator": indicator, "plan_version": 2, "day": day}
        codes = question.answers(np.full(40, value, np.int32), channel=channel, **fields)
        sent.append(codes)
        for row, person in enumerate(PEOPLE.tolist()):
            at = {"pseudonym": person, "indicator": indicator}
            own = reference_below(KEY, channel.n_questions, **at, purpose=17, plan_version=0, value=0)
            assert asked[row] == own
            if value < 0:
                assert codes[row] == NO_ANSWER
            else:
                true = int(groups(channel)[own, value])
                assert codes[row] == written_out(channel, own, true, day=day, **at, plan_version=2)
    assert digest(*sent) == frozen


@pytest.mark.parametrize(
    "channel",
    [question_of(5), hash_of(16), hash_of(11, cells=3)],
    ids=["question 5", "hash 16", "hash 11"],
)
def test_shares_are_unbiased_and_as_exact_as_they_say(channel: QuestionChannel) -> None:
    """Over the noise and the sample of 200 keys, in standard errors; of a share and of a sum of them."""
    n, runs, k = 1000, 200, channel.domain_size
    sizes = {"n_reports": n, "n_population": 2 * n, "channel": channel}
    everyone = (np.arange(2 * n) ** 2 % 97 % k).astype(np.int32)
    truth = np.bincount(everyone, minlength=k) / everyone.size
    weights = (np.arange(k) % 3).astype(np.float64)
    exact = ldp.pure_variance(truth, **sizes)
    of_sum = linear_variance(truth, weights=weights, **sizes)
    scores = []
    for run in range(runs):
        values = np.random.default_rng(run).permutation(everyone)[:n]
        fields = {"prf": ldp.KeyedPrf(run.to_bytes(16)), "indicator": 0, "plan_version": 1}
        people = np.arange(n, dtype=np.uint64)
        codes = question.answers(values, pseudonyms=people, channel=channel, day=1 + run % 62, **fields)
        found = ldp.pure_frequencies(ldp.count_support(codes, channel=channel), **sizes)
        error = found.frequency - truth
        scores.append([*(error / exact**0.5), weights @ error / of_sum**0.5])
    for each in np.array(scores).T:
        assert abs(each.mean()) * runs**0.5 < 5.5
        assert abs((each**2).mean() - 1) < 5.5 * (2 / runs) ** 0.5


def test_noise_is_fresh_on_each_day_and_the_same_when_a_day_is_read_again() -> None:
    people, values = np.arange(20_000, dtype=np.uint64), np.full(20_000, 3, np.int32)
    plan, prf = hashes(8, days=62), ldp.KeyedPrf(KEY)
    channel, sanitiser = plan.answer_channel(0), Sanitiser(plan, prf)
    first, again, other = (sanitiser.report(0, people, values, day=day) for day in (4, 4, 5))
    fields = {"pseudonyms": people, "prf": prf, "indicator": 0, "plan_version": plan.version, "day": 4}
    assert first[:, 0].tolist() == question.answers(values, channel=channel, **fields).tolist()
    assert np.array_equal(first, again)
    assert np.array_equal(first // 2, other // 2)  # one hash
    rounds = rounds_of(channel)
    equal = float(rounds.second.p**2 + rounds.second.q**2)
    assert abs((first == other).mean() - equal) < 5.5 * (equal * (1 - equal) / 20_000) ** 0.5


@pytest.mark.parametrize(
    "channel",
    [
        question_of(5),
        *(hash_of(k, epsilon="3", first="1.5", cells=n) for k, n in ((5, 2), (5, 3), (4, 7), (10, 3))),
    ],
)
def test_best_guesses_are_right_as_often_as_by_enumeration(channel: QuestionChannel) -> None:
    k = channel.domain_size
    laws = [law(channel, value) for value in range(k)]
    for counts in ([1] * k, ([9, 1, 0, 4, 2] * 2)[:k]):
        prior = [Fraction(count, sum(counts)) for count in counts]
        chances = (
            (b * each[code] for b, each in zip(prior, laws, strict=True)) for code in range(len(laws[0]))
        )
        found = attacker.guess_success(channel, prior=[float(each) for each in prior])
        assert found == pytest.approx(float(sum(map(max, chances))), rel=1e-12)
    for known in range(k):
        right = Fraction(0)
        for row in groups(channel).tolist():
            days = [laws_of_days(channel, (row[known], row[value])) for value in range(k)]
            right += sum(max(each.get(both, 0) for each in days) for both in set().union(*days)) / k
        expected = float(right / channel.n_questions)
        assert attacker.known_day_success(channel) == pytest.approx(expected, rel=1e-12)


def test_only_daily_categories_are_hashed_and_keys_of_other_plans_stay_as_they_were() -> None:
    plan = built({"domain_size": 9}, {"kind": "daily", "domain_size": 9}, mechanism="smp-loloha")
    assert [plan.is_hashed(index) for index in range(2)] == [False, True]
    assert plan.answer_channel(0) == ldp.code_channel(epsilon=Fraction(1), domain_size=9)
    assert plan.answer_channel(1) == hash_of(9, epsilon="1", first="1/2")
    assert plan.to_json()["first"] == {"epsilon": None, "cells": "two"}
    typed = hashes(epsilon_first=Decimal("0.25"), hash_cells="optimal")
    assert typed.to_json()["first"] == {"epsilon": "1/4", "cells": "optimal"}
    assert PlanSpec.from_json(typed.to_json()) == typed
    assert "first" not in built({}).to_json()


NOISY = {"presence_epsilon": Decimal(1), "presence_days": 1}
LONG = {"days": 62, "hash_cells": "optimal"}


@pytest.mark.parametrize(
    ("plan", "settings", "message"),
    [
        (plan_of, {"k": 1025, "days": 62}, "of i0: domain_size must be <= 512 for one question, got 1025"),
        (plan_of, NOISY, "absent under smp-question: a category is"),
        (hashes, {"epsilon_first": Decimal(1)}, r"epsilon_first must be below the epsilon of i0, 1, got 1"),
        (hashes, {"epsilon_first": Decimal(0)}, r"epsilon of one answer must be in \[0.000001, 64\], got 0"),
        (hashes, {"hash_cells": "three"}, "hash_cells must be one of two, optimal, got 'three'"),
        (hashes, {"k": 513, "days": 62}, "of i0: domain_size must be <= 512 for one hash, got 513"),
        (hashes, {"k": 1850} | LONG, "domain_size must be <= 1849 for one hash, got 1850"),
        (hashes, NOISY, "absent under smp-loloha: a category is"),
        (
            plan_of,
            {"mechanism": "smp-grr", "hash_cells": "two"},
            "hash_cells must be absent under smp-grr",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused(plan, settings, message) -> None:
    refuses(message, plan, **settings)


def test_channels_that_cannot_be_are_refused() -> None:
    coin, four = (ldp.grr_channel(epsilon=Fraction(1), domain_size=k) for k in (2, 4))
    refuses("domain_size must be <= 8, got 9", QuestionChannel, domain_size=9, dimension=3, answer=coin)
    refuses("codes must be <= 65534, got 131070", QuestionChannel, domain_size=9, dimension=16, answer=coin)
    refuses("groups must be a prime number, got 4", QuestionChannel, domain_size=3, dimension=1, answer=four)
    refuses("domain_size must be <= 32768 for one question", question_of, 32769)
    refuses("cells must be a prime number up to 251, got 4", hash_of, 5, cells=4)
    refuses("first of a smp-loloha plan must be present", replace, hashes(), first=None)

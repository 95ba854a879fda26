"""Permanent questions: a pure protocol, and what two answers lose on any days, by enumeration."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.codes import NO_ANSWER
from ldp.estimation.joint.linear import linear_variance
from ldp.estimation.windows import least_noise
from ldp.keyed.designs import question
from ldp.privacy import attacker
from ldp.privacy.plans import PlanSpec
from ldp.protocols.projective_space import is_orthogonal, support_of
from ldp.protocols.repeated.question import QuestionChannel, question_channel
from ldp.research.audit import attack
from ldp.research.audit_plans import plan_target
from tests.ldp.exact import digest, reference_below, reference_grr, refuses
from tests.ldp.privacy.test_plans import built

KEY = bytes(range(16))
PEOPLE = np.arange(1, 41, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def channel_of(k: int, *, epsilon: str = "1", groups: int = 2) -> QuestionChannel:
    if groups == 2:
        return question_channel(epsilon=Fraction(epsilon), domain_size=k)
    dimension = next(t for t in range(1, 9) if groups**t >= k)
    answer = ldp.grr_channel(epsilon=Fraction(epsilon), domain_size=groups)
    return QuestionChannel(domain_size=k, dimension=dimension, answer=answer)


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


def plan_of(k: int = 4, **settings: Any) -> PlanSpec:
    return built({"kind": "daily", "domain_size": k}, **{"mechanism": "smp-question"} | settings)


@pytest.mark.parametrize(
    ("k", "n_groups"), [(2, 2), (3, 2), (4, 2), (7, 2), (10, 2), (5, 3), (9, 3), (11, 3), (6, 5), (7, 7)]
)
def test_reports_are_those_of_a_pure_protocol(k: int, n_groups: int) -> None:
    channel = channel_of(k, groups=n_groups)
    laws = [law(channel, value) for value in range(k)]
    assert all(sum(each) == 1 for each in laws)
    for value, other in product(range(k), repeat=2):
        hits = is_orthogonal(other, channel=channel)
        supported = sum(chance for chance, hit in zip(laws[value], hits, strict=True) if hit)
        assert supported == (channel.p if value == other else channel.q)
    assert (
        max(a / b for one, two in product(laws, repeat=2) for a, b in zip(one, two, strict=True))
        == channel.ratio
    )
    counts = np.random.default_rng(k).integers(0, 1000, (channel.n_codes, 3))
    expected = [counts[is_orthogonal(value, channel=channel)].sum(axis=0).tolist() for value in range(k)]
    assert support_of(counts, channel=channel).tolist() == expected


@pytest.mark.parametrize(("k", "n_groups"), [(5, 2), (8, 2), (9, 3), (7, 3), (10, 5)])
@pytest.mark.parametrize("epsilon", ["0.5", "9"])
def test_reports_on_other_values_share_no_less_noise_than_their_bound(
    k: int, n_groups: int, epsilon: str
) -> None:
    channel = channel_of(k, epsilon=epsilon, groups=n_groups)
    table, answer, least = groups(channel), channel.answer, Fraction(1)
    for own, one, other in product(range(k), repeat=3):
        if own in (one, other) or one == other:
            continue
        both = Fraction(0)
        for row in table:
            chances = [answer.p if row[value] == row[own] else answer.q for value in (one, other)]
            both += chances[0] if row[one] == row[other] else chances[0] * chances[1]
        least = min(least, both / channel.n_questions - channel.q**2)
    assert channel.least_covariance <= min(least, 0)
    assert least_noise(channel) == pytest.approx(
        float(channel.least_covariance / (channel.p - channel.q) ** 2)
    )
    assert least_noise(ldp.grr_channel(epsilon=Fraction(1), domain_size=k)) == 0


def laws_of_days(channel: QuestionChannel, series: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
    """Probability of the answers to one question on consecutive days, from the true ones."""
    found: Counter[tuple[int, ...]] = Counter()
    shown = sorted(set(series))
    for kept in product(range(channel.groups), repeat=len(shown)):
        memo, chance = dict(zip(shown, kept, strict=True)), Fraction(1)
        for true, answer in memo.items():
            chance *= channel.answer.p if true == answer else channel.answer.q
        found[tuple(memo[true] for true in series)] += chance
    return found


@pytest.mark.parametrize("days", [3, 5])
@pytest.mark.parametrize(("k", "epsilon"), [(3, "0.5"), (4, "2")])
def test_certificate_is_the_loss_of_two_answers_on_any_number_of_days(
    k: int, days: int, epsilon: str
) -> None:
    """The worst of all pairs of series whose true answers change on the same days, under any question."""
    plan = plan_of(k, days=days, epsilon=Decimal(epsilon))
    channel = plan.answer_channel(0)
    ratios = []
    for row in groups(channel).tolist():
        series = {tuple(row[value] for value in values) for values in product(range(k), repeat=days)}
        laws = {each: laws_of_days(channel, each) for each in series}
        assert all(sum(each.values()) == 1 for each in laws.values())
        for one, other in product(series, repeat=2):
            if [a == b for a, b in pairwise(one)] == [a == b for a, b in pairwise(other)]:
                ratios += [laws[one][sent] / laws[other][sent] for sent in laws[one]]
    certificate = ldp.certify(plan)
    assert certificate.epsilon_profile == ldp.epsilon_of(max(ratios))
    assert max(ratios) == channel.ratio**2
    assert certificate.epsilon_attribute == channel.epsilon
    assert certificate.indicators[0].n_values == 2
    assert certificate.nominal_profile == 2 * Fraction(epsilon) >= certificate.epsilon_profile
    assert ldp.certify(plan, extra_daily_values=3) == certificate


def test_a_value_that_is_reported_twice_at_most_has_no_question() -> None:
    """The best code loses as much there and is more exact; so has a value that lasts."""
    static = built({"kind": "static", "domain_size": 37}, mechanism="smp-question")
    for plan, n_values in ((plan_of(37, days=1), 1), (plan_of(37, days=2), 2), (static, 1)):
        assert plan.answer_channel(0) == ldp.code_channel(epsilon=Fraction(1), domain_size=37)
        assert n_values - Decimal("0.001") < ldp.certify(plan).epsilon_profile <= n_values
    once = built({"kind": "daily", "max_values": 1}, mechanism="smp-question")
    assert isinstance(once.answer_channel(0), ldp.GrrChannel)
    assert (
        plan_of().to_json()["indicators"]
        == built({"kind": "daily", "domain_size": 4}).to_json()["indicators"]
    )


def test_a_person_whose_answer_changes_is_told_from_one_whose_does_not() -> None:
    """Changes are not protected: the promise is on values, and says so."""
    channel = channel_of(4)
    staying, changing = laws_of_days(channel, (0, 0)), laws_of_days(channel, (0, 1))
    assert set(changing) - set(staying)


@pytest.mark.parametrize(("k", "n_groups"), [(10, 2), (10, 3)])
def test_reports_are_the_frozen_ones(k: int, n_groups: int) -> None:
    channel, prf = channel_of(k, groups=n_groups), ldp.KeyedPrf(KEY)
    asked = question.choose_question(PEOPLE, prf=prf, indicator=3, channel=channel)
    sent = []
    for value in range(-1, k):
        fields = {"pseudonyms": PEOPLE, "prf": prf, "indicator": 3, "plan_version": 2}
        codes = question.answers(np.full(40, value, np.int32), channel=channel, **fields)
        sent.append(codes)
        for row, person in enumerate(PEOPLE.tolist()):
            at = {"pseudonym": person, "indicator": 3}
            own = reference_below(KEY, channel.n_questions, **at, purpose=17, plan_version=0, value=0)
            assert asked[row] == own
            if value < 0:
                assert codes[row] == NO_ANSWER
                continue
            true = int(groups(channel)[own, value])
            block = at | {"purpose": 3, "plan_version": 2, "value": n_groups * own + true}
            assert codes[row] == n_groups * own + reference_grr(KEY, true, channel=channel.answer, **block)
    assert digest(*sent) == {2: "3da4e1f295f23841", 3: "2628f5e22a0594a6"}[n_groups]


def test_questions_are_drawn_alike() -> None:
    channel = channel_of(10)
    asked = question.choose_question(
        np.arange(30_000, dtype=np.uint64), prf=ldp.KeyedPrf(KEY), indicator=0, channel=channel
    )
    assert (
        (np.bincount(asked, minlength=15) - 2000) ** 2 / 2000
    ).sum() < 42  # chi-square, 14 degrees of freedom


@pytest.mark.parametrize("k", [5, 16])
def test_shares_are_unbiased_and_as_exact_as_they_say(k: int) -> None:
    """Over the noise and the sample of 200 keys, in standard errors; of a share and of a sum of them."""
    n, runs, channel = 1000, 200, channel_of(k)
    everyone = (np.arange(2 * n) ** 2 % 97 % k).astype(np.int32)
    truth = np.bincount(everyone, minlength=k) / everyone.size
    weights = (np.arange(k) % 3).astype(np.float64)
    exact = ldp.pure_variance(truth, n_reports=n, n_population=2 * n, channel=channel)
    of_sum = linear_variance(truth, weights=weights, channel=channel, n_reports=n, n_population=2 * n)
    scores = []
    for run in range(runs):
        values = np.random.default_rng(run).permutation(everyone)[:n]
        fields = {
            "pseudonyms": np.arange(n, dtype=np.uint64),
            "prf": ldp.KeyedPrf(run.to_bytes(16)),
            "indicator": 0,
        }
        codes = ldp.oracle_answers(values, channel=channel, plan_version=1, **fields)
        found = ldp.pure_frequencies(
            ldp.count_support(codes, channel=channel), n_reports=n, n_population=2 * n, channel=channel
        )
        error = found.frequency - truth
        scores.append([*(error / exact**0.5), weights @ error / of_sum**0.5])
    for each in np.array(scores).T:
        assert abs(each.mean()) * runs**0.5 < 5.5
        assert abs((each**2).mean() - 1) < 5.5 * (2 / runs) ** 0.5


@pytest.mark.parametrize("unit", ["attribute", "profile"])
def test_the_audit_finds_no_more_than_the_certificate(unit) -> None:
    target = plan_target(plan_of(10, days=4, unit=unit), unit=unit)
    result = attack(target, runs=30_000, confidence=0.99, key=bytes(16))
    assert result.is_within
    assert result.epsilon_lower_bound > 0.8 * float(target.epsilon_certified)


@pytest.mark.parametrize("counts", [(1, 1, 1, 1, 1), (9, 1, 0, 4, 2)])
def test_best_guesses_are_right_as_often_as_by_enumeration(counts: Sequence[int]) -> None:
    channel, prior = channel_of(5), [Fraction(count, sum(counts)) for count in counts]
    laws = [law(channel, value) for value in range(5)]
    exact = sum(
        max(b * each[code] for b, each in zip(prior, laws, strict=True)) for code in range(channel.n_codes)
    )
    found = attacker.guess_success(channel, prior=[float(each) for each in prior])
    assert found == pytest.approx(float(exact), rel=1e-12)
    for known in range(5):
        right = Fraction(0)
        for row in groups(channel).tolist():
            days = [laws_of_days(channel, (row[known], row[value])) for value in range(5)]
            sent = set().union(*days)
            right += sum(max(each.get(both, Fraction(0)) for each in days) for both in sent) / 5
        expected = float(right / channel.n_questions)
        assert attacker.known_day_success(channel) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 1025, "days": 62}, "categories of i0: domain_size must be <= 512 for one question, got 1025"),
        ({"presence_epsilon": Decimal(1), "presence_days": 1}, "absent under smp-question: a category is"),
    ],
)
def test_what_cannot_be_kept_is_refused(settings, message) -> None:
    refuses(message, plan_of, error=ldp.PlanError, **settings)


def test_channels_that_cannot_be_are_refused() -> None:
    coin = ldp.grr_channel(epsilon=Fraction(1), domain_size=2)
    refuses("domain_size must be <= 8, got 9", QuestionChannel, domain_size=9, dimension=3, answer=coin)
    refuses("codes must be <= 65534, got 131070", QuestionChannel, domain_size=9, dimension=16, answer=coin)
    four = ldp.grr_channel(epsilon=Fraction(1), domain_size=4)
    refuses("groups must be a prime number, got 4", QuestionChannel, domain_size=3, dimension=1, answer=four)
    refuses(
        "domain_size must be <= 32768 for one question",
        question_channel,
        epsilon=Fraction(1),
        domain_size=32769,
    )

"""Classes: stratified and pooled estimates, their variances and their test; certificates and tallies."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import prod, sqrt

import numpy as np
import pytest
from scipy import stats

import ldp
from ldp.errors import NoReportsError, PlanError
from ldp.estimation.classes import pooled_weights, stratified_variance
from ldp.estimation.estimators import pure_variance
from ldp.estimation.tallies import class_blocks
from ldp.keyed.choices import choose_indicator
from ldp.keyed.tallying import tally_class_reports
from tests.ldp.exact import refuses

CLASSES = {"panel": Decimal(3), "standard": Decimal(1), "minor": Decimal("0.5")}
SHARES = (0.1, 0.6, 0.3)
INDICATORS = (
    ldp.IndicatorRequest(slug="age", kind="static", domain_size=4),
    ldp.IndicatorRequest(slug="zone", kind="daily", domain_size=5, max_values=2),
)


def plan_of(mechanism="smp-grr", **changes):
    settings = {"unit": "profile", "version": 1, "days": 3, "epsilon": Decimal(3), "classes": CLASSES}
    return ldp.build_plan(mechanism=mechanism, indicators=INDICATORS, **settings | changes)


def class_reports(channels, sizes, counts=None):
    counts = counts or [np.zeros(each.domain_size, np.int64) for each in channels]
    rows = zip(channels, sizes, counts, strict=True)
    return [
        ldp.ClassReports(counts=own, n_reports=n, n_visitors=n, channel=channel) for channel, n, own in rows
    ]


def test_example_of_three_classes() -> None:
    n, k = 10**6, 96
    channels = [ldp.oue_channel(epsilon=Fraction(each), domain_size=k) for each in CLASSES.values()]
    classes = class_reports(channels, [round(share * n) for share in SHARES])
    at_zero = [np.zeros(k)] * 3
    cautious = pure_variance(0, n_reports=n, n_population=n, channel=channels[2])
    assert 100 * sqrt(cautious) == pytest.approx(0.396, abs=5e-4)
    by_class = stratified_variance(at_zero, classes=classes)[0]
    assert 100 * sqrt(by_class) == pytest.approx(0.263, abs=5e-4)
    weights = pooled_weights(classes)
    assert sum(weights) == pytest.approx(1)
    variances = [
        pure_variance(0, n_reports=each.n_reports, n_population=each.n_visitors, channel=each.channel)
        for each in classes
    ]
    pooled = sum(weight**2 * own for weight, own in zip(weights, variances, strict=True))
    assert 100 * sqrt(pooled) == pytest.approx(0.125, abs=5e-4)


@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-oue", "smp-adp"])
def test_keyed_runs_are_unbiased_with_the_exact_variance(mechanism: str) -> None:
    """Classes differ, so that only the stratified estimate is right; half are asked."""
    plan, runs, n = plan_of(mechanism), 200, 3000
    sizes = [round(share * n) for share in SHARES]
    of_class = np.repeat(np.arange(3), sizes)
    true = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]])
    # The same number of people of each value among those of a class who are asked.
    rng = np.random.default_rng(5)
    of_value = [np.round(f * m).astype(int) for f, m in zip(true, sizes, strict=True)]
    values = np.concatenate([np.repeat(np.arange(4), each) for each in of_value])
    shares = np.bincount(values, minlength=4) / n
    errors, deviations = [], []
    for run in range(runs):
        prf = ldp.KeyedPrf(run.to_bytes(16, "big"))
        pseudonyms = rng.integers(0, 2**63, n).astype(np.uint64)
        asked = choose_indicator(pseudonyms, prf=prf, d=2)
        delta = ldp.Delta.zero(plan)
        for number, own in enumerate(plan.of_classes):
            rows = np.flatnonzero((of_class == number) & (asked == 0))
            reports = ldp.Sanitiser(own, prf).report(0, pseudonyms[rows], values[rows].astype(np.int32))
            tally_class_reports(
                np.ones(rows.size, np.uint64), reports, delta,
                index=0, number=number, n_classes=3, is_unary=own.is_unary(0), sign=1,
            )  # fmt: skip
        blocks = class_blocks(delta.counts[0], n_classes=3)[:, :, 0, 1]
        assert delta.n_reports[0][0, 1] == np.count_nonzero(asked == 0) == blocks[:, -1].sum()
        classes = [
            ldp.ClassReports(
                counts=block[:-1].copy(),
                n_reports=int(block[-1]),
                n_visitors=m,
                channel=own.answer_channel(0),
            )
            for block, m, own in zip(blocks, sizes, plan.of_classes, strict=True)
        ]
        found = ldp.stratified(classes)
        errors.append(found.frequency - shares)
        deviations.append(np.sqrt(stratified_variance(list(true), classes=classes)))
        assert (found.ci_low <= found.frequency).all()
        assert (found.frequency <= found.ci_high).all()
        assert found.consistent.sum() == pytest.approx(1)
    scores = np.array(errors) / np.array(deviations)
    assert (np.abs(scores.mean(axis=0)) < 4 / sqrt(runs)).all()
    # A chi-square of the runs for each value: 0.1% on either side.
    low, high = stats.chi2.ppf([0.001, 0.999], runs) / runs
    assert ((low < (scores**2).mean(axis=0)) & ((scores**2).mean(axis=0) < high)).all()


def drawn(rng, shares, channels, sizes):
    """Counts of reports by GRR or OUE of people whose values are drawn."""
    counts = []
    for f, channel, n in zip(shares, channels, sizes, strict=True):
        own = rng.multinomial(n, f)
        p, q = float(channel.p), float(channel.q)
        if isinstance(channel, ldp.GrrChannel):
            chances = np.where(np.eye(len(f), dtype=bool), p, q)
            counts.append(sum(rng.multinomial(m, row) for m, row in zip(own, chances, strict=True)))
        else:
            counts.append(rng.binomial(own, p) + rng.binomial(n - own, q))
    return class_reports(channels, sizes, counts)


def test_pooled_only_where_the_classes_are_alike() -> None:
    rng, sizes, f = np.random.default_rng(3), [2000, 9000, 4000], np.array([0.4, 0.3, 0.2, 0.1])
    makers = [ldp.grr_channel, ldp.oue_channel, ldp.grr_channel]
    epsilons = map(Fraction, CLASSES.values())
    channels = [make(epsilon=each, domain_size=4) for make, each in zip(makers, epsilons, strict=True)]
    runs = 400
    tests = [ldp.homogeneity_test(drawn(rng, [f] * 3, channels, sizes)) for _ in range(runs)]
    assert {each.degrees for each in tests} == {6}
    n_refused = sum(each.p_value < 0.05 for each in tests)
    assert stats.binomtest(n_refused, runs, 0.05).pvalue > 0.001
    assert stats.kstest([each.p_value for each in tests], "uniform").pvalue > 0.001
    alike = ldp.pooled_if_alike(drawn(rng, [f] * 3, channels, sizes))
    assert alike is not None
    assert alike.estimates is not None
    by_class = ldp.stratified(drawn(rng, [f] * 3, channels, sizes))
    assert (alike.estimates.std_error < by_class.std_error).all()
    other = np.array([0.1, 0.2, 0.3, 0.4])
    unlike = ldp.pooled_if_alike(drawn(rng, [f, f, other], channels, sizes))
    assert unlike is not None
    assert unlike.estimates is None
    assert unlike.test.p_value < 0.05


def test_pooled_intervals_hold_the_shares_of_people_like_these() -> None:
    rng, sizes, f = np.random.default_rng(8), [2000, 9000, 4000], np.array([0.4, 0.3, 0.2, 0.1])
    channels = [ldp.grr_channel(epsilon=Fraction(each), domain_size=4) for each in CLASSES.values()]
    found = [ldp.pooled_if_alike(drawn(rng, [f] * 3, channels, sizes), error=1e-9) for _ in range(400)]
    estimates = [each.estimates for each in found if each is not None and each.estimates is not None]
    assert len(estimates) == 400
    held = sum(int(((each.ci_low <= f) & (f <= each.ci_high)).sum()) for each in estimates)
    assert stats.binomtest(held, 4 * 400, 0.95).pvalue > 0.001
    mean = np.mean([each.frequency for each in estimates], axis=0)
    assert (np.abs(mean - f) < 4 * estimates[0].std_error / sqrt(400)).all()


def test_classes_without_visitors_or_reports() -> None:
    channels = [ldp.grr_channel(epsilon=Fraction(1), domain_size=3)] * 2
    counts = np.array([50, 30, 20])
    full = ldp.ClassReports(counts=counts, n_reports=100, n_visitors=200, channel=channels[0])
    empty = ldp.ClassReports(counts=counts * 0, n_reports=0, n_visitors=0, channel=channels[1])
    alone = ldp.stratified([full, empty])
    assert (alone.frequency == full.estimates().frequency).all()
    assert ldp.pooled_if_alike([full, empty]) is None
    silent = ldp.ClassReports(counts=counts * 0, n_reports=0, n_visitors=1, channel=channels[1])
    with pytest.raises(NoReportsError, match="1 visitors must have reports"):
        ldp.stratified([full, silent])
    with pytest.raises(NoReportsError, match="must have visitors"):
        ldp.stratified([empty, empty])


def test_certificate_of_each_class_is_its_worst_ratio_and_that_of_the_plan_the_largest() -> None:
    plan = plan_of()
    certificates = ldp.certify_classes(plan)
    for own, certificate in zip(plan.of_classes, certificates, strict=True):
        # All pairs of a person of the class, each answer of which is one of k codes, by enumeration.
        for index, entry in enumerate(certificate.indicators):
            channel = own.answer_channel(index)
            law = [[channel.p if x == y else channel.q for y in range(channel.domain_size)] for x in range(2)]
            answers = list(product(range(channel.domain_size), repeat=entry.n_values))
            chances = [
                [prod((law[x][y] for y in each), start=Fraction(1)) for each in answers] for x in (0, 1)
            ]
            worst = max(one / other for one, other in zip(*chances, strict=True))
            assert worst == entry.ratio**entry.n_values
            assert ldp.epsilon_of(worst) == entry.epsilon_profile
        nominal = own.indicators[0].epsilon
        assert certificate.epsilon_attribute <= nominal
        assert certificate.epsilon_profile <= 2 * nominal == certificate.nominal_profile
    whole = ldp.certify(plan)
    assert whole.epsilon_profile == max(each.epsilon_profile for each in certificates)
    assert whole.epsilon_attribute == max(each.epsilon_attribute for each in certificates)
    assert [str(each.nominal_profile) for each in certificates] == ["6", "2", "1"]
    plain = plan_of(classes={})
    assert ldp.certify_classes(plain) == (ldp.certify(plain),)


@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-oue", "smp-adp"])
def test_plan_keeps_classes_and_one_without_them_is_what_it_was(mechanism: str) -> None:
    plan = plan_of(mechanism, tallies=("visits",))
    assert ldp.PlanSpec.from_json(plan.to_json()) == plan
    assert plan.to_json()["classes"][2] == {"slug": "minor", "epsilon": "1/2"}
    assert "classes" not in plan_of(mechanism, classes={}).to_json()
    assert (plan.n_stays, plan.tally_sizes) == (4, (3 * 5, 3 * 6))
    packed = ldp.Delta.zero(plan).pack()
    assert ldp.Delta.unpack(packed, plan=plan).stays.shape == (4, 4, 4)
    assert [own.indicators[1].epsilon for own in plan.of_classes] == [3, 1, Fraction(1, 2)]
    with pytest.raises(PlanError, match="must be that of one class"):
        ldp.Sanitiser(plan, ldp.KeyedPrf(bytes(16)))


def test_what_has_no_classes_is_refused() -> None:
    noisy = {"presence_epsilon": Decimal(1), "presence_days": 1}
    refuses("mechanism of a plan with classes", plan_of, "spl-grr", error=PlanError)
    refuses("mechanism of a plan with classes", plan_of, "smp-stream", error=PlanError)
    refuses("presence_epsilon must be absent", plan_of, error=PlanError, **noisy)
    refuses(r"number of classes must be in \[2, 20\]", plan_of, error=PlanError, classes={"a": Decimal(3)})
    refuses("must be the largest of its classes, 3, got 2", plan_of, error=PlanError, epsilon=Decimal(2))


def test_daily_reports_of_a_class_count_in_its_block() -> None:
    plan = plan_of("smp-oue")
    delta, bits = ldp.Delta.zero(plan), np.array([0b011, 0b100], np.uint64)
    words = np.full((2, 3, 1), ldp.NO_ANSWER, np.uint16)
    words[0, 1] = 0b10001
    words[1, 2] = 0b00010
    asked = {"index": 1, "number": 1, "n_classes": 3, "is_unary": True}
    tally_class_reports(bits, words, delta, sign=1, **asked)
    blocks = class_blocks(delta.counts[1], n_classes=3)
    found = Counter({tuple(each): int(blocks[tuple(each)]) for each in np.argwhere(blocks).tolist()})
    assert found == {(1, 0, 1, 2): 1, (1, 4, 1, 2): 1, (1, 5, 1, 2): 1, (1, 1, 0, 3): 1, (1, 5, 0, 3): 1}
    assert delta.n_reports[1].sum() == 2
    tally_class_reports(bits, words, delta, sign=-1, **asked)
    assert delta.is_zero

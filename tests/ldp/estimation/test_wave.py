"""The square wave: keyed reports, exact certificate, unbiased figures with exact variances, coverage."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.codes import NO_ANSWER
from ldp.estimation.numbers.figures import number_mean, number_survival
from ldp.estimation.numbers.wave import STOP, likeliest_levels, wave_query, wave_survival, wave_variance
from ldp.estimation.simulation import Crowd, epsilon_for_plan, forecast
from ldp.kernels.codes import reciprocal
from ldp.kernels.entropy import ANSWER
from ldp.kernels.wave import wave_codes
from ldp.keyed.designs import wave
from ldp.privacy.attacker import guess_success, known_day_success
from ldp.protocols.numbers.threshold import Scale
from ldp.protocols.numbers.wave import WaveChannel, best_half_width, chances, wave_channel
from ldp.protocols.projective_space import value_counts
from tests.ldp.exact import exp_bounds, reference_below, reference_words, refuses

SCALE = Scale(cuts=(60, 120, 180, 240, 300, 450, 600), unit="min", report="wave")
CHANNEL = wave_channel(epsilon=Fraction(2), n_levels=8)
N = 3000
STAYS = np.minimum(30 + (np.arange(N) * 7919) % 700, 650)  # of visitors; half of them are asked
SKEWED = np.exp(((np.arange(N) * 7919) % N) / N * 7).astype(int)  # most of them short, a few above all cuts
PEOPLE = np.arange(N, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
ENDS = np.array([SCALE.ends], np.float64)
ABOVE = np.tri(8, 7, -1).T
KEY = bytes(range(16))


def counts_of(run: int, *, stays: Any = STAYS) -> Any:
    """Codes of those who are asked, drawn again in each run."""
    prf = ldp.KeyedPrf(run.to_bytes(16, "big"))
    asked = np.random.default_rng(run).permutation(len(stays))[: len(stays) // 2]
    fields = {"pseudonyms": PEOPLE[asked], "prf": prf, "indicator": 0, "plan_version": 1}
    codes = wave.answers(SCALE.levels(stays[asked]), channel=CHANNEL, **fields)
    return np.bincount(codes, minlength=CHANNEL.n_codes)


def shares_of(stays: Any) -> Any:
    return np.bincount(SCALE.levels(stays), minlength=8) / len(stays)


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/2", "1", "2", "3", "8"])
@pytest.mark.parametrize("k", [3, 4, 7, 64, 128])
def test_the_certificate_is_the_largest_ratio_of_all_codes(epsilon: str, k: int) -> None:
    """By enumeration of all codes under all pairs of levels, in fractions."""
    channel = wave_channel(epsilon=Fraction(epsilon), n_levels=k)
    inside, outside = Fraction(channel.threshold, 2**64), 1 - Fraction(channel.threshold, 2**64)
    law = [
        [
            inside / channel.width if level <= code < level + channel.width else outside / (k - 1)
            for code in range(channel.n_codes)
        ]
        for level in range(k)
    ]
    assert {sum(of_level) for of_level in law} == {1}
    columns = list(zip(*law, strict=True)) if k < 10 else [(law[0][0], law[-1][0])]
    assert max(max(column) / min(column) for column in columns) == channel.ratio
    # One step more would break the promise.
    e = exp_bounds(Fraction(epsilon))
    assert channel.ratio <= e[1]
    one_more = Fraction((channel.threshold + 1) * (k - 1), (2**64 - channel.threshold - 1) * channel.width)
    assert one_more > e[0]
    if k < 10:
        expected = [[float(each) for each in of_level] for of_level in law]
        assert chances(channel).T.tolist() == expected


def test_half_widths_are_those_of_the_paper() -> None:
    """Shares of the levels at epsilon 0.5, 1, 2, 3."""
    for epsilon, share in (("1/2", 0.3582), ("1", 0.2561), ("2", 0.1293), ("3", 0.0637)):
        e = exp_bounds(Fraction(epsilon))[0]
        wide = best_half_width(Fraction(epsilon), e=e, n_levels=10_000)
        assert abs(wide - 10_000 * share) <= 1
    assert [wave_channel(epsilon=Fraction(e), n_levels=64).half_width for e in (1, 2, 3, 9)] == [16, 8, 4, 0]


def test_channels_out_of_range_are_refused() -> None:
    good = {"n_levels": 4, "half_width": 1, "threshold": 2**63 + 2**62}
    WaveChannel(**good)
    refuses("n_levels must be in", WaveChannel, **good | {"n_levels": 2})
    refuses("n_levels must be in", WaveChannel, **good | {"n_levels": 129})
    refuses("half_width must be in", WaveChannel, **good | {"half_width": 4})
    refuses("threshold must be in", WaveChannel, **good | {"threshold": 2**63})
    refuses("report must be", Scale, cuts=(1, 2), report="waves")
    refuses("use wave_survival", ldp.pure_variance, 0.5, n_reports=5, n_population=9, channel=CHANNEL)


@pytest.mark.parametrize(("k", "b"), [(3, 0), (3, 1), (4, 2), (5, 1)])
def test_codes_are_uniform_in_the_window_and_outside(k: int, b: int) -> None:
    """All words of a small size, through the kernel."""
    inside, outside, threshold = 2 * b + 1, k - 1, 3
    size = inside * outside
    # Of three words above the largest without bias, each is drawn again.
    words = np.array([(u, y) for u in range(8) for y in range(size + 3)], np.uint64)
    limits = [threshold, size - 1, inside, reciprocal(inside), outside, reciprocal(outside)]
    for level in range(k):
        out = np.empty(len(words), np.uint16)
        redraws = wave_codes(np.full(len(words), level, np.int32), words, np.array(limits, np.uint64), out)
        found = Counter(out.tolist())
        assert redraws == found.pop(NO_ANSWER) == 24
        window = range(level, level + inside)
        assert found == {
            code: threshold * outside if code in window else (8 - threshold) * inside
            for code in range(k + 2 * b)
        }


def test_reports_are_those_of_the_keyed_block() -> None:
    levels = np.array([-1, 0, 3, 7, 7, 2, 5], np.int32)
    people = np.arange(7, dtype=np.uint64) + np.uint64(2**63)
    fields = {"prf": ldp.KeyedPrf(KEY), "indicator": 4, "plan_version": 2, "channel": CHANNEL}
    found = wave.answers(levels, pseudonyms=people, **fields)
    assert found[0] == NO_ANSWER
    for level, person, code in zip(levels[1:].tolist(), people[1:].tolist(), found[1:].tolist(), strict=True):
        block = {"pseudonym": person, "purpose": ANSWER, "indicator": 4, "plan_version": 2, "value": level}
        if reference_words(KEY, counter=0, **block)[0] < CHANNEL.threshold:
            expected = level + reference_below(KEY, CHANNEL.width, word=1, **block)
        else:
            other = reference_below(KEY, CHANNEL.n_codes - CHANNEL.width, word=1, **block)
            expected = other + CHANNEL.width * (other >= level)
        assert code == expected
    assert wave.answers(levels, pseudonyms=people, **fields).tolist() == found.tolist()
    refuses(r"value must be in \[-1, 8\)", wave.answers, levels + 1, pseudonyms=people, **fields)


def test_figures_are_unbiased_and_as_exact_as_they_say() -> None:
    """Over the noise and the sample of 200 keys, in standard errors."""
    shares, n = shares_of(SKEWED), N // 2
    asked = {"channel": CHANNEL, "n_population": N}
    weights = np.vstack([ENDS, ABOVE])
    exact = wave_variance(shares, weights=weights, channel=CHANNEL, n_reports=n, n_population=N)
    scores, told = [], []
    for run in range(200):
        counts = counts_of(run, stays=SKEWED)
        value, variance = wave_query(counts, weights=weights, **asked)
        scores.append((value - weights @ shares) / exact**0.5)
        told.append(variance / exact)
        assert number_mean(counts, scale=SCALE, **asked).value == pytest.approx(value[0])
        assert number_survival(counts, **asked).frequency == pytest.approx(value[1:], abs=1e-8)
    for each in np.array(scores).T:
        assert abs(each.mean()) * 200**0.5 < 5.5
        assert abs((each**2).mean() - 1) < 5.5 * (2 / 200) ** 0.5
    told = np.array(told)
    assert (abs(told.mean(axis=0) - 1) < 5.5 * told.std(axis=0) / 200**0.5).all()


@pytest.mark.parametrize("epsilon", ["1/100000", "1", "6"])
def test_linear_estimates_have_the_right_mean_at_every_level(epsilon: str) -> None:
    """The mean of g at a true level is its weight, and no other unbiased g has less variance on average."""
    channel = wave_channel(epsilon=Fraction(epsilon), n_levels=33)
    counts = np.zeros(channel.n_codes, np.int64)
    weights = np.vstack([np.arange(33.0) ** 2, np.tri(33, 32, -1).T])
    of_code = np.empty((33, channel.n_codes))
    for code in range(channel.n_codes):
        counts[:] = 0
        counts[code] = 1
        of_code[:, code] = wave_query(counts, weights=weights, channel=channel, n_population=1)[0]
    scale = np.abs(of_code).max()
    assert of_code @ chances(channel) == pytest.approx(weights, abs=1e-9 * scale)
    even = chances(channel).mean(axis=1)
    free = np.linalg.svd(chances(channel).T)[2][33:]  # may be added without a change of the means
    if free.size:
        assert (of_code * even) @ free.T == pytest.approx(0, abs=1e-9 * scale)


def test_a_census_has_noise_only_and_certain_answers_tell_all() -> None:
    sure = wave_channel(epsilon=Fraction(60), n_levels=8)
    counts = np.array([10, 0, 40, 50, 60, 30, 9, 1])
    shares = wave_survival(counts, channel=sure, n_population=200)
    assert shares.frequency == pytest.approx([0.95, 0.95, 0.75, 0.5, 0.2, 0.05, 0.005], abs=1e-8)
    assert shares.consistent == pytest.approx(shares.frequency, abs=1e-8)
    assert shares.std_error == pytest.approx(0, abs=1e-4)
    half = wave_survival(counts, channel=sure, n_population=400)
    s = shares.frequency
    assert half.std_error**2 == pytest.approx(s * (1 - s) * (1 / 199 - 200 / 199 / 400), rel=1e-3)
    mean = number_mean(counts, scale=SCALE, channel=sure, n_population=200)
    assert mean.value == pytest.approx(counts @ ENDS[0] / 200)
    refuses("counts must be >= 0", wave_survival, counts[1:], channel=sure, n_population=200)
    refuses("counts must be >= 0", wave_survival, counts * 0, channel=sure, n_population=200)
    refuses("n_population must be >= 200", wave_survival, counts, channel=sure, n_population=199)
    refuses("level must be in", wave_survival, counts, channel=sure, n_population=200, level=1.0)
    refuses("weights must be", wave_query, counts, weights=ENDS[:, 1:], channel=sure, n_population=200)


def test_the_likeliest_shares_are_those_at_which_steps_gain_little() -> None:
    counts = counts_of(3)
    found = likeliest_levels(counts, channel=CHANNEL)
    matrix = chances(CHANNEL)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)

    def step(shares: Any) -> Any:
        return shares * (matrix.T @ (counts / (matrix @ shares))) / counts.sum()

    def log(shares: Any) -> float:
        return float(counts @ np.log(matrix @ shares))

    assert 0 <= log(step(found)) - log(found) < STOP * float(CHANNEL.ratio)
    best = ldp.bayes_frequencies(counts, matrix=matrix, n_population=N).frequency
    assert log(best) - log(found) < 2
    # Early steps still gain.
    even = np.full(8, 1 / 8)
    assert log(step(even)) - log(even) > STOP * float(CHANNEL.ratio)


def test_the_likeliest_distribution_is_closer_than_the_linear_one() -> None:
    truth = 1 - np.cumsum(shares_of(STAYS))[:-1]
    errors = [
        [abs(getattr(found, name) - truth).mean() for name in ("frequency", "consistent")]
        for found in (wave_survival(counts_of(run), channel=CHANNEL, n_population=N) for run in range(20))
    ]
    linear, likeliest = np.mean(errors, axis=0)
    assert likeliest < 0.9 * linear


def test_counts_of_a_cut_are_the_codes_nearer_to_levels_above() -> None:
    counts = np.arange(CHANNEL.n_codes)
    b = CHANNEL.half_width
    expected = [counts[cut + b :].sum() for cut in range(1, 8)]
    assert value_counts(counts, channel=CHANNEL).tolist() == expected


def plan_at(epsilon: Decimal, **changes: Any) -> ldp.PlanSpec:
    number = {"slug": "stay", "kind": "static", "domain_size": 7, "scale": SCALE} | changes
    asked = [
        ldp.IndicatorRequest(**each) for each in ({"slug": "sex", "kind": "static", "domain_size": 2}, number)
    ]
    plan = {"mechanism": "smp-adp", "unit": "profile", "version": 1, "days": 4, "indicators": asked}
    return ldp.build_plan(epsilon=epsilon, **plan)


def test_a_plan_foretells_the_errors_of_its_waves() -> None:
    crowd, plan = Crowd(visitors=8000, days_present=2), plan_at(Decimal(2))
    found = forecast(plan, crowd=crowd)[1]
    ends = np.zeros(8)
    ends[[0, -1]] = 0.5
    for n, error in ((8000, found.mean_error), (16_000, found.union_mean_error)):
        sizes = {"n_reports": n / 2, "n_population": n}
        variance = wave_variance(ends, weights=ENDS, channel=CHANNEL, **sizes)[0]
        assert error == pytest.approx(1.959964 * variance**0.5, rel=1e-6)
    even = np.full(8, 1 / 8)
    variance = wave_variance(even, weights=ENDS, channel=CHANNEL, n_reports=4000, n_population=8000)[0]
    assert found.even_mean_error == pytest.approx(1.959964 * variance**0.5, rel=1e-6)
    of_shares = wave_variance(even, weights=ABOVE, channel=CHANNEL, n_reports=4000, n_population=4000)
    sampling = 0.25 * 4000 / 7999 / 4000
    variance = of_shares.mean() + sampling
    assert found.day.half_width(found.even) == pytest.approx(1.959964 * variance**0.5, rel=1e-6)


@pytest.mark.parametrize("size", [2, 4, 7])
def test_the_smallest_epsilon_is_found_in_spite_of_jumps(size: int) -> None:
    cuts = tuple(60 * (i + 1) for i in range(size))
    scale = Scale(cuts=cuts, report="wave")
    crowd = Crowd(visitors=8000, days_present=2)

    def plan_of(epsilon: Decimal) -> ldp.PlanSpec:
        return plan_at(epsilon, scale=scale, domain_size=size)

    def half(epsilon: Decimal) -> float:
        found = forecast(plan_of(epsilon), crowd=crowd)[1]
        return found.day.half_width(found.even)

    every = [half(Decimal(n) / 1000) for n in range(1, 4000, 37)]
    for wanted in (0.12, 0.05, 0.03):
        found = epsilon_for_plan(plan_of, half_width=wanted, crowd=crowd, indexes=[1])
        assert half(found) <= wanted < half(found - Decimal("0.001"))
        first = next(37 * n + 1 for n, each in enumerate(every) if each <= wanted)
        assert found <= Decimal(first) / 1000


def test_waves_are_refused_where_a_person_answers_on_several_days() -> None:
    daily = {"kind": "daily"}
    refuses("report of stay must not be wave where a person reports on 4 days", plan_at, Decimal(1), **daily)
    assert ldp.certify(plan_at(Decimal(1), **daily, max_values=1)).indicators[1].n_values == 1
    plan = plan_at(Decimal(1))
    assert ldp.PlanSpec.from_json(plan.to_json()) == plan
    assert "report" not in str(plan_at(Decimal(1), scale=Scale(cuts=SCALE.cuts)).to_json())
    # A day that was undone may give a person a second answer, which loses all of epsilon again.
    undone = ldp.certify(plan_at(Decimal(1), **daily, max_values=1), extra_daily_values=2)
    assert undone.epsilon_profile > Decimal("2.999")


def test_waves_are_no_part_of_a_joint_indicator_and_have_no_presence_noise() -> None:
    asked = [
        {"slug": "sex", "kind": "static", "domain_size": 2},
        {"slug": "stay", "kind": "static", "domain_size": 7, "scale": SCALE},
    ]
    both = [*asked, {"slug": "both", "kind": "static", "domain_size": 9, "parts": ("sex", "stay")}]
    plan = {"mechanism": "smp-grr", "unit": "profile", "version": 1, "days": 4, "epsilon": Decimal(1)}

    def build(indicators: Any, **changes: Any) -> ldp.PlanSpec:
        return ldp.build_plan(
            **plan, indicators=[ldp.IndicatorRequest(**each) for each in indicators], **changes
        )

    refuses("parts of both must not have wave reports", build, both)
    refuses(
        "presence_epsilon must be absent with the number",
        build,
        asked,
        presence_epsilon=Decimal(1),
        presence_days=2,
    )


def test_guesses_are_those_of_all_codes() -> None:
    """By enumeration of codes and of pairs of them."""
    channel = wave_channel(epsilon=Fraction(1), n_levels=5)
    law, prior = chances(channel), np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    expected = sum(
        max(prior[level] * law[code, level] for level in range(5)) for code in range(channel.n_codes)
    )
    assert guess_success(channel, prior=prior) == pytest.approx(expected)
    total = 0.0
    for known in range(5):
        for one in range(channel.n_codes):
            for other in range(channel.n_codes):
                same = law[one, known] * (one == other)
                apart = [law[one, known] * law[other, level] for level in range(5) if level != known]
                total += max(same, *apart) / 25
    assert known_day_success(channel) == pytest.approx(total)

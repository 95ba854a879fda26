"""Closed forms of what repeated reports reveal, against every sequence of every tiny person."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from itertools import permutations, product
from math import prod
from typing import Any

import pytest

from ldp.errors import LdpError
from ldp.privacy.certificates import Memoised, certify_reports, epsilon_of_study, worst_ratio
from ldp.protocols.bit_flip import bit_flip_channel
from ldp.protocols.channels import WORD, GrrChannel, epsilon_of, grr_channel
from ldp.protocols.two_round import TwoRoundGrr, lgrr_channel, loloha_channel
from ldp.protocols.two_round_unary import TwoRoundUnary, lue_channel
from ldp.protocols.unary import UnaryChannel, sue_channel
from tests.ldp.exact import refuses

Law = dict[Hashable, Fraction]
Step = Callable[[Any], Law]

NOMINAL = {"epsilon_inf": Fraction(2), "epsilon_1": Fraction(1)}


def grr_step(channel: GrrChannel) -> Step:
    k = channel.domain_size
    return lambda value: {x: channel.p if x == value else channel.q for x in range(k)}


def bits_step(bit: UnaryChannel) -> Step:
    """Vector of bits to vector of bits, each on its own."""

    def law(bits: tuple[int, ...]) -> Law:
        ones = [bit.p if b else bit.q for b in bits]
        return {
            out: prod((p if o else 1 - p for o, p in zip(out, ones, strict=True)), start=Fraction(1))
            for out in product((0, 1), repeat=len(bits))
        }

    return law


def steps(channel: TwoRoundGrr | TwoRoundUnary) -> tuple[Step, Step]:
    """First round of a value, second round of a kept answer."""
    if isinstance(channel, TwoRoundGrr):
        return grr_step(channel.first), grr_step(channel.second)
    first, k = bits_step(channel.first), channel.domain_size
    return lambda value: first(tuple(int(x == value) for x in range(k))), bits_step(channel.second)


def law_of_reports(values: tuple[int, ...], channel: TwoRoundGrr | TwoRoundUnary) -> Law:
    """Reports of a sequence of values: equal values share a kept answer."""
    first, second = steps(channel)
    distinct = sorted(set(values))
    law: Law = defaultdict(Fraction)
    for kept in product(*(first(value).items() for value in distinct)):
        answer_of = dict(zip(distinct, (answer for answer, _ in kept), strict=True))
        weight = prod((p for _, p in kept), start=Fraction(1))
        for reports in product(*(second(answer_of[value]).items() for value in values)):
            p = prod((p for _, p in reports), start=Fraction(1))
            law[tuple(report for report, _ in reports)] += weight * p
    assert sum(law.values()) == 1
    return law


def worst(laws: Iterable[tuple[Law, Law]]) -> Fraction:
    return max(law[report] / p for law, other in laws for report, p in other.items())


def pattern(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(values.index(value) for value in values)


def worst_of_sequences(channel: TwoRoundGrr | TwoRoundUnary, *, t: int, same_pattern: bool) -> Fraction:
    laws = {v: law_of_reports(v, channel) for v in product(range(channel.domain_size), repeat=t)}
    pairs = ((a, b) for a, b in product(laws, repeat=2) if not same_pattern or pattern(a) == pattern(b))
    return worst((laws[a], laws[b]) for a, b in pairs)


TINY = {
    "l-grr-2": lgrr_channel(**NOMINAL, domain_size=2),
    "l-grr-3": lgrr_channel(**NOMINAL, domain_size=3),
    "l-grr-4": lgrr_channel(**NOMINAL, domain_size=4),
    "l-grr-paper": lgrr_channel(**NOMINAL, domain_size=4, tuning="paper"),
    "l-grr-horizon": lgrr_channel(**NOMINAL, domain_size=3, horizon=2),
    **{name: lue_channel(name, **NOMINAL, domain_size=2) for name in ("l-sue", "l-oue", "l-osue", "l-soue")},
}


@pytest.mark.parametrize("t", [1, 2, 3])
@pytest.mark.parametrize("name", TINY)
def test_reports_of_one_value(name: str, t: int) -> None:
    channel = TINY[name]
    laws = [law_of_reports((value,) * t, channel) for value in range(channel.domain_size)]
    certificate = certify_reports(channel, reports=[t])
    assert worst(product(laws, repeat=2)) == channel.ratio_of(reports=t) == certificate.ratio
    assert certificate.epsilon_value == certificate.epsilon_values == epsilon_of(certificate.ratio)
    assert certificate.epsilon_report == channel.epsilon
    assert certificate.epsilon_values <= certificate.epsilon_limit <= 2
    if t == 2 and name == "l-grr-horizon":
        assert certificate.epsilon_value <= 1 < 2 * certificate.epsilon_report


@pytest.mark.parametrize(
    ("name", "t"), [("l-grr-2", 3), ("l-grr-3", 3), ("l-grr-4", 2), ("l-osue", 3), ("l-oue", 2)]
)
def test_values_that_change_at_the_same_times(name: str, t: int) -> None:
    channel = TINY[name]
    laws = {v: law_of_reports(v, channel) for v in product(range(channel.domain_size), repeat=t)}
    for values in laws:
        counts = [values.count(value) for value in sorted(set(values))]
        same = [each for each in laws if pattern(each) == pattern(values)]
        found = worst((laws[a], laws[b]) for a, b in permutations(same, 2))
        assert found == certify_reports(channel, reports=counts).ratio
    m = min(t, channel.domain_size)
    whole = worst_of_sequences(channel, t=t, same_pattern=True)
    assert epsilon_of_study(channel, reports=t, n_values=m) == epsilon_of(whole)


@pytest.mark.parametrize(("name", "t"), [("l-grr-2", 3), ("l-grr-3", 3), ("l-osue", 2), ("l-soue", 2)])
def test_any_two_sequences_stay_within_the_second_round(name: str, t: int) -> None:
    channel = TINY[name]
    any_two = worst_of_sequences(channel, t=t, same_pattern=False)
    certificate = certify_reports(channel, reports=[t])
    assert any_two <= channel.second_ratio**t
    assert certificate.epsilon_sequence == epsilon_of(channel.second_ratio**t)
    assert any_two >= worst_of_sequences(channel, t=t, same_pattern=True)


@pytest.mark.parametrize(("p", "q"), [(WORD // 10 * 9, WORD // 10 * 3), (WORD // 2, WORD // 10)])
def test_all_bits_of_two_kept_answers_may_differ(p: int, q: int) -> None:
    first = sue_channel(epsilon=Fraction(1), domain_size=3)
    second = UnaryChannel(domain_size=3, threshold_p=p, threshold_q=q)
    laws = [bits_step(second)(kept) for kept in product((0, 1), repeat=3)]
    assert worst(product(laws, repeat=2)) == TwoRoundUnary(first=first, second=second).second_ratio


@pytest.mark.parametrize(("k", "g", "t"), [(3, 2, 2), (3, 3, 1), (4, 2, 1), (2, 3, 2)])
def test_loloha_over_every_hash(k: int, g: int, t: int) -> None:
    channel = loloha_channel(**NOMINAL, domain_size=k, buckets=g)
    laws: list[Law] = [{} for _ in range(k)]
    for hashed in product(range(g), repeat=k):
        for value, law in enumerate(laws):
            for reports, p in law_of_reports((hashed[value],) * t, channel.rounds).items():
                law[hashed, reports] = p / g**k
    assert worst(product(laws, repeat=2)) == channel.ratio_of(reports=t)
    if t == 1:
        supports = [sum(p for (h, (x,)), p in laws[0].items() if h[value] == x) for value in range(k)]
        assert supports == [channel.p] + [channel.q] * (k - 1)


def test_loloha_values_in_one_bucket_change_unseen_and_the_sequence_bound_still_holds() -> None:
    channel = loloha_channel(epsilon_inf=Fraction(1), epsilon_1=Fraction(99, 100), domain_size=4, buckets=2)
    same_bucket, two_buckets = law_of_reports((0, 0), channel.rounds), law_of_reports((0, 1), channel.rounds)
    loss = worst([(two_buckets, same_bucket)])
    assert loss > certify_reports(channel, reports=[1, 1]).ratio
    assert loss <= channel.second_ratio**2
    with pytest.raises(LdpError, match=r"number of distinct values must be in \[1, 2\], got 3"):
        certify_reports(channel, reports=[1, 1, 1])


def test_one_round_loses_the_same_however_often_it_is_repeated() -> None:
    channel = grr_channel(epsilon=Fraction(1), domain_size=3)
    certificate = certify_reports(Memoised(channel=channel), reports=[5, 1])
    assert certificate.epsilon_report == certificate.epsilon_value == channel.epsilon
    assert certificate.ratio == channel.ratio**2
    assert certificate.epsilon_values == certificate.epsilon_limit <= 2
    assert certificate.epsilon_sequence is None
    assert epsilon_of_study(Memoised(channel=channel), reports=9, n_values=3) <= 3


@pytest.mark.parametrize("tuning", ["exact", "paper"])
@pytest.mark.parametrize("sampled", [1, 2, 3])
def test_bit_flip_over_every_choice_of_values(sampled: int, tuning) -> None:
    channel = bit_flip_channel(epsilon=Fraction(1), domain_size=3, sampled=sampled, tuning=tuning)
    laws: list[Law] = [{} for _ in range(3)]
    step = bits_step(channel.bits)
    for chosen in permutations(range(3), sampled):
        for value, law in enumerate(laws):
            for bits, p in step(tuple(int(x == value) for x in chosen)).items():
                law[chosen, bits] = p
    assert worst(product(laws, repeat=2)) == channel.ratio
    assert epsilon_of(channel.ratio) == channel.epsilon <= 1
    assert certify_reports(Memoised(channel=channel), reports=[3, 2]).ratio == channel.ratio**2


def test_the_worst_split_is_found_where_all_lose_nearly_the_same() -> None:
    """Two halves of 36 reports lose 4e-27 more than 17 and 19 of them."""
    channel = lgrr_channel(epsilon_inf=Fraction("8.051"), epsilon_1=Fraction("4.0255"), domain_size=2)
    ratios = [Fraction(1), *(channel.ratio_of(reports=t) for t in range(1, 37))]
    worst = max(ratios[t] * ratios[36 - t] for t in range(19))
    assert worst_ratio(channel, reports=36, n_values=2) == worst == ratios[18] ** 2


def test_horizon_of_a_study_may_be_long() -> None:
    channel = lgrr_channel(epsilon_inf=Fraction(4), epsilon_1=Fraction(1), domain_size=37, horizon=62)
    assert channel.ratio_of(reports=62) <= channel.limit_ratio
    assert Fraction(9999, 10000) < epsilon_of(channel.ratio_of(reports=62)) <= 1
    assert epsilon_of_study(channel, reports=62, n_values=37) <= 37 * 4


def test_numbers_of_values_and_reports_out_of_range_are_refused() -> None:
    for channel in (TINY["l-grr-3"], TINY["l-sue"], Memoised(channel=TINY["l-grr-3"])):
        refuses("reports must be >= 1, got 0", certify_reports, channel, reports=[1, 0])
        refuses("reports must be >= 1, got 0", epsilon_of_study, channel, reports=0, n_values=1)
    for n in (0, 4):
        message = rf"number of distinct values must be in \[1, 3\], got {n}"
        refuses(message, certify_reports, TINY["l-grr-3"], reports=[1] * n)
        refuses(message, epsilon_of_study, TINY["l-grr-3"], reports=5, n_values=n)

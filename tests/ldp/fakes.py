"""Laws of RS+FD and RS+RFD by enumeration: draw the indicator, answer it, fake the others."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from ldp import FakeDataChannel, FakedChannel, PriorFakeDataChannel, PriorFakedChannel
from ldp.protocols.channels import WORD, GrrChannel
from ldp.protocols.projective_space import DesignChannel, is_orthogonal
from ldp.protocols.two_round import TwoRoundGrr
from tests.ldp.exact import largest_ratios

Report = FakedChannel | PriorFakedChannel
Law = dict[tuple[Any, ...], Fraction]


def prior(*parts: int) -> tuple[int, ...]:
    """Weights out of 2**64 in these proportions; the first takes what rounding leaves."""
    rest = [WORD * part // sum(parts) for part in parts[1:]]
    return (WORD - sum(rest), *rest)


def outputs(report: Report) -> Iterator[Any]:
    k = report.domain_size
    return iter(range(k)) if report.fake == "code" else product((0, 1), repeat=k)


def supports(report: Report, output, value: int) -> bool:
    return bool(output == value if report.fake == "code" else output[value])


def answer_probability(report: Report, output: Any, value: int | None) -> Fraction:
    answer = report.answer
    if isinstance(answer, GrrChannel):
        return answer.p if output == value else answer.q
    ones = [answer.p if j == value else answer.q for j in range(answer.domain_size)]
    terms = (one if bit else 1 - one for bit, one in zip(output, ones, strict=True))
    return prod(terms, start=Fraction(1))


def fake_probability(report: Report, output) -> Fraction:
    k = report.domain_size
    if report.fake == "no value":
        return answer_probability(report, output, None)
    prior = [Fraction(weight, WORD) for weight in getattr(report, "prior", [Fraction(WORD, k)] * k)]
    if report.fake == "code":
        return prior[output]
    terms = (weight * answer_probability(report, output, value) for value, weight in enumerate(prior))
    return sum(terms, Fraction(0))


def as_report(channel) -> Report:
    if hasattr(channel, "fake"):
        return channel
    fake = "code" if isinstance(channel, GrrChannel) else "no value"
    return FakedChannel(answer=channel, fake=fake, share=Fraction(1))


def chances(channel) -> dict[Any, list[Fraction]]:
    if isinstance(channel, DesignChannel):
        size, n = channel.support_size, channel.n_codes
        hits = [is_orthogonal(value, channel=channel).tolist() for value in range(channel.domain_size)]
        return {
            y: [channel.p / size if hit[y] else (1 - channel.p) / (n - size) for hit in hits]
            for y in range(n)
        }
    if isinstance(channel, TwoRoundGrr):
        values = range(channel.domain_size)
        return {y: [channel.p if y == value else channel.q for value in values] for y in values}
    report = as_report(channel)
    share = report.share

    def chance(y: Any, value: int) -> Fraction:
        return share * answer_probability(report, y, value) + (1 - share) * fake_probability(report, y)

    return {y: [chance(y, value) for value in range(report.domain_size)] for y in outputs(report)}


def law(channel: FakeDataChannel | PriorFakeDataChannel, profile: tuple[int, ...]) -> Law:
    reports = channel.reports
    fakes = [{y: fake_probability(report, y) for y in outputs(report)} for report in reports]
    pairs = zip(reports, profile, strict=True)
    true = [{y: answer_probability(report, y, value) for y in outputs(report)} for report, value in pairs]
    found = {}
    for tuple_ in product(*fakes):
        terms = (
            reports[j].share * prod((true if i == j else fakes)[i][y] for i, y in enumerate(tuple_))
            for j in range(len(reports))
        )
        found[tuple_] = sum(terms, Fraction(0))
    return found


def losses(channel: FakeDataChannel | PriorFakeDataChannel) -> dict[tuple[int, ...], Fraction]:
    laws = {p: law(channel, p) for p in product(*(range(r.domain_size) for r in channel.reports))}
    assert all(sum(found.values()) == 1 for found in laws.values())
    return largest_ratios(laws, alike=differing)


def differing(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i, (x, y) in enumerate(zip(one, other, strict=True)) if x != y)


def supports_alone(channel: FakeDataChannel | PriorFakeDataChannel, index: int, value: int) -> list[Fraction]:
    report = channel.reports[index]
    profile = tuple(value if i == index else 0 for i in range(len(channel.reports)))
    joint = law(channel, profile)
    likely, values = joint.items(), range(report.domain_size)
    return [sum((x for y, x in likely if supports(report, y[index], v)), Fraction(0)) for v in values]

#!/usr/bin/env python3
"""Recompute every claim of a privacy statement from the parameters that it exports.

    python check_statement.py STATEMENT.json [OTHER.json ...]

The first file is checked. Further ones are statements of studies of the same population: what the first one
says of them is compared with what they say of themselves. Exit 0: everything holds; 1: something differs, and
each difference is named; 2: a file cannot be read. docs/statement.md lists what no script can see, above
all how many days were undone (guarantee.voided_days).

Apart on purpose: the standard library only, and nothing of the software that wrote the statement. Numbers are
exact fractions; a logarithm or an exponential is a pair of fractions that is proved to enclose it.
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise
from math import erfc, exp, isqrt, nextafter, pi, prod, sqrt
from pathlib import Path
from typing import Any, NamedTuple

WORD = 2**64
BITS = 320  # after the point, in bounds
DIGITS = 30  # of an epsilon, rounded up
QUANTILE_95 = Fraction(4743864518391, 10**12)  # x with (1 + x) e^-x = 0.05
MICRO = Fraction(1, 10**6)  # the last digit of standard errors
TENTH_M = Fraction(501, 10_000)  # half of the last digit of lengths
MAX_CODES, MAX_TALLY_CELLS = 65_534, 8_000_000
MAX_PARTS = 3
MAX_CUTS, MAX_NUMBER = 127, 10**9
MAX_MOVES = 100  # of a day, with their full weight
THRESHOLDS = {
    "grr": ("threshold",),
    "oue": ("threshold_p", "threshold_q"),
    "projective": ("threshold", "prime", "dimension", "codes"),
    "threshold": ("threshold",),
    "wave": ("threshold", "half_width", "codes"),
    "question": ("threshold", "prime", "dimension", "codes"),
    "loloha": ("threshold", "threshold_second", "prime", "dimension", "codes"),
    "groups": (),
    "l-grr": ("threshold", "threshold_second"),
    "l-osue": ("threshold_p", "threshold_q", "threshold_second"),
    "sensitive": ("threshold", "threshold_other"),
}
ORACLES = {
    "smp": ("grr", "oue", "adp", "question", "loloha", "allomfree", "stream"),
    "spl": ("grr",),
    "rsfd": ("grr", "ouez", "adp"),
}
PRIMES = tuple(n for n in range(2, 256) if all(n % each for each in range(2, isqrt(n) + 1)))
TALLIES = ("visits", "runs")
SLOT_MINUTES = (15, 30, 60, 120)
MAX_DAYS, MAX_EVENT_DAYS = 62, 7_320
MAX_EVENTS = 1_000  # of a person that are answered
OF_EVENTS = ("smp-grr", "smp-oue", "smp-adp", "spl-grr")
OF_FIRST = ("smp-loloha", "smp-allomfree")
MAX_BITS = 1_920  # of a report that is renewed each day
OF_CLASSES, MAX_CLASSES = ("smp-grr", "smp-oue", "smp-adp"), 20
MAX_EPSILON = 64  # of an answer
# Additions of the arithmetic of places, in 1 / epsilon, radians and squares (see ldp/geo/precision.py).
RADIUS_ERROR, ANGLE_ERROR, PLACE_ERROR = 2.6e-10, 7.4e-10, 1e-11
TAIL, TAIL_SHARE = 40, 4.25e-18  # epsilon times a distance, and what lies beyond it
KEPT_SHARE = Fraction(99, 100)  # of the nominal epsilon: finite precision may cost no more

Json = dict[str, Any]


class Bounds(NamedTuple):
    """Bounds of a real number."""

    low: Fraction
    high: Fraction


def exp_bounds(x: Fraction) -> Bounds:
    """Enclose e**x, x >= 0: a series for x / 2**h, at most 1/2, then h squarings, rounded outwards."""
    halvings = max(0, (2 * x.numerator // x.denominator).bit_length())
    one, scaled = 1 << BITS, x / 2**halvings
    low = (scaled.numerator << BITS) // scaled.denominator
    high = _up(scaled.numerator << BITS, scaled.denominator)
    term_low = term_high = sum_low = sum_high = one
    for n in range(1, 80):
        term_low, term_high = term_low * low // (one * n), _up(term_high * high, one * n)
        sum_low, sum_high = sum_low + term_low, sum_high + term_high
    sum_high += 2 * term_high  # the rest is less than its last term twice, since x <= 1/2
    for _ in range(halvings):
        sum_low, sum_high = sum_low**2 // one, _up(sum_high**2, one)
    return Bounds(Fraction(sum_low, one), Fraction(sum_high, one))


def log_bounds(x: Fraction) -> Bounds:
    """Enclose ln x, x >= 1: k ln 2 + ln m with 1 <= m < 2."""
    power = x.numerator.bit_length() - x.denominator.bit_length()
    power -= x < Fraction(2) ** power
    rest, two = _log_small(x / Fraction(2) ** power), _log_small(Fraction(2))
    return Bounds(power * two.low + rest.low, power * two.high + rest.high)


def _log_small(m: Fraction) -> Bounds:
    """Enclose ln m, 1 <= m <= 2: twice the sum of z**(2i+1) / (2i+1), z = (m - 1) / (m + 1) <= 1/3."""
    one, z = 1 << BITS, (m - 1) / (m + 1)
    low, high = (z.numerator << BITS) // z.denominator, _up(z.numerator << BITS, z.denominator)
    power_low, power_high, sum_low, sum_high = low, high, 0, 0
    for n in range(1, 240, 2):
        sum_low, sum_high = sum_low + power_low // n, sum_high + _up(power_high, n)
        power_low, power_high = power_low * low**2 // one**2, _up(power_high * high**2, one**2)
    sum_high += 2 * power_high  # the rest is a geometric series of ratio z**2 <= 1/9
    return Bounds(Fraction(2 * sum_low, one), Fraction(2 * sum_high, one))


def ln(x: Fraction) -> Bounds:
    """Enclose ln x, x > 0."""
    if x >= 1:
        return log_bounds(x)
    low, high = log_bounds(1 / x)
    return Bounds(-high, -low)


def rounded_up(x: Fraction) -> Fraction:
    """To 30 digits; x >= 0, and a claim of less has none."""
    if x <= 0:
        return x
    place = Fraction(1)
    while x / place >= 10**DIGITS:
        place *= 10
    while x / place < 10 ** (DIGITS - 1):
        place /= 10
    return place * _up((x / place).numerator, (x / place).denominator)


def _up(a: int, b: int) -> int:
    """Quotient, rounded up."""
    return -(-a // b)


class Findings:
    """Differences between what is said and what follows from the parameters."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.checked = 0

    def equal(self, where: str, said: object, found: object) -> None:
        self.holds(where, said == found, f"says {said}, it is {found}")

    def holds(self, where: str, is_so: object, text: str) -> None:
        self.checked += 1
        if not is_so:
            self.texts.append(f"{where}: {text}")

    def up(self, where: str, said: str, found: Bounds) -> None:
        """The claim is the number rounded up to 30 digits, and so never below it."""
        is_so = Fraction(said) in (rounded_up(found.low), rounded_up(found.high))
        self.holds(where, is_so, f"says {said}, it is {float(found.high):.17g} rounded up")


class Channel(NamedTuple):
    """Probabilities that an answer names or marks the true category, and one given other one."""

    protocol: str
    thresholds: tuple[int, ...]
    p: Fraction
    q: Fraction
    ratio: Fraction


def grr(epsilon: Fraction, k: int) -> Iterator[Channel]:
    """Keep the true category when 64 random bits are below floor(2**64 e / (e + k - 1))."""
    for threshold in {int(WORD * e / (e + k - 1)) for e in exp_bounds(epsilon)}:
        p = Fraction(threshold, WORD)
        q = (1 - p) / (k - 1)
        yield Channel("grr", (threshold,), p, q, p / q)


def oue(epsilon: Fraction, _: int) -> Iterator[Channel]:
    """The bit of the true category is fair; that of another one when 64 bits are below ceil(2**64/(e+1))."""
    for threshold in {-int(-(WORD / (e + 1)) // 1) for e in exp_bounds(epsilon)}:
        p, q = Fraction(1, 2), Fraction(threshold, WORD)
        yield Channel("oue", (WORD // 2, threshold), p, q, p * (1 - q) / ((1 - p) * q))


def projective(epsilon: Fraction, k: int, *, most: int) -> Iterator[Channel]:
    """A point orthogonal to the true category's with the threshold's probability; the least variance wins."""
    for e in exp_bounds(epsilon):
        found = []
        for r in PRIMES:
            t = next(t for t in range(3, 64) if (r**t - 1) // (r - 1) >= k)
            n, s, shared = ((r**size - 1) // (r - 1) for size in (t, t - 1, t - 2))
            if n <= most:
                threshold = int(WORD * e * s / (e * s + n - s))
                p = Fraction(threshold, WORD)
                q = p * shared / s + (1 - p) * (s - shared) / (n - s)
                ratio = Fraction(threshold * (n - s), (WORD - threshold) * s)
                found.append(Channel("projective", (threshold, r, t, n), p, q, ratio))
        if found:
            yield min(found, key=lambda channel: noise(channel, k=k, share=Fraction(1)))


def max_codes(days: int) -> int:
    """Most codes of a report whose tallies can be kept."""
    return min(MAX_CODES, MAX_TALLY_CELLS // (days + 1) ** 2)


def codes(epsilon: Fraction, k: int, *, most: int) -> list[Channel]:
    """Return the possible mechanisms of one of at most `most` codes: those with the smaller variance."""
    first, second = next(grr(epsilon, k)), next(projective(epsilon, k, most=most), None)
    if second is None or noise(first, k=k, share=Fraction(1)) <= noise(second, k=k, share=Fraction(1)):
        return list(grr(epsilon, k))
    return list(projective(epsilon, k, most=most))


def sides(epsilon: Fraction) -> list[Channel]:
    """Return the possible mechanisms of a number: whether it reaches a cut, as one of two categories."""
    return [channel._replace(protocol="threshold") for channel in grr(epsilon, 2)]


def waves(epsilon: Fraction, levels: int) -> Iterator[Channel]:
    """A code within the half width of the true level has e**epsilon times the probability of any other.

    The half width is (x e - e + 1) / (2 e (e - 1 - x)) of the levels, x = epsilon, rounded down.
    """
    for e in exp_bounds(epsilon):
        half = int((epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon)) * levels)
        width = 2 * half + 1
        threshold = int(WORD * e * width / (e * width + levels - 1))
        p, q = Fraction(threshold, WORD * width), Fraction(WORD - threshold, WORD * (levels - 1))
        yield Channel("wave", (threshold, half, levels + 2 * half), p, q, p / q)


def questions(epsilon: Fraction, k: int) -> Iterator[Channel]:
    """Keep the true answer to "is it one of these?"; a question divides 2**t values into halves.

    Two categories are on one side in (2**(t-1) - 1) of the 2**t - 1 questions.
    """
    t = (k - 1).bit_length()
    together = Fraction(2 ** (t - 1) - 1, 2**t - 1)
    for side in grr(epsilon, 2):
        q = together * side.p + (1 - together) * side.q
        yield Channel("question", (*side.thresholds, 2, t, 2 * (2**t - 1)), side.p, q, side.ratio)


def hashes(
    epsilon: Fraction, first: Fraction, k: int, *, primes: tuple[int, ...], most: int
) -> list[Channel]:
    """Return the possible mechanisms of hashed values: a question with r answers, kept, then noisy again.

    The kept answer is reported when 64 further bits are below the largest threshold with which one report
    changes the odds by e**first at most; of several r, the least variance wins.
    """
    found = []
    for e, f in ((e, f) for e in exp_bounds(epsilon) for f in exp_bounds(first)):
        of_primes = []
        for r in primes:
            t = next(t for t in range(1, 64) if r**t >= k)
            n_codes, together = r * (r**t - 1) // (r - 1), Fraction(r ** (t - 1) - 1, r**t - 1)
            if n_codes > most:
                continue
            rounds = two_rounds(e, f, r)
            q = together * rounds.p + (1 - together) * rounds.q
            numbers = (*rounds.thresholds, r, t, n_codes)
            of_primes.append(Channel("loloha", numbers, rounds.p, q, rounds.ratio))
        if of_primes:
            found.append(min(of_primes, key=lambda channel: noise(channel, k=k, share=Fraction(1))))
    return found


def two_rounds(e: Fraction, f: Fraction, k: int) -> Channel:
    """Keep one of k answers with e, then the largest threshold with which a report loses f at most."""
    kept, others = int(WORD * e / (e + k - 1)), k - 1
    lost = WORD - kept
    # Chances of a report under its own answer and under another one are linear in the second threshold.
    rise, start = kept * others**2 - others * lost, others * lost * WORD
    fall, end = lost - kept * others, (kept * others + (others - 1) * lost) * WORD
    second = int((f * end - start) / (rise - f * fall))
    ratio = Fraction(rise * second + start, fall * second + end)
    p = Fraction(rise * second + start, (WORD * others) ** 2)
    return Channel("l-grr", (kept, second), p, (1 - p) / others, ratio)


def two_rounds_of_bits(e: Fraction, f: Fraction) -> Channel:
    """Keep a bit for each category as OUE does with e; a report turns each with the same chance.

    A bit is kept when 64 further bits are below the largest threshold with which a report loses f at most.
    """
    marked = -int(-(WORD / (e + 1)) // 1)
    # A report turns the odds by s / (1 - s), s the chance to report a bit as it is, if it is of another one.
    second = int(WORD * (f / (1 + f) * WORD - marked) / (WORD - 2 * marked))
    q = Fraction(marked * second + (WORD - marked) * (WORD - second), WORD**2)
    return Channel("l-osue", (WORD // 2, marked, second), Fraction(1, 2), q, (1 - q) / q)


def renewed(epsilon: Fraction, first: Fraction, k: int) -> list[Channel]:
    """Return the possible mechanisms of values that last, reported again each day: the smaller variance."""
    found = []
    for e, f in ((e, f) for e in exp_bounds(epsilon) for f in exp_bounds(first)):
        both = two_rounds(e, f, k), two_rounds_of_bits(e, f)
        found.append(min(both, key=lambda channel: noise(channel, k=k, share=Fraction(1))))
    return found


def ratio_of_reports(channel: Channel, n: int, k: int) -> Fraction:
    """Most that n reports on one kept answer change the odds: all of them name the same one."""
    if channel.protocol == "l-osue":
        return ratio_of_bits(channel, n)
    kept, second = channel.thresholds[:2]
    r = channel.thresholds[2] if channel.protocol == "loloha" else k
    others, lost = r - 1, WORD - kept
    same, moved = (second * others) ** n, (WORD - second) ** n
    hit = kept * others * same + others * lost * moved
    return Fraction(hit, kept * others * moved + lost * same + (others - 1) * lost * moved)


def ratio_of_bits(channel: Channel, n: int) -> Fraction:
    """Most that n reports of bits change the odds: all mark the true category, and never another one."""
    _, marked, second = channel.thresholds
    alike, turned = second**n, (WORD - second) ** n
    return Fraction(marked * turned + (WORD - marked) * alike, marked * alike + (WORD - marked) * turned)


def worst_ratio(channel: Channel, *, reports: int, sets: int, k: int) -> Fraction:
    """Most that reports on some kept answers change the odds: for the worst numbers of reports of each."""
    ratios = [Fraction(1), *(ratio_of_reports(channel, n, k) for n in range(1, reports + 1))]
    losses = [int(log_bounds(ratio).low * 2**BITS) for ratio in ratios]
    worst = [(loss, [n]) for n, loss in enumerate(losses)]
    for _ in range(min(sets, reports) - 1):
        worst = [
            max((worst[n - own][0] + losses[own], [*worst[n - own][1], own]) for own in range(n + 1))
            for n in range(reports + 1)
        ]
    return prod((ratios[n] for n in worst[reports][1]), start=Fraction(1))


def cut_shares(scale: Json) -> list[int]:
    """Probability of each cut times 2**64, as its distance from the one before; the first has the rest."""
    ends = [scale["minimum"], *scale["cuts"]]
    whole = ends[-1] - ends[0]
    rest = [round(Fraction(WORD * (high - low), whole)) for low, high in pairwise(ends[1:])]
    return [WORD - sum(rest), *rest]


def fake_support(channel: Channel, k: int) -> Fraction:
    """Probability that a made-up report names or marks one given category."""
    return Fraction(1, k) if channel.protocol == "grr" else channel.q


def noise(channel: Channel, *, k: int, share: Fraction) -> Fraction:
    """Variance of one report's estimate of a category that no one has; share: of answers among reports."""
    support = fake_support(channel, k)
    p, q = (share * each + (1 - share) * support for each in (channel.p, channel.q))
    return q * (1 - q) / (p - q) ** 2


def channels(mechanism: str, epsilon: Fraction, k: int, *, share: Fraction) -> list[Channel]:
    """Return the possible mechanisms of an indicator; several only if bounds of e**epsilon fit both."""
    oracle = mechanism.split("-")[1]
    if oracle in ("grr", "oue", "ouez"):
        return list(grr(epsilon, k) if oracle == "grr" else oue(epsilon, k))
    first, second = next(grr(epsilon, k)), next(oue(epsilon, k))
    is_first = noise(first, k=k, share=share) <= noise(second, k=k, share=share)
    return list(grr(epsilon, k) if is_first else oue(epsilon, k))


class Plan:
    """The plan of a statement, read from its canonical form."""

    def __init__(self, statement: Json) -> None:
        self.spec: Json = statement["plan"]["spec"]
        self.mechanism: str = self.spec["mechanism"]
        self.unit: str = self.spec["unit"]
        self.days: int = self.spec["days"]
        self.asked: list[Json] = self.spec["indicators"]
        self.d = len(self.asked)
        self.has_fakes = self.mechanism.startswith("rsfd-")
        self.answers_one = self.has_fakes or self.mechanism.startswith("smp-")
        self.tallies: list[str] = self.spec.get("tallies", [])
        self.is_static = all(each["kind"] == "static" for each in self.asked)
        self.voided: int = statement["guarantee"]["voided_days"]
        self.first: Json | None = self.spec.get("first")
        self.window: int | None = self.spec.get("window_days")
        self.events: bool = self.spec.get("events", False)
        self.max_events: int | None = self.spec.get("max_events")
        self.classes: list[Json] = self.spec.get("classes", [])
        # Of hashed values the number of sets, which is checked with the other numbers of the indicator.
        self.primes: list[int] = [entry.get("prime", 1) for entry in statement["indicators"]]

    def has_valid_classes(self) -> bool:
        """Return whether classes are absent, or several, the largest epsilon that of all indicators."""
        if "classes" not in self.spec:
            return True
        slugs = {each["slug"] for each in self.classes}
        largest = max((Fraction(each["epsilon"]) for each in self.classes), default=Fraction(0))
        absent = {"location", "presence", "slots", "events"} & self.spec.keys()
        absent |= {"parts", "scale", "moves", "by_code"} & {key for row in self.asked for key in row}
        return (
            2 <= len(slugs) == len(self.classes) <= MAX_CLASSES
            and self.mechanism in OF_CLASSES
            and not absent
            and all(0 < Fraction(each["epsilon"]) <= MAX_EPSILON for each in self.classes)
            and {Fraction(row["epsilon"]) for row in self.asked} == {largest}
        )

    def has_valid_regions(self) -> bool:
        """Return whether groups and values that answers disclose are valid, and nothing needs all hidden."""
        told = [row for row in self.asked if row.keys() & {"regions", "sensitive"}]
        parts = {part for row in self.asked for part in row.get("parts", ())}
        return not told or (
            self.mechanism in OF_CLASSES
            and not {"presence", "classes", "events"} & self.spec.keys()
            and all(
                (has_regions(row) if "regions" in row else has_sensitive(row))
                and not row.keys() & {"parts", "scale", "moves", "by_code"}
                and row["slug"] not in parts
                for row in told
            )
        )

    def has_valid_units(self) -> bool:
        """Events are there on one day: their indicators are static and plain, and nothing counts people."""
        if "events" not in self.spec:
            return "max_events" not in self.spec
        of_people = {"location", "presence", "tallies", "slots", "first", "window_days"}
        is_plain = all(
            row["kind"] == "static" and not {"parts", "scale", "moves"} & row.keys() for row in self.asked
        )
        return (
            self.events is True
            and self.mechanism in OF_EVENTS
            and is_plain
            and ("max_events" not in self.spec or self.max_events in range(1, MAX_EVENTS + 1))
            and not of_people & self.spec.keys()
        )

    def share(self, index: int) -> Fraction:
        """Probability that a person answers an indicator."""
        if "shares" in self.spec:
            return Fraction(int(self.spec["shares"][index]), WORD)
        return Fraction(1, self.d) if self.answers_one else Fraction(1)

    def values(self, index: int) -> int:
        """Most different answers of a person."""
        asked, n = self.asked[index], self.reports(index)
        if self.is_renewed(index):
            return 1
        if self.is_hashed(index):
            return min(n, self.primes[index], int(asked["domain_size"]))
        # A number has an answer on each side of the cut, a question one for "yes" and one for "no".
        has_cut = "scale" in asked and not is_wave(asked)
        return min(n, 2) if has_cut or self.has_question(index) else n

    def reports(self, index: int) -> int:
        """Most reports of a person that may differ; those of days that were undone repeat if values last."""
        asked = self.asked[index]
        if self.is_renewed(index):
            return self.days
        return 1 if asked["kind"] == "static" else (asked["max_values"] or self.days) + self.voided

    def is_hashed(self, index: int) -> bool:
        """Return whether daily categories are hashed to sets, with new noise in every report."""
        asked = self.asked[index]
        is_daily = asked["kind"] == "daily" and not asked.keys() & {"scale", "moves"}
        return is_daily and self.mechanism in OF_FIRST

    def is_renewed(self, index: int) -> bool:
        """Return whether a value that lasts is reported again each day, with new noise."""
        return self.asked[index]["kind"] == "static" and self.mechanism == "smp-allomfree"

    def first_epsilon(self, index: int) -> Fraction:
        """Epsilon of one report with new noise: half of that of an answer, if no other was typed."""
        typed = self.first and self.first["epsilon"]
        return Fraction(typed) if typed else Fraction(self.asked[index]["epsilon"]) / 2

    def has_valid_first(self) -> bool:
        """Return whether new noise is where the mechanism has it, and makes a report lose less."""
        if self.first is None or self.mechanism not in OF_FIRST:
            return self.first is None and self.mechanism not in OF_FIRST
        return self.first["cells"] in ("two", "optimal") and all(
            0 < self.first_epsilon(index) < Fraction(asked["epsilon"])
            for index, asked in enumerate(self.asked)
            if self.is_hashed(index) or self.is_renewed(index)
        )

    def has_no_links(self) -> bool:
        """Return whether a plan that renews reports keeps no answer that would link them."""
        if self.mechanism != "smp-allomfree":
            return True
        return not any("scale" in row for row in self.asked) and not self.spec.keys() & {
            "location",
            "presence",
        }

    def answers_ratio(self, index: int, n: int, channel: Channel) -> Fraction:
        """Most that n different answers change the odds; with new noise all reports, on n kept answers."""
        if not (self.is_hashed(index) or self.is_renewed(index)):
            return channel.ratio**n
        k = int(self.asked[index]["domain_size"])
        return worst_ratio(channel, reports=self.reports(index), sets=n, k=k)

    def is_stream(self, index: int) -> bool:
        """Return whether a person answers once in each window of days, with new noise."""
        return self.mechanism == "smp-stream" and self.asked[index]["kind"] == "daily"

    def has_valid_window(self) -> bool:
        """Return whether streams have a window, and nothing in the plan keeps answers to daily values."""
        if self.mechanism != "smp-stream" or self.window is None:
            return self.mechanism != "smp-stream" and self.window is None
        if self.window not in range(1, self.days + 1):
            return False
        most = _up(self.days, self.window)
        return not self.spec.keys() & {"location", "presence"} and all(
            asked["max_values"] == most and not asked.keys() & {"scale", "moves"}
            for index, asked in enumerate(self.asked)
            if self.is_stream(index)
        )

    def has_question(self, index: int) -> bool:
        """Return whether people have one permanent question: on categories reported more than twice."""
        asked = self.asked[index]
        is_asked = self.mechanism == "smp-question" and asked["kind"] == "daily"
        return is_asked and not asked.keys() & {"scale", "moves"} and (asked["max_values"] or self.days) > 2

    def limits(self) -> list[tuple[int | None, int]]:
        """Days on which a person reports as the plan limits them, and the most that it may say."""
        named = [(row["max_values"], self.days if row["kind"] == "daily" else 0) for row in self.asked]
        if "location" in self.spec:
            named.append((self.spec["location"]["max_values"], self.days))
        if "presence" in self.spec:
            named.append((self.spec["presence"]["max_days"], self.days))
        return named

    def has_slots_in_range(self) -> bool:
        """Return whether counts by slot, if any, are of a kind that can be kept."""
        slots = self.spec.get("slots")
        if slots is None:
            return True
        is_noisy = "variance" in slots
        in_range = slots["minutes"] in SLOT_MINUTES and slots["levels"] >= 1
        in_range = in_range and slots["slots_per_day"] in range(1, 1440 // slots["minutes"] + 1)
        if is_noisy:
            delta = Fraction(slots["delta"])
            in_range = in_range and Fraction(slots["variance"]) >= Fraction(1, 4)
            return in_range and Fraction(1, 10**12) <= delta <= Fraction(1, 100)
        return in_range and "delta" not in slots and "presence" not in self.spec

    def location_sizes(self) -> list[Any]:
        """Settings of places that must be above 0."""
        asked = self.spec.get("location")
        if asked is None:
            return []
        return [
            asked["level"],
            asked["radius_m"],
            *(asked["grid"][name] for name in ("step_m", "n_x", "n_y")),
        ]

    def has_valid_parts(self) -> bool:
        """Return whether joint indicators are sampled, differ, and are daily if one of their parts is."""
        whole = {row["slug"]: row["kind"] for row in self.asked if not row.keys() & {"parts", "moves"}}
        numbers = {row["slug"] for row in self.asked if "scale" in row}
        waves_of = {row["slug"] for row in self.asked if is_wave(row)}
        joint = [row for row in self.asked if "parts" in row]
        return len({frozenset(row["parts"]) for row in joint}) == len(joint) and all(
            (row["kind"] == "daily") == ("daily" in {whole.get(part) for part in row["parts"]})
            and 2 <= len(row["parts"]) == len(set(row["parts"])) <= MAX_PARTS
            and whole.keys() >= set(row["parts"])
            and not waves_of & set(row["parts"])
            and (
                not (own := numbers & set(row["parts"]))
                or (len(own) == 1 and len(row["parts"]) == 2 and whole[min(own)] == row["kind"])
            )
            and self.mechanism.startswith("smp-")
            for row in joint
        )

    def answers_with(self, index: int) -> list[tuple[int, int]]:
        """Indicators whose answers depend on one value of an indicator, and how many of a person's do.

        A person who answers a joint indicator shows the values of its parts: a static one on all days.
        """
        slug, is_static = self.asked[index]["slug"], self.asked[index]["kind"] == "static"
        return [
            (place, self.values(place) if is_static else 1)
            for place, other in enumerate(self.asked)
            if slug in (other["slug"], *other.get("parts", ()))
        ]

    def has_valid_scales(self) -> bool:
        """Return whether numbers are sampled, without parts, and have cuts that rise from their minimum."""
        numbers = [row for row in self.asked if "scale" in row]
        return all(
            self.mechanism.startswith("smp-")
            and "parts" not in row
            and "presence" not in self.spec
            and row["scale"].get("report") in (None, "wave")
            and (not is_wave(row) or row["kind"] == "static" or (row["max_values"] or self.days) == 1)
            and 2 <= len(row["scale"]["cuts"]) == row["domain_size"] <= MAX_CUTS
            and all(low < high for low, high in pairwise([row["scale"]["minimum"], *row["scale"]["cuts"]]))
            and max(map(abs, [row["scale"]["minimum"], *row["scale"]["cuts"]])) <= MAX_NUMBER
            for row in numbers
        )

    def has_valid_moves(self) -> bool:
        """Return whether moves and visits are sampled, daily, and of all that there can be, and nothing."""
        return all(
            self.mechanism.startswith("smp-")
            and row["kind"] == "daily"
            and not row.keys() & {"parts", "scale"}
            and "presence" not in self.spec
            and row["moves"]["per_day"] in range(1, MAX_MOVES + 1)
            and row["domain_size"] == n_items(row["moves"])
            for row in self.asked
            if "moves" in row
        )

    @property
    def hides(self) -> bool:
        """Return whether made-up reports hide which one is the answer, also from who sees all of a person."""
        return self.has_fakes and self.is_static


def has_regions(asked: Json) -> bool:
    """Return whether groups that answers tell are two or more, of two categories or more, in their order."""
    regions: list[int] = asked["regions"]
    return (
        len(regions) == asked["domain_size"]
        and list(dict.fromkeys(regions)) == list(range(max(regions) + 1))
        and max(regions) >= 1
        and min(map(regions.count, regions)) >= 2
        and "sensitive" not in asked
    )


def has_sensitive(asked: Json) -> bool:
    """Return whether some categories are sensitive, and not all."""
    hidden: list[int] = asked["sensitive"]
    is_some = 1 <= len(hidden) < asked["domain_size"]
    return is_some and hidden == sorted(set(hidden)) and set(hidden) <= {*range(asked["domain_size"])}


def is_wave(asked: Json) -> bool:
    """Return whether a number is reported by the square wave, each person once."""
    return "scale" in asked and asked["scale"].get("report") == "wave"


def n_items(moves: Json) -> int:
    """Return the number of codes of one item of a day; 0 for what there cannot be."""
    places, items = moves["places"], moves.get("items", "moves")
    if places < (2 if items == "pairs" else 1):
        return 0
    sizes = {"moves": (places + 1) ** 2, "places": places + 1, "pairs": places * (places - 1) // 2 + 1}
    return int(sizes.get(items, 0))


def is_lookup(asked: Json) -> bool:
    """Return whether an indicator can have its categories from a file of this hash."""
    is_plain = asked["kind"] == "static" and not asked.get("parts") and "scale" not in asked
    return is_plain and re.fullmatch("[0-9a-f]{64}", str(asked["lookup"])) is not None


def check_spec(plan: Plan, found: Findings) -> None:
    """The hashed plan is one that the mechanisms can keep: no number of it makes a loss look smaller."""
    family, _, oracle = plan.mechanism.partition("-")
    promised = {Fraction(plan.spec["epsilon"])} if "epsilon" in plan.spec else set()
    answers = {Fraction(row["epsilon"]) for row in plan.asked}
    shares = [int(each) for each in plan.spec.get("shares", [WORD])]
    hidden = plan.spec.get("presence")
    fakes_are_whole = plan.is_static if plan.unit == "attribute" else answers == promised
    for name, is_so in {
        "mechanism": oracle in ORACLES.get(family, ()),
        "unit": plan.unit in ("attribute", "profile"),
        "days": plan.days in range(1, (MAX_EVENT_DAYS if plan.events else MAX_DAYS) + 1),
        "events": plan.has_valid_units(),
        "classes": plan.has_valid_classes(),
        "regions": plan.has_valid_regions(),
        "kind": {row["kind"] for row in plan.asked} <= {"daily", "static"},
        "domain_size": all(row["domain_size"] in range(2, 2**16 - 1) for row in plan.asked),
        "epsilon": all(0 < each <= MAX_EPSILON for each in answers | promised),
        "epsilon, of the unit": bool(promised) == plan.has_fakes,
        "indicators, with fakes": not plan.has_fakes or (len(answers) == 1 and fakes_are_whole),
        "max_values and max_days": all(n is None or n in range(1, most + 1) for n, most in plan.limits()),
        "shares": min(shares) > 0 and sum(shares) == WORD,
        "shares, their number": "shares" not in plan.spec or (family, len(shares)) == ("smp", plan.d),
        "presence": hidden is None or (oracle in ("grr", "adp") and not plan.has_fakes),
        "parts": plan.has_valid_parts(),
        "scale": plan.has_valid_scales(),
        "first": plan.has_valid_first(),
        "what links reports": plan.has_no_links(),
        "window_days": plan.has_valid_window(),
        "moves": plan.has_valid_moves(),
        "by_code": not any("by_code" in row for row in plan.asked) or plan.mechanism.startswith("smp-"),
        "lookup": all(is_lookup(row) for row in plan.asked if "lookup" in row),
        "presence and location": hidden is None or "location" not in plan.spec,
        "tallies": plan.tallies == [name for name in TALLIES if name in plan.tallies],
        "presence and tallies": hidden is None or not plan.tallies,
        "slots": plan.has_slots_in_range(),
        "location": all(0 < Fraction(each) <= 10**8 for each in plan.location_sizes()),
    }.items():
        found.holds(f"plan.spec, {name}", is_so, "is not of a plan that can be kept")
    is_count = plan.voided >= 0 and plan.voided == int(plan.voided)
    found.holds("guarantee.voided_days", is_count, "is not a number of days")


def check_plan(statement: Json, plan: Plan, found: Findings) -> None:
    """The plan in words is the plan in force, which is the one that was hashed."""
    said, study, spec = statement["plan"], statement["study"], plan.spec
    canonical = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    found.equal("schema_version", statement["schema_version"], 1)
    found.equal("plan.spec_sha256", said["spec_sha256"], hashlib.sha256(canonical.encode()).hexdigest())
    for name in ("mechanism", "unit", "version"):
        found.equal(f"plan.{name}", said[name], spec[name])
    found.equal("plan.has_fake_data", said["has_fake_data"], plan.has_fakes)
    found.equal(
        "plan.indicators_per_person", said["indicators_per_person"], 1 if plan.answers_one else plan.d
    )
    found.equal("study.days", study["days"], plan.days)
    last = date.fromisoformat(study["first_day"]) + timedelta(days=plan.days - 1)
    found.equal("study.last_day", study["last_day"], last.isoformat())
    found.equal("number of indicators", len(statement["indicators"]), plan.d)
    if plan.has_fakes:
        found.equal("plan.epsilon", Fraction(said["epsilon"]), Fraction(spec["epsilon"]))
    numbers = [each["version"] for each in statement["versions"]]
    found.equal("versions, in their order", numbers, sorted(set(numbers)))
    for each in statement["versions"][-1:]:
        found.equal("versions, the last one", each["version"], spec["version"])
        found.equal("versions, spec_sha256 of the last one", each["spec_sha256"], said["spec_sha256"])
    in_force = [each["superseded_at"] is None for each in statement["versions"]]
    found.equal("versions, in force", in_force, [False] * (len(in_force) - 1) + [True])
    can_repeat = not plan.is_static or "location" in spec
    found.holds("guarantee.voided_days", plan.voided == 0 or can_repeat, "no answer can be given twice")


def check_indicator(entry: Json, plan: Plan, index: int, said_epsilon: str, found: Findings) -> Channel:
    """Probabilities from epsilon, and what one answer loses from the probabilities."""
    asked, k, share = plan.asked[index], len(entry["categories"]), plan.share(index)
    where, epsilon = f"indicator {entry['slug']}", Fraction(asked["epsilon"])
    is_of_all = asked["max_values"] in (None, plan.days)
    for name, value in (
        ("slug", asked["slug"]),
        ("kind", asked["kind"]),
        ("values_per_person", plan.values(index)),
        ("threshold_out_of", str(WORD)),
        ("unions_of_days", asked["kind"] == "static" or (is_of_all and "moves" not in asked)),
    ):
        found.equal(f"{where}, {name}", entry[name], value)
    for key, of_plan_key in {"moves": "moves", "groups": "regions", "sensitive": "sensitive"}.items():
        found.equal(f"{where}, {key}", key in entry, of_plan_key in asked)
    moves, of_plan = entry.get("moves", {}), asked.get("moves", {})
    for name in sorted({*of_plan, *moves}):
        found.equal(f"{where}, moves.{name}", moves.get(name), of_plan.get(name))
    found.equal(f"{where}, number of categories", k, asked["domain_size"])
    found.equal(f"{where}, asked_share", Fraction(entry["asked_share"]), share)
    found.equal(f"{where}, nominal_epsilon", Fraction(entry["nominal_epsilon"]), epsilon)
    typed = entry["typed_epsilon"]
    if not plan.has_fakes:
        shared = Fraction(said_epsilon) / (1 if plan.answers_one else plan.d)
        found.equal(f"{where}, epsilon typed", shared if typed is None else Fraction(typed), epsilon)
    if asked.get("parts"):
        sizes = {each["slug"]: (2 if "scale" in each else each["domain_size"]) + 1 for each in plan.asked}
        found.equal(f"{where}, combinations", k, prod(sizes.get(part, 0) for part in asked["parts"]))
    if "scale" in asked:
        check_scale(entry, asked, found)
        possible = list(waves(epsilon, k + 1)) if is_wave(asked) else sides(epsilon)
    elif asked.keys() & {"regions", "sensitive"}:
        possible = list(disclosing(entry, asked, plan, found))
    elif plan.has_question(index):
        possible = list(questions(epsilon, k))
        n_codes = possible[0].thresholds[-1]
        found.holds(f"{where}, codes", n_codes <= max_codes(plan.days), f"{n_codes} cannot be tallied")
    elif plan.is_renewed(index) or plan.is_hashed(index):
        possible = first_channels(entry, plan, index, found)
    elif (
        asked.get("parts")
        or "moves" in asked
        or asked.get("by_code")
        or plan.mechanism in ("smp-question", "smp-loloha", "smp-stream")
    ):
        possible = codes(epsilon, k, most=max_codes(plan.days))
    else:
        possible = channels(plan.mechanism, epsilon, k, share=share if plan.has_fakes else Fraction(1))
    names = THRESHOLDS[possible[0].protocol]
    said = tuple(int(entry.get(name, -1)) for name in names)
    channel = next((each for each in possible if each.thresholds == said), possible[0])
    found.equal(f"{where}, protocol", entry["protocol"], channel.protocol)
    found.equal(f"{where}, {' and '.join(names)}", said, channel.thresholds)
    for name in ("p", "q", "ratio"):
        found.equal(f"{where}, {name}", Fraction(entry[name]), getattr(channel, name))
    found.up(f"{where}, epsilon", entry["epsilon"], log_bounds(channel.ratio))
    found.holds(f"{where}, epsilon", Fraction(entry["epsilon"]) <= epsilon, "is above the nominal one")
    check_fakes(entry, plan, channel, share=share, found=found)
    return channel


def check_scale(entry: Json, asked: Json, found: Findings) -> None:
    """Cuts of a number, and how often each is asked."""
    where, scale = f"indicator {entry['slug']}", asked["scale"]
    for name in ("cuts", "minimum", "unit"):
        found.equal(f"{where}, {name}", entry.get(name), scale[name])
    shares = [int(each) for each in entry.get("cut_shares", [])]
    found.equal(f"{where}, cut_shares", shares, [] if is_wave(asked) else cut_shares(scale))


def disclosing(entry: Json, asked: Json, plan: Plan, found: Findings) -> Iterator[Channel]:
    """Possible mechanisms of answers that disclose groups, or values that are not sensitive."""
    if "regions" in asked:
        yield check_groups(entry, asked, plan, found)
    else:
        yield from check_sensitive(entry, asked, found)


def check_groups(entry: Json, asked: Json, plan: Plan, found: Findings) -> Channel:
    """Check the channel of each group that answers tell; p and q are of the noisiest, the ratio the largest.

    Each group has as large a part of the codes as of the categories.
    """
    regions: list[int] = asked["regions"]
    categories, epsilon, used = entry["categories"], Fraction(asked["epsilon"]), list[Channel]()
    said = entry.get("groups", [])
    found.equal(f"indicator {entry['slug']}, number of groups", len(said), max(regions) + 1)
    for number, group in enumerate(said):
        where = f"indicator {entry['slug']}, group {group['name']}"
        own = [each for each, region in zip(categories, regions, strict=True) if region == number]
        found.equal(f"{where}, categories", group["categories"], own)
        possible = codes(epsilon, len(own), most=max_codes(plan.days) * len(own) // len(regions))
        names = THRESHOLDS[possible[0].protocol]
        values = tuple(int(group.get(name, -1)) for name in names)
        channel = next((each for each in possible if each.thresholds == values), possible[0])
        found.equal(f"{where}, protocol", group["protocol"], channel.protocol)
        found.equal(f"{where}, {' and '.join(names)}", values, channel.thresholds)
        for name in ("p", "q", "ratio"):
            found.equal(f"{where}, {name}", Fraction(group[name]), getattr(channel, name))
        used.append(channel)
    noisiest = max(used, key=lambda channel: channel.q * (1 - channel.q) / (channel.p - channel.q) ** 2)
    return Channel("groups", (), noisiest.p, noisiest.q, max(each.ratio for each in used))


def first_channels(entry: Json, plan: Plan, index: int, found: Findings) -> list[Channel]:
    """Return the possible mechanisms where a report has less than the epsilon of the answer that is kept."""
    epsilon, first = Fraction(plan.asked[index]["epsilon"]), plan.first_epsilon(index)
    where, k = f"indicator {entry['slug']}", len(entry["categories"])
    if plan.is_renewed(index) and not plan.asked[index].get("parts"):
        possible = renewed(epsilon, first, k)
        is_small = possible[0].protocol == "l-grr" or k <= MAX_BITS
        found.holds(f"{where}, number of categories", is_small, "is too large for a bit each")
    else:
        is_open = plan.is_renewed(index) or (plan.first and plan.first["cells"] == "optimal")
        possible = hashes(epsilon, first, k, primes=PRIMES if is_open else (2,), most=max_codes(plan.days))
        found.holds(f"{where}, codes", possible, "too many to be tallied")
    found.equal(f"{where}, nominal_first", Fraction(entry.get("nominal_first", -1)), first)
    found.holds(f"{where}, epsilon", Fraction(entry["epsilon"]) <= first, "is above nominal_first")
    return possible or list(grr(epsilon, k))


def check_sensitive(entry: Json, asked: Json, found: Findings) -> Iterator[Channel]:
    """Check the sensitive categories, and the chance that another one is disclosed; the possible mechanisms.

    Each sensitive category that is not true has the probability ceil(2**64 / (s + e - 1)) / 2**64.
    """
    where, hidden = f"indicator {entry['slug']}", asked["sensitive"]
    names = [entry["categories"][place] for place in hidden]
    found.equal(f"{where}, sensitive", entry.get("sensitive"), names)
    s, said = len(hidden), int(entry.get("threshold_other", -1))
    found.equal(f"{where}, disclosed", Fraction(entry.get("disclosed", -1)), Fraction(said, WORD))
    for other in {-int(-(WORD / (s + e - 1)) // 1) for e in exp_bounds(Fraction(asked["epsilon"]))}:
        p, q = 1 - Fraction((s - 1) * other, WORD), Fraction(other, WORD)
        yield Channel("sensitive", (WORD - (s - 1) * other, WORD - s * other), p, q, p / q)


def check_fakes(entry: Json, plan: Plan, channel: Channel, *, share: Fraction, found: Findings) -> None:
    """Distribution of made-up reports."""
    said, where = entry["fake_data"], f"indicator {entry['slug']}, fake_data"
    if said is None or not plan.has_fakes:
        found.equal(where, said is not None, plan.has_fakes)
        return
    found.equal(f"{where}.fake", said["fake"], "code" if channel.protocol == "grr" else "no value")
    found.equal(f"{where}.share", Fraction(said["share"]), share)
    support = fake_support(channel, len(entry["categories"]))
    found.equal(f"{where}.support", Fraction(said["support"]), support)


def attribute_ratios(plan: Plan, used: list[Channel]) -> list[Fraction]:
    """Largest probability ratio of all reports of a person if one value differs."""
    if not plan.hides:
        return [
            max(plan.answers_ratio(place, n, used[place]) for place, n in plan.answers_with(index))
            for index in range(plan.d)
        ]
    parts = [_likelihoods(plan, index, channel) for index, channel in enumerate(used)]
    total = sum(miss for _, miss in parts)
    return [(total + hit - miss) / total for hit, miss in parts]


def _likelihoods(plan: Plan, index: int, channel: Channel) -> tuple[Fraction, Fraction]:
    """Share of a report, times how much likelier than a made-up one an answer is that fits, or does not."""
    share = plan.share(index)
    if channel.protocol == "grr":
        k = plan.asked[index]["domain_size"]
        return share * channel.p * k, share * channel.q * k
    return share * channel.p / channel.q, share * (1 - channel.p) / (1 - channel.q)


def profile_bounds(plan: Plan, used: list[Channel]) -> Bounds:
    """Loss of all values of a person: of one indicator the largest, of all the sum, or what fakes hide."""
    if plan.hides:
        return log_bounds(profile_ratio(plan, used))
    losses = [
        log_bounds(plan.answers_ratio(index, plan.values(index), channel))
        if plan.is_hashed(index) or plan.is_renewed(index)
        else Bounds(*(plan.values(index) * bound for bound in log_bounds(channel.ratio)))
        for index, channel in enumerate(used)
    ]
    take = max if plan.answers_one else sum
    return Bounds(*(Fraction(take(column)) for column in zip(*losses, strict=True)))


def profile_ratio(plan: Plan, used: list[Channel]) -> Fraction:
    """Largest probability ratio of all reports of a person, of which one is an answer."""
    parts = [_likelihoods(plan, index, channel) for index, channel in enumerate(used)]
    fits, misses = (sum(column, Fraction(0)) for column in zip(*parts, strict=True))
    return Fraction(fits / misses)


def check_guarantee(statement: Json, plan: Plan, used: list[Channel], found: Findings) -> None:
    """Composition over indicators and days, in both units; never above what was typed."""
    said, ratios = statement["guarantee"], attribute_ratios(plan, used)
    for entry, ratio in zip(statement["indicators"], ratios, strict=True):
        where = f"indicator {entry['slug']}, epsilon_attribute"
        found.up(where, entry["epsilon_attribute"], log_bounds(ratio))
    found.up("guarantee.epsilon_attribute", said["epsilon_attribute"], log_bounds(max(ratios)))
    found.up("guarantee.epsilon_profile", said["epsilon_profile"], profile_bounds(plan, used))
    found.equal("guarantee.unit", said["unit"], plan.unit)
    found.equal("guarantee.epsilon", said["epsilon"], said[f"epsilon_{plan.unit}"])
    found.equal("guarantee.rounding", said["rounding"], "up")
    rule = "hidden by fakes" if plan.hides else "largest" if plan.answers_one else "sum"
    found.equal("guarantee.composition", said["composition"], rule)
    losses = [Fraction(each["epsilon"]) * plan.values(index) for index, each in enumerate(plan.asked)]
    largest = max(
        Fraction(plan.asked[place]["epsilon"]) * n
        for index in range(plan.d)
        for place, n in plan.answers_with(index)
    )
    nominal = {
        "attribute": Fraction(plan.spec.get("epsilon", largest)),
        "profile": max(losses) if plan.answers_one else sum(losses),
    }
    for unit, value in nominal.items():
        found.equal(f"guarantee.nominal_{unit}", Fraction(said[f"nominal_{unit}"]), value)
    is_kept = Fraction(said["epsilon"]) <= nominal[plan.unit]
    found.holds("guarantee.epsilon", is_kept, f"is above the nominal one, {float(nominal[plan.unit])}")
    check_window(said, plan, used, found)
    check_person(said, plan, found)
    cap = statement["plan"]["epsilon_profile_cap"]
    is_kept = cap is None or Fraction(said["epsilon_profile"]) <= Fraction(cap)
    found.holds("plan.epsilon_profile_cap", is_kept, f"is {cap}, below the certified loss per profile")


def check_window(said: Json, plan: Plan, used: list[Channel], found: Findings) -> None:
    """Loss of any days in a row under a stream: one answer, and those of days that were given again."""
    window, streams = said.get("window"), [index for index in range(plan.d) if plan.is_stream(index)]
    found.equal("guarantee.window", window is not None, bool(streams))
    if window is None or not streams:
        return
    found.equal("guarantee.window.days", window["days"], plan.window)
    n_values = [1 + plan.voided * (index in streams) for index in range(plan.d)]
    losses = [
        Bounds(*(n * bound for bound in log_bounds(channel.ratio)))
        for n, channel in zip(n_values, used, strict=True)
    ]
    nominal = max(Fraction(row["epsilon"]) * n for row, n in zip(plan.asked, n_values, strict=True))
    found.up("guarantee.window.epsilon", window["epsilon"], Bounds(*map(max, zip(*losses, strict=True))))
    found.equal("guarantee.window.nominal", Fraction(window["nominal"]), nominal)
    is_kept = Fraction(window["epsilon"]) <= nominal
    found.holds("guarantee.window.epsilon", is_kept, f"is above the nominal one, {float(nominal)}")


def check_person(said: Json, plan: Plan, found: Findings) -> None:
    """Loss of all events of a person: that of an event, once for each that is answered."""
    person = said.get("person")
    found.equal("guarantee.person", person is not None, plan.max_events is not None)
    if person is None or plan.max_events is None:
        return
    found.equal("guarantee.person.max_events", person["max_events"], plan.max_events)
    # Whether the loss of an event is right has been checked; a product of 30 digits is rounded up.
    total = plan.max_events * Fraction(said["epsilon_profile"])
    found.up("guarantee.person.epsilon", person["epsilon"], Bounds(total, total))
    nominal = plan.max_events * Fraction(said["nominal_profile"])
    found.equal("guarantee.person.nominal", Fraction(person["nominal"]), nominal)


def check_classes(statement: Json, plan: Plan, found: Findings) -> None:
    """Each class as a plan with its epsilon, and that of the plan as the largest of them."""
    said = statement.get("classes", [])
    found.equal("classes", [each["slug"] for each in said], [each["slug"] for each in plan.classes])
    if len(said) != len(plan.classes) or not said:
        return
    for entry, asked in zip(said, plan.classes, strict=True):
        where, epsilon = f"class {entry['slug']}", asked["epsilon"]
        spec = plan.spec | {"indicators": [row | {"epsilon": epsilon} for row in plan.asked]}
        own = Plan({**statement, "plan": {"spec": spec}, "indicators": entry["indicators"]})
        found.equal(f"{where}, nominal_epsilon", Fraction(entry["nominal_epsilon"]), Fraction(epsilon))
        found.equal(f"{where}, number of indicators", len(entry["indicators"]), own.d)
        if len(entry["indicators"]) != own.d:
            continue
        used = [
            check_indicator(row, own, index, epsilon, found) for index, row in enumerate(entry["indicators"])
        ]
        ratios = attribute_ratios(own, used)
        for row, ratio in zip(entry["indicators"], ratios, strict=True):
            said_of = f"{where}, {row['slug']}, epsilon_attribute"
            found.up(said_of, row["epsilon_attribute"], log_bounds(ratio))
        found.up(f"{where}, epsilon_attribute", entry["epsilon_attribute"], log_bounds(max(ratios)))
        found.up(f"{where}, epsilon_profile", entry["epsilon_profile"], profile_bounds(own, used))
        nominal = max(Fraction(epsilon) * own.values(index) for index in range(own.d))
        found.equal(f"{where}, nominal_profile", Fraction(entry["nominal_profile"]), nominal)
        is_kept = Fraction(entry["epsilon_profile"]) <= nominal
        found.holds(f"{where}, epsilon_profile", is_kept, f"is above the nominal one, {float(nominal)}")
    for name in ("epsilon_attribute", "epsilon_profile"):
        largest = max(Fraction(entry[name]) for entry in said)
        found.equal(f"guarantee.{name}, of all classes", Fraction(statement["guarantee"][name]), largest)


def sum_bounds(ratio: Fraction, n_reports: int, delta: Fraction) -> Bounds | None:
    """Return epsilon of a sum of n reports (Feldman, McMillan, Talwar, theorem 3.1); None: none smaller."""
    if 16 * ratio * log_bounds(2 / delta).high > n_reports:
        return None
    grown = []
    for log, up in zip(log_bounds(4 / delta), (0, 1), strict=True):
        root = Fraction(isqrt(int(ratio * log / n_reports * 4**BITS)) + up, 2**BITS)
        grown.append(1 + (ratio - 1) / (ratio + 1) * (8 * root + 8 * ratio / n_reports))
    return Bounds(log_bounds(grown[0]).low, log_bounds(grown[1]).high) if grown[1] < ratio else None


def check_sums(statement: Json, plan: Plan, used: list[Channel], found: Findings) -> None:
    """Loss of sums, if smaller than that of single reports: each person is counted in one sum, once."""
    if "sums" not in statement:
        return
    said = statement["sums"]
    numbers = [row["n_reports"] for row in said["indicators"]]
    slugs = [row["slug"] for row in said["indicators"]]
    found.equal("sums, slug", slugs, [entry["slug"] for entry in statement["indicators"]])
    is_so = plan.days == 1 and statement["presence"] is None and not plan.voided
    is_so = is_so and len(statement["versions"]) == 1 and "classes" not in statement
    is_so = is_so and not any(row.keys() & {"regions", "sensitive"} for row in plan.asked)
    if plan.has_fakes:
        is_so = is_so and plan.is_static and len(set(numbers)) == 1
    found.holds("sums", is_so, "there is no such bound for this study")
    delta = min(Fraction(1, 10**6), Fraction(1, max(1, 10 * max(numbers))))
    found.equal("sums, delta", Fraction(said["delta"]), delta)
    ratios = [profile_ratio(plan, used)] * plan.d if plan.has_fakes else [each.ratio for each in used]
    bounds = [sum_bounds(ratio, n, delta) for ratio, n in zip(ratios, numbers, strict=True)]
    found.holds("sums, n_reports", any(bounds), "too few for any bound")
    check_sum_losses(statement, plan, bounds, found)
    n_sums = 1 if plan.answers_one else sum(bound is not None for bound in bounds)
    found.equal("sums, delta_profile", Fraction(said["delta_profile"]), delta * n_sums)


def check_sum_losses(statement: Json, plan: Plan, bounds: list[Bounds | None], found: Findings) -> None:
    """Check the loss of each indicator's sum, or of a single report where that is less; then both units."""
    said = statement["sums"]
    for row, entry, bound in zip(said["indicators"], statement["indicators"], bounds, strict=True):
        where, single = f"sums, {row['slug']}, epsilon by n_reports", entry["epsilon_attribute"]
        if bound is None or bound.low > Fraction(single):
            found.equal(where, row["epsilon"], single)
        else:
            found.up(where, row["epsilon"], bound)
    losses = [Fraction(row["epsilon"]) for row in said["indicators"]]
    found.equal("sums, epsilon_attribute", Fraction(said["epsilon_attribute"]), max(losses))
    if plan.has_fakes and bounds[0] is not None:
        found.up("sums, epsilon_profile", said["epsilon_profile"], bounds[0])
    else:
        total = max(losses) if plan.answers_one else rounded_up(sum(losses, Fraction(0)))
        found.equal("sums, epsilon_profile", Fraction(said["epsilon_profile"]), total)


def angle_step(epsilon: Fraction, *, side: int, range_m: int) -> Fraction | None:
    """Cost of finite precision, in radians: a double by definition, of +, -, * and / alone.

    Noise up to 40 / epsilon beyond the range is displaced by `offset`; longer noise by anything. None: points
    are displaced by more than a square.
    """
    scale = 1 / float(epsilon * KEPT_SHARE)
    reach = range_m + TAIL * scale
    offset = RADIUS_ERROR * scale + ANGLE_ERROR * reach + PLACE_ERROR * side
    if offset >= side:
        return None
    lost = 2 * pi * (1 + float(epsilon) * reach) * TAIL_SHARE * (scale / side) ** 2
    return Fraction((2 * offset / (1 - offset / side) + lost * side) / range_m * (1 + 1e-9))


def place_bounds(sampled: Fraction, *, side: int, q: Fraction) -> Bounds | None:
    """Epsilon per metre that reports keep if so much is drawn; None: none."""
    growth = exp_bounds(sampled * side)
    if q <= 2 * growth.high:
        return None
    low, high = (log_bounds((q + 2 * e) / (q - 2 * e)) for e in growth)
    return Bounds(sampled + low.low / side, sampled + high.high / side)


def sampled_epsilon(epsilon: Fraction, *, side: int, q: Fraction) -> Fraction | None:
    """Largest epsilon to draw that keeps the nominal one, if 1 / it is a double in squares; None: none."""

    def keeps(scale: float) -> bool:
        bounds = place_bounds(1 / (Fraction(scale) * side), side=side, q=q)
        return bounds is not None and bounds.high <= epsilon

    low = nextafter(float(1 / (epsilon * side)), 0)
    high = float(1 / (epsilon * KEPT_SHARE * side))
    high = high if Fraction(high) * epsilon * KEPT_SHARE * side <= 1 else nextafter(high, 0)
    if not keeps(high):
        return None
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return 1 / (Fraction(high) * side)


def check_location(statement: Json, plan: Plan, found: Findings) -> None:
    """Check the promise of places: per metre, at the radius, over all places of a person."""
    said, asked = statement["location"], plan.spec.get("location")
    if said is None or asked is None:
        found.equal("location", said is not None, asked is not None)
        return
    radius, level = Fraction(asked["radius_m"]), Fraction(asked["level"])
    found.equal("location.mechanism", said["mechanism"], "planar-laplace")
    found.equal("location.grid", said["grid"], asked["grid"])
    found.equal("location.level", Fraction(said["level"]), level)
    found.equal("location.radius_m", Fraction(said["radius_m"]), radius)
    found.equal("location.nominal_epsilon_per_m", Fraction(said["nominal_epsilon_per_m"]), level / radius)
    check_place_noise(said, asked, level / radius, found)
    one = Fraction(said["epsilon_per_m"])
    found.holds("location.epsilon_per_m", one <= level / radius, "is above the nominal one")
    n = min(asked["max_values"] or plan.days, plan.days) + plan.voided
    found.equal("location.places_per_person", said["places_per_person"], n)
    for name, value in (
        ("epsilon_at_radius", one * radius),
        ("epsilon_at_radius_all_places", Fraction(said["epsilon_at_radius"]) * n),
    ):
        found.up(f"location.{name}", said[name], Bounds(value, value))


def check_place_noise(said: Json, asked: Json, epsilon: Fraction, found: Findings) -> None:
    """Check the drawn noise and its promise: from the nominal epsilon per metre and the grid alone."""
    grid = asked["grid"]
    side = grid["step_m"]
    range_m = isqrt((grid["n_x"] ** 2 + grid["n_y"] ** 2) * side**2 - 1) + 1
    found.equal("location.range_m", said["range_m"], range_m)
    step = angle_step(epsilon, side=side, range_m=range_m)
    found.equal("location.angle_step", Fraction(said["angle_step"]), step)
    q = Fraction(0) if step is None else side / (range_m * step)
    sampled = sampled_epsilon(epsilon, side=side, q=q)
    found.equal("location.sampled_epsilon_per_m", Fraction(said["sampled_epsilon_per_m"]), sampled)
    bounds = None if sampled is None else place_bounds(sampled, side=side, q=q)
    if sampled is None or bounds is None:
        found.holds("location.grid", False, "allows no promise at this epsilon per metre")
        return
    found.up("location.epsilon_per_m", said["epsilon_per_m"], bounds)
    for name, times in (("mean_shift_m", Fraction(2)), ("radius_95_m", QUANTILE_95)):
        is_near = abs(Fraction(str(said[name])) - times / sampled) <= TENTH_M
        found.holds(f"location.{name}", is_near, f"says {said[name]}, it is {float(times / sampled):.1f}")


def check_presence(statement: Json, plan: Plan, found: Findings) -> None:
    """Check the promise of presence: of one count, of all counts of a person, and of both families."""
    said, asked = statement["presence"], plan.spec.get("presence")
    if said is None or asked is None:
        found.equal("presence", said is not None, asked is not None)
        return
    protocols = {each["protocol"] for each in statement["indicators"]}
    found.equal("presence, protocols of the answers", protocols, {"grr"})  # one code, and so one count a day
    epsilon, days = Fraction(asked["epsilon"]), asked["max_days"]
    found.equal("presence.presence_epsilon", Fraction(said["presence_epsilon"]), epsilon)
    found.equal("presence.mechanism", said["mechanism"], "two-sided-geometric")
    found.equal("presence.days_per_person", said["days_per_person"], days)
    moved_cells = min(2 * days, 3 * plan.days // 2)
    added = moved = Fraction(0)
    for name, codes in (("visitors", 1), ("answers", 1 if plan.answers_one else plan.d)):
        noise, counts = said[name], codes * days
        check_noise(f"presence.{name}", noise, epsilon, counts, found)
        one = Fraction(noise["epsilon_of_one"])
        added += Fraction(noise["epsilon"])
        moved += rounded_up(one * moved_cells * codes)
    for name, value in (("epsilon", added), ("epsilon_moved", moved)):
        found.up(f"presence.{name}", said[name], Bounds(value, value))
    twice = 2 * Fraction(said["epsilon"])
    found.up("presence.epsilon_replaced", said["epsilon_replaced"], Bounds(twice, twice))
    found.equal("presence.nominal_epsilon", Fraction(said["nominal_epsilon"]), 2 * epsilon)


def check_noise(where: str, noise: Json, epsilon: Fraction, counts: int, found: Findings) -> None:
    """The noise of a count: thresholds from epsilon, what they lose, of one count and of all of a person."""
    digits, tail = [int(each) for each in noise["digits"]], int(noise["tail"])
    found.equal(f"{where}.threshold_out_of", noise["threshold_out_of"], str(WORD))
    found.equal(f"{where}.digits and tail", (digits, tail), noise_thresholds(epsilon / counts))
    ratio = count_ratio(digits, tail)
    found.equal(f"{where}.ratio", Fraction(noise["ratio"]), ratio)
    found.up(f"{where}.epsilon_of_one", noise["epsilon_of_one"], log_bounds(ratio))
    one = Fraction(noise["epsilon_of_one"])
    found.equal(f"{where}.counts_per_person", noise["counts_per_person"], counts)
    found.up(f"{where}.epsilon", noise["epsilon"], Bounds(one * counts, one * counts))
    found.holds(f"{where}.epsilon", Fraction(noise["epsilon"]) <= epsilon, "is above presence_epsilon")
    spread, variance = Fraction(noise["std_error_of_one"]), count_variance(noise)
    is_near = (spread - MICRO) ** 2 <= variance <= (spread + MICRO) ** 2
    found.holds(f"{where}.std_error_of_one", is_near, f"is not the root of {float(variance):.9g}")


def noise_thresholds(step: Fraction) -> tuple[list[int], int]:
    """Nearest integers of a loss just below `step`: 1/2**60, twice that, and so on, until they keep it.

    Digit j of a magnitude is 1 with odds e**-(step 2**j), while that is below 0.7; the tail continues
    with e**-(step 2**digits).
    """
    margin = Fraction(1, 2**60)
    while True:
        less, digits = step - margin, list[int]()
        if less <= 0:
            raise ValueError(f"a loss of {float(step)} per count allows no noise")
        while less * 2 ** len(digits) < Fraction(7, 10):
            digits.append(round(WORD / (1 + exp_bounds(less * 2 ** len(digits)).low)))
        tail = round(WORD / exp_bounds(less * 2 ** len(digits)).low)
        if rounded_up(log_bounds(count_ratio(digits, tail)).high) <= step:
            return digits, tail
        margin *= 2


def count_ratio(digits: list[int], tail: int) -> Fraction:
    """Worst ratio of the noise of two counts that differ by one: over every carry, up or down."""
    worst, carried = Fraction(1), Fraction(1)
    for threshold in digits:
        odds = Fraction(threshold, WORD - threshold)
        worst = max(worst, carried / odds, odds / carried)
        carried *= odds
    last = carried * Fraction(WORD, tail)
    return max(worst, last, 1 / last)


def count_variance(noise: Json) -> Fraction:
    """Noise of one count: a magnitude with a fair sign, minus zero drawn again."""
    odds = [Fraction(int(each), WORD) for each in noise["digits"]]
    tail, top = Fraction(int(noise["tail"]), WORD), 2 ** len(odds)
    mean = sum((p * 2**digit for digit, p in enumerate(odds)), top * tail / (1 - tail))
    spread = sum((p * (1 - p) * 4**digit for digit, p in enumerate(odds)), top**2 * tail / (1 - tail) ** 2)
    zero = 1 - tail
    for p in odds:
        zero *= 1 - p
    return Fraction((mean**2 + spread) * (1 + zero / (2 - zero)))


def check_slots(statement: Json, plan: Plan, found: Findings) -> None:
    """Check the promise of counts by slot: by unit, from the variance, and together with presence noise."""
    said, asked = statement.get("slots"), plan.spec.get("slots")
    if said is None or asked is None:
        found.equal("slots", said is not None, asked is not None)
        return
    for name in ("minutes", "slots_per_day", "levels"):
        found.equal(f"slots.{name}", said[name], asked[name])
    is_noisy, presence = "variance" in asked, statement["presence"]
    found.equal("slots.mechanism", said["mechanism"], "discrete-gaussian" if is_noisy else "none")
    units = {"slot": 1, "day": asked["slots_per_day"], "study": plan.days * asked["slots_per_day"]}
    if plan.days > 7:
        units["week"] = 7 * asked["slots_per_day"]
    losses = {row["unit"]: row for row in said["losses"]}
    found.equal("slots.losses, units", sorted(losses), sorted(units) if is_noisy else [])
    if not is_noisy or set(losses) != set(units):
        found.equal("slots, without noise", (said["noise"], said["with_presence"]), (None, None))
        return
    noise, variance = said["noise"], Fraction(asked["variance"])
    for name in ("variance", "delta"):
        found.equal(f"slots.noise.{name}", Fraction(noise[name]), Fraction(asked[name]))
    spread = Fraction(noise["std_error"])
    is_near = (spread - MICRO) ** 2 <= variance <= (spread + MICRO) ** 2
    found.holds("slots.noise.std_error", is_near, f"is not the root of {float(variance):.9g}")
    for unit, slots in units.items():
        found.equal(f"slots.losses, {unit}, slots", losses[unit]["slots"], slots)
        rho = slots * asked["levels"] / (2 * variance)  # each slot changes a count of each level by one
        for name, times in (("absent", 1), ("moved", 2)):
            where = f"slots.losses, {unit}, {name}"
            check_gaussian(where, losses[unit][name], times * rho, Fraction(asked["delta"]), found)
    check_slots_with_presence(said, presence, losses["study"], found)


def check_slots_with_presence(said: Json, presence: Json | None, study: Json, found: Findings) -> None:
    """Losses without a delta are added; the sum holds at the delta of the slots."""
    total = said["with_presence"]
    found.equal("slots.with_presence", total is None, presence is None)
    if total is None or presence is None:
        return
    for name, of in (("epsilon", "absent"), ("epsilon_moved", "moved"), ("epsilon_replaced", "moved")):
        value = Fraction(presence[name]) + Fraction(study[of]["epsilon"])
        found.up(f"slots.with_presence.{name}", total[name], Bounds(value, value))


def check_gaussian(where: str, said: Json, rho: Fraction, delta: Fraction, found: Findings) -> None:
    """Check a loss in zCDP, and its epsilon at delta by the order (Canonne et al. 2020, proposition 12)."""
    found.equal(f"{where}, rho", Fraction(said["rho"]), rho)
    order = Fraction(said["order"])
    if order <= 1:
        found.holds(f"{where}, order", False, "must be above 1")
        return
    rest, shrink = ln(1 / (delta * order)), ln((order - 1) / order)
    bounds = [max(Fraction(0), rho * order + rest[i] / (order - 1) + shrink[i]) for i in range(2)]
    found.up(f"{where}, epsilon at order", said["epsilon"], Bounds(*bounds))
    tight, root = float(said["epsilon_gaussian"]), sqrt(2 * rho)
    is_near = gaussian_delta(tight, root) <= delta * (1 + 1e-9)
    is_near = is_near and (tight <= MICRO or delta <= gaussian_delta(tight - 1.01e-6, root))
    found.holds(f"{where}, epsilon_gaussian", is_near, "is not what the Gaussian curve says")


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Delta of continuous Gaussian noise (Balle and Wang, 2018): for comparison, in floats."""
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if far < 20:
        tail = exp(epsilon) * erfc(far / sqrt(2)) / 2
    else:  # by its series: the factor may have no float
        tail = exp(-(near**2) / 2) * (1 - 1 / far**2 + 3 / far**4) / (far * sqrt(2 * pi))
    return erfc(near / sqrt(2)) / 2 - tail


def check_composition(statement: Json, others: list[Json], found: Findings) -> None:
    """Sums over the studies of the same people; what other statements say of themselves."""
    said, study = statement["composition"], statement["study"]
    found.equal("composition.population", said["population"], study["population"])
    mine = [row for row in said["studies"] if row["is_this"]]
    found.equal("composition.studies, is_this", len(mine), 1)
    for row in mine:
        compare_row(row, statement, found)
    found.equal("composition.rounding", said["rounding"], "up")
    for row in said["studies"]:
        may = row["is_counted"] or row["state"] == "closed"
        found.holds("composition.studies, is_counted", may, "an open study counts")
        check_losses(row, found)
    for other in others:
        key = (other["plan"]["spec_sha256"], other["study"]["first_day"], other["study"]["slug"])
        rows = [
            row
            for row in said["studies"]
            if (row["spec_sha256"], row["first_day"], row["study"] or key[2]) == key and not row["is_this"]
        ]
        found.holds("composition.studies", bool(rows), f"{key[2]} of the other file is not among them")
        for row in rows[:1]:
            compare_row(row, other, found)
    counted = [row for row in said["studies"] if row["is_counted"]]
    names = ["epsilon_profile", "epsilon_attribute", "epsilon_presence", "epsilon_location_per_km"]
    if any("delta" in row for row in counted) or "delta" in said:
        names += ["epsilon_slots", "delta"]
    for name in names:
        losses = [row.get(name, "0") for row in counted]
        where = f"composition.{name}"
        if None in losses or said[name] is None:
            found.equal(where, said[name] is None, None in losses)
            continue
        total = sum(map(Fraction, losses), Fraction(0))
        found.equal(where, Fraction(said[name]), total)


def check_losses(row: Json, found: Findings) -> None:
    """Check rules for the losses of any study, also of one without a statement here."""
    where = f"composition.studies, from {row['first_day']}"
    value, profile = Fraction(row["epsilon_attribute"]), Fraction(row["epsilon_profile"])
    found.holds(f"{where}, epsilon_profile", 0 < value <= profile, "is below the loss of one value")
    others = [Fraction(row[name] or 0) for name in ("epsilon_presence", "epsilon_location_per_km")]
    found.holds(f"{where}, losses", min(others) >= 0, "are below 0")
    is_known = row["state"] in ("open", "closed", "deleted")
    found.holds(f"{where}, state", is_known and row["first_day"] <= row["last_day"], "is of no study")


def compare_row(row: Json, statement: Json, found: Findings) -> None:
    """A study as a composition lists it, and as its own statement says it."""
    study, guarantee = statement["study"], statement["guarantee"]
    where = f"composition.studies, {study['slug']}"
    for name in ("first_day", "last_day", "state"):
        found.equal(f"{where}, {name}", row[name], study[name])
    found.equal(f"{where}, slug", row["study"] or study["slug"], study["slug"])
    found.equal(f"{where}, spec_sha256", row["spec_sha256"], statement["plan"]["spec_sha256"])
    person = guarantee.get("person")  # with several events, whose losses the row has
    profile = guarantee["epsilon_profile"] if person is None else person["epsilon"]
    found.equal(f"{where}, epsilon_profile", row["epsilon_profile"], profile)
    attribute = Fraction(guarantee["epsilon_attribute"]) * (1 if person is None else person["max_events"])
    found.equal(f"{where}, epsilon_attribute", Fraction(row["epsilon_attribute"]), attribute)
    location, presence = statement["location"], statement.get("presence")
    places = Fraction(0)
    if location is not None:
        places = 1000 * Fraction(location["epsilon_per_m"]) * location["places_per_person"]
    found.up(f"{where}, epsilon_location_per_km", row["epsilon_location_per_km"], Bounds(places, places))
    slots = statement.get("slots")
    total = presence if slots is None or presence is None else slots["with_presence"]
    found.equal(f"{where}, epsilon_presence", row["epsilon_presence"], total and total["epsilon"])
    found.equal(f"{where}, delta", "delta" in row, slots is not None)
    if slots is not None:
        noise, of_study = slots["noise"], [each for each in slots["losses"] if each["unit"] == "study"]
        epsilon = of_study[0]["absent"]["epsilon"] if of_study else None
        found.equal(f"{where}, epsilon_slots", row.get("epsilon_slots"), epsilon)
        found.equal(
            f"{where}, delta", Fraction(row.get("delta", 0)), Fraction(noise["delta"] if noise else 0)
        )


def check_words(statement: Json, plan: Plan, found: Findings) -> None:
    """Check that all limits are named, and the day on which the key ends."""
    named = {each["name"] for each in statement["not_protected"]}
    for name, is_so in {
        "key_holder": True,
        "times": True,
        "changes": not plan.is_static,
        "profile": plan.has_fakes and plan.unit == "attribute" and plan.d > 1,
        **dict.fromkeys(("squares", "places_and_answers", "far_places", "moves"), "location" in plan.spec),
        "presence": "presence" not in plan.spec and not plan.events,
        **dict.fromkeys(("events", "several_events"), plan.events),
        "unanswered_events": plan.max_events is not None,
        "missing_values": "presence" not in plan.spec,
        "closings": "presence" in plan.spec,
        "tallies": bool(plan.tallies),
        "classes": bool(plan.classes),
        "groups": any("regions" in row for row in plan.asked),
        "disclosed_values": any("sensitive" in row for row in plan.asked),
        "slots": "slots" in plan.spec and "presence" not in plan.spec,
    }.items():
        found.equal(f"not_protected, {name}", name in named, is_so)
    study = statement["study"]
    until = study["key_until"] if study["closed_at"] is None else study["closed_at"][:10]
    dates = dict.fromkeys(("key",) if plan.events else ("key", "presence"), "nothing")
    with_key = ("key", "presence") if plan.max_events is None else ("key", "presence", "persons")
    dates |= dict.fromkeys(with_key[2:], "nothing")
    dates |= {row["name"]: row["date"] for row in statement["retention"]}
    found.equal("retention, number of names", len(statement["retention"]), len(dates))
    for name, day in dates.items():
        found.equal(f"retention, {name}, date", day, until if name in with_key else None)
    found.equal("study.units", study.get("units", "visitors"), "events" if plan.events else "visitors")
    found.equal("study.state", study["state"], "open" if study["closed_at"] is None else "closed")


def check(statement: Json, *others: Json) -> Findings:
    """Check a statement; KeyError, ValueError or TypeError for what is no statement."""
    found, plan = Findings(), Plan(statement)
    check_spec(plan, found)
    if found.texts:
        return found  # nothing follows from it
    check_plan(statement, plan, found)
    if len(statement["indicators"]) != plan.d:
        return found
    epsilon = statement["plan"]["epsilon"]
    used = [
        check_indicator(entry, plan, index, epsilon, found)
        for index, entry in enumerate(statement["indicators"])
    ]
    check_guarantee(statement, plan, used, found)
    check_classes(statement, plan, found)
    check_sums(statement, plan, used, found)
    check_location(statement, plan, found)
    check_presence(statement, plan, found)
    check_slots(statement, plan, found)
    check_composition(statement, list(others), found)
    check_words(statement, plan, found)
    return found


def _once(pairs: list[tuple[str, Any]]) -> Json:
    """Refuse a repeated name in an object: readers would not agree on the valid one."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name is repeated in one object")
    return dict(pairs)


def main(arguments: list[str] | None = None) -> int:
    """Check the files that are named."""
    parser = argparse.ArgumentParser(description="Recompute every claim of a privacy statement.")
    parser.add_argument("statement", type=Path, help="JSON file, as manage.py statement prints it")
    parser.add_argument("others", type=Path, nargs="*", help="statements of studies of the same population")
    asked = parser.parse_args(arguments)
    try:
        texts = (path.read_text("utf-8") for path in (asked.statement, *asked.others))
        first, *others = (json.loads(text, object_pairs_hook=_once) for text in texts)
        found = check(first, *others)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        sys.stderr.write(f"not a statement that can be checked: {error!r}\n")
        return 2
    for text in found.texts:
        sys.stdout.write(f"{text}\n")
    listed = len(first["composition"]["studies"]) - 1
    sys.stdout.write(
        f"{found.checked} claims checked, {len(found.texts)} differ; of {listed} other studies of the "
        f"population, {len(others)} were compared with their own statement; not visible here: whether "
        f"{first['guarantee']['voided_days']} is the number of days undone\n"
    )
    return 1 if found.texts else 0


if __name__ == "__main__":
    sys.exit(main())

"""Two-sided geometric noise of whole persons, with integer thresholds: what hides presence in a count.

A magnitude is drawn digit by digit, in binary: its lowest digits are 1 with separate probabilities, and
what is above them repeats as long as a last threshold says so. Then a fair sign; minus zero is drawn again.
With the true probabilities this is exactly P(z) = (1 - a) / (1 + a) a^|z|, a = exp(-step). With integers out
of 2**64 it is another law, and a known one:

    P(z) = P(|z|) / (2 - P(0)),   P(k) = product over the digits of k of T / W or (W - T) / W, times the tail.

Every whole number has a positive probability: nothing is cut off, so there is no output that only one of two
neighbouring counts can have. From k to k + 1 the digits below the lowest zero change from 1 to 0, and that
zero to 1 (or the tail goes one further): one of `digits + 1` ratios, for any k. The worst of them, or of
their inverses, is the exact ratio of a count that one person more or less moves by one.

Source: Ghosh, Roughgarden and Sundararajan, STOC 2009 (two-sided geometric mechanism); binary digits of a
geometric variable are independent; the sign as by Canonne, Kamath and Steinke, NeurIPS 2020.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from ldp.errors import InvalidBudgetError
from ldp.protocols.channels import WORD, epsilon_of, exp_down

MIN_STEP = Fraction(1, 10**9)
MAX_STEP = Fraction(32)  # the tail repeats with probability e^-32 at least: 2**64 still knows it to 1e-5

_MARGIN = Fraction(1, 2**60)  # rounding cost of a step, doubled until it is enough


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricChannel:
    """Noise of one count; InvalidBudgetError if a threshold is not in (0, 2**64).

    Parameters
    ----------
    digits : tuple of int; digit j of the magnitude is 1 with probability digits[j] / 2**64
    tail : int; another 2**len(digits) is added with probability tail / 2**64, again and again
    """

    digits: tuple[int, ...]
    tail: int

    def __post_init__(self) -> None:
        for threshold in (*self.digits, self.tail):
            if not 0 < threshold < WORD:
                raise InvalidBudgetError(f"threshold must be in (0, {WORD}), got {threshold}")

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of a noisy count under two counts that differ by one, exact."""
        odds = [Fraction(threshold, WORD - threshold) for threshold in self.digits]
        # Odds of the digits below, all of them 1; then each falls back to 0.
        carried = list(accumulate(odds, lambda product, each: product * each, initial=Fraction(1)))
        ups = [Fraction(1, 1) / each for each in odds] + [Fraction(WORD, self.tail)]
        falls = [before * up for before, up in zip(carried, ups, strict=True)]
        return max(max(fall, 1 / fall) for fall in falls)

    @property
    def epsilon(self) -> Decimal:
        """Realised loss of one step, rounded up to 30 digits."""
        return epsilon_of(self.ratio)

    def probability(self, z: int) -> Fraction:
        """Probability of the noise z, exact."""
        zero = self._of_magnitude(0)
        return self._of_magnitude(abs(z)) / (2 - zero)

    def _of_magnitude(self, k: int) -> Fraction:
        tail = Fraction(self.tail, WORD)
        found = (1 - tail) * tail ** (k >> len(self.digits))
        for digit, threshold in enumerate(self.digits):
            found *= Fraction(threshold if k >> digit & 1 else WORD - threshold, WORD)
        return found

    @property
    def moments(self) -> tuple[float, float]:
        """Variance, and excess kurtosis, of the noise; of the realised law."""
        return _moments(self)

    @property
    def variance(self) -> float:
        """Variance of the noise, in persons squared."""
        return self.moments[0]


@lru_cache(maxsize=256)
def geometric_channel(*, step: Fraction) -> GeometricChannel:
    """Noise that loses at most `step` for every person by which a count may differ.

    InvalidBudgetError if step is not in [1e-9, 32].
    """
    if not MIN_STEP <= step <= MAX_STEP:
        raise InvalidBudgetError(
            f"presence epsilon of one count must be in [{float(MIN_STEP):g}, {MAX_STEP}], "
            f"got {float(step):.6g}"
        )
    margin = _MARGIN
    while True:
        channel = _rounded(step - margin)
        if Fraction(channel.epsilon) <= step:
            return channel
        margin *= 2


def _rounded(step: Fraction) -> GeometricChannel:
    """Thresholds of a step, to the nearest integer; digits until the tail repeats less than half the time."""
    digits: list[int] = []
    while step * 2 ** len(digits) < Fraction(7, 10):
        odds = 1 / exp_down(step * 2 ** len(digits))
        digits.append(round(WORD * odds / (1 + odds)))
    return GeometricChannel(digits=tuple(digits), tail=round(WORD / exp_down(step * 2 ** len(digits))))


@lru_cache(maxsize=256)
def _moments(channel: GeometricChannel) -> tuple[float, float]:
    """Moments of the magnitude, from those of its independent parts, then of the signed noise."""
    tail = channel.tail / WORD
    scale = 2.0 ** len(channel.digits)
    parts = [(scale, _geometric_moments(tail))]
    for digit, threshold in enumerate(channel.digits):
        p = threshold / WORD
        parts.append((2.0**digit, (p, p, p, p)))
    raw = (0.0, 0.0, 0.0, 0.0)
    for weight, part in parts:
        scaled = tuple(weight ** (n + 1) * each for n, each in enumerate(part))
        raw = _of_sum(raw, scaled)
    zero = float(channel.probability(0))
    # P(z) = P(|z|) / (2 - P_M(0)), and P(0) is P_M(0) / (2 - P_M(0)): so 2 / (2 - P_M(0)) = 1 + P(0).
    second, fourth = raw[1] * (1 + zero), raw[3] * (1 + zero)
    return second, fourth / second**2 - 3


def _geometric_moments(a: float) -> tuple[float, ...]:
    """First four raw moments of P(k) = (1 - a) a^k."""
    first = a / (1 - a)
    second = first * (1 + a) / (1 - a)
    third = a * (1 + 4 * a + a * a) / (1 - a) ** 3
    fourth = a * (1 + 11 * a + 11 * a * a + a**3) / (1 - a) ** 4
    return first, second, third, fourth


def _of_sum(x: tuple[float, ...], y: tuple[float, ...]) -> tuple[float, float, float, float]:
    """First four raw moments of the sum of two independent variables."""
    (a1, a2, a3, a4), (b1, b2, b3, b4) = x, y
    return (
        a1 + b1,
        a2 + 2 * a1 * b1 + b2,
        a3 + 3 * a2 * b1 + 3 * a1 * b2 + b3,
        a4 + 4 * a3 * b1 + 6 * a2 * b2 + 4 * a1 * b3 + b4,
    )

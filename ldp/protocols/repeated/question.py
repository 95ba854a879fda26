"""One permanent question per person: in which of a few groups of values does yours lie?

A question divides the values into r groups, r a prime. It is drawn once per person, from no value, so anyone
may know it. The answer is a noisy group. However often the value changes, a person has r answers in all: with
one round of noise, any number of days loses at most r times the epsilon of one answer, on values. With r = 2
the question is "is your value one of these?" of about half of the values. With a second round, drawn again
for each report, it is LOLOHA, whose hash is the question (`ldp.protocols.repeated.hashed`).

Value v has t digits in base r. Questions are the points y of PG(t - 1, r), and the group of v is
-<y, v> mod r. So any two values are in the same group of (r**(t-1) - 1) / (r - 1) of the
(r**t - 1) / (r - 1) questions: reports are those of a pure protocol.

Source: Ding, Kulkarni, Yekhanin, NeurIPS 2017 (a permanent question, about d = 1 values: dBitFlipPM);
Bassily, Smith, STOC 2015 and Acharya, Sun, Zhang, AISTATS 2019 (one bit, about half of the values).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ldp.errors import InvalidDomainError
from ldp.protocols.channels import (
    MAX_DOMAIN_SIZE,
    GrrChannel,
    SupportChannel,
    check_domain_size,
    grr_channel,
)
from ldp.protocols.projective import is_prime, n_points
from ldp.protocols.two_round import TwoRoundGrr


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionChannel(SupportChannel):
    """A noisy answer to a person's permanent question.

    Parameters
    ----------
    domain_size : int; number of values, in [2, r**dimension]
    dimension : int; digits of a value, t
    answer : GrrChannel or TwoRoundGrr; on the groups, whose number r is a prime

    Raises
    ------
    InvalidDomainError : there are more values than digits can distinguish, or more codes than 65534

    Notes
    -----
    The code of a report is r times the question plus the group. It supports all values of the group.
    """

    domain_size: int
    dimension: int
    answer: GrrChannel | TwoRoundGrr

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)
        if not is_prime(self.groups):
            raise InvalidDomainError(f"groups must be a prime number, got {self.groups}")
        if self.domain_size > self.groups**self.dimension:
            raise InvalidDomainError(
                f"domain_size must be <= {self.groups**self.dimension}, got {self.domain_size}"
            )
        if self.n_codes > MAX_DOMAIN_SIZE:
            raise InvalidDomainError(f"codes must be <= {MAX_DOMAIN_SIZE}, got {self.n_codes}")

    @property
    def groups(self) -> int:
        """Number of groups, which is that of the answers that one person may give."""
        return self.answer.domain_size

    @property
    def n_questions(self) -> int:
        return n_points(self.groups, self.dimension)

    @property
    def n_codes(self) -> int:
        """Number of possible reports."""
        return self.groups * self.n_questions

    @property
    def support_size(self) -> int:
        """Reports that support one value: one of each question."""
        return self.n_questions

    @property
    def shared(self) -> Fraction:
        """Share of the questions that have two given values in one group."""
        return Fraction(n_points(self.groups, self.dimension - 1), self.n_questions)

    @property
    def p(self) -> Fraction:
        return self.answer.p

    @property
    def q(self) -> Fraction:
        """Probability that a report supports one given other value, over all questions."""
        return self.shared * self.answer.p + (1 - self.shared) * self.answer.q

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of a report under two values, the question being known."""
        return self.answer.ratio

    @property
    def least_covariance(self) -> Fraction:
        """Least covariance of two reports of one person that support a value, given other values; 0 or less.

        That of their means given the question, where the two others and the value lie on no line; equal
        groups repeat an answer, which adds to it.
        """
        if self.dimension < 2:
            return Fraction(0)
        three = Fraction(n_points(self.groups, self.dimension - 2), self.n_questions)
        return (three - self.shared**2) * (self.answer.p - self.answer.q) ** 2


@lru_cache(maxsize=256)
def question_channel(
    *, epsilon: Fraction, domain_size: int, max_codes: int = MAX_DOMAIN_SIZE
) -> QuestionChannel:
    """One permanent yes/no question of a nominal epsilon; the realised one is never larger.

    Parameters
    ----------
    epsilon : Fraction; of one of the two answers of a person, in [0.000001, 64]
    domain_size : int; in [2, 32768]
    max_codes : int; of a report

    Raises
    ------
    InvalidBudgetError, InvalidDomainError : also where there are more codes than `max_codes`
    """
    check_domain_size(domain_size)
    dimension = (domain_size - 1).bit_length()
    n_codes = 2 * n_points(2, dimension)
    if n_codes > min(max_codes, MAX_DOMAIN_SIZE):
        most = 2 ** ((min(max_codes, MAX_DOMAIN_SIZE) // 2 + 1).bit_length() - 1)
        raise InvalidDomainError(f"domain_size must be <= {most} for one question, got {domain_size}")
    answer = grr_channel(epsilon=epsilon, domain_size=2)
    return QuestionChannel(domain_size=domain_size, dimension=dimension, answer=answer)

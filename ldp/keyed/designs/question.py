"""Permanent questions with keyed bits: one question per subscriber, a lasting answer per group of values."""

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.kernels.entropy import ANSWER, CHOOSE_QUESTION, KeyedPrf, PlanFields
from ldp.keyed import grr
from ldp.keyed.two_round import GrrReporter
from ldp.protocols.projective_space import digits_of, space_of, support_of
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.two_round import TwoRoundGrr

Words = NDArray[np.uint64]


def choose_question(
    pseudonyms: Words, *, prf: KeyedPrf, indicator: int, channel: QuestionChannel
) -> NDArray[np.int64]:
    """Question of each subscriber, in every plan version that divides the values alike; int64, shape (n,).

    It depends on no value, so everyone may know it.
    """
    fields = {"purpose": CHOOSE_QUESTION, "indicator": indicator, "plan_version": 0}
    return prf.below(pseudonyms, bound=channel.n_questions, value=0, **fields).astype(np.int64)


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: QuestionChannel,
    day: int = 0,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Code of each subscriber's report; the same arguments always give the same reports.

    Parameters
    ----------
    day : int; in [0, 63]; number of the report: only a second round has fresh noise for each
    others, Raises : as of `grr.answers`

    Returns
    -------
    ndarray of uint16, shape (n,); in [0, n_codes), NO_ANSWER where the value is -1

    Notes
    -----
    The keyed value is the code of the question with the true group: a subscriber has as many answers as there
    are groups, however often the value changes. Cost: two AES blocks per subscriber. With a second round the
    keyed value is the true group (`GrrReporter`), and there is one block more.
    """
    grr.check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    asked = choose_question(pseudonyms, prf=prf, indicator=fields["indicator"], channel=channel)
    truth = groups_of(np.maximum(values, 0), asked, channel=channel)
    first = (channel.groups * asked).astype(np.uint32)
    if isinstance(channel.answer, TwoRoundGrr):
        rounds = GrrReporter(channel=channel.answer, prf=prf, **fields)
        noisy = rounds.reports(truth, pseudonyms=pseudonyms, report=day)
        return np.where(values < 0, NO_ANSWER, first + noisy).astype(np.uint16)
    reported = grr.draw(
        truth,
        keyed=first + truth.astype(np.uint32),
        pseudonyms=pseudonyms,
        prf=prf,
        channel=channel.answer,
        purpose=ANSWER,
        counter=0,
        **fields,
    )
    return np.where(values < 0, NO_ANSWER, first + reported).astype(np.uint16)


def groups_of(
    values: NDArray[np.int32], questions: NDArray[np.int64], *, channel: QuestionChannel
) -> NDArray[np.int32]:
    """Group of each value under a question each; int32, shape (n,)."""
    digits = digits_of(np.arange(channel.domain_size), channel=channel)
    coordinates = space_of(channel.groups, channel.dimension).coordinates
    products = np.zeros(values.shape[0], np.int64)
    for own, of_question in zip(digits, coordinates.T, strict=True):
        products += own[values] * of_question[questions]
    return (-products % channel.groups).astype(np.int32)


def count_support(reports: NDArray[np.uint16], *, channel: QuestionChannel) -> NDArray[np.int64]:
    """Reports that support each value; int64, shape (domain_size,).

    Parameters
    ----------
    reports : ndarray of uint16, shape (n,); codes, or NO_ANSWER
    """
    counts = np.bincount(reports[reports != NO_ANSWER], minlength=channel.n_codes).astype(np.int64)
    return support_of(counts, channel=channel)

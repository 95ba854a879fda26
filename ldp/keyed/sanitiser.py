"""A plan with a key: turns true codes into reports."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError, PlanError
from ldp.kernels.entropy import ANSWER, TRIP_ANSWER, KeyedPrf
from ldp.keyed import grr, oracles
from ldp.keyed.choices import choose_days, choose_indicator, slot_days
from ldp.keyed.designs import moves, question, regions, renewed, sensitive, threshold, wave
from ldp.keyed.designs.fresh import fresh_answers
from ldp.keyed.fakes import data as fake_data
from ldp.keyed.words import to_words
from ldp.privacy.plans import PlanSpec
from ldp.protocols.channels import GrrChannel
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.partial.regions import RegionChannel
from ldp.protocols.partial.sensitive import SensitiveChannel
from ldp.protocols.projective import CodeChannel
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.repeated.renewed import RenewedChannel
from ldp.protocols.two_round import TwoRoundGrr
from ldp.protocols.two_round_unary import TwoRoundUnary

Values = NDArray[np.int32]
Words = NDArray[np.uint64]


class Sanitiser:
    """A plan with a key: turns true codes into reports.

    Parameters
    ----------
    plan : PlanSpec; one with classes as `PlanSpec.of_class` has it: people answer by their own
    prf : KeyedPrf; of the study's sanitising subkey

    Raises
    ------
    InvalidBudgetError, InvalidDomainError
    PlanError : the plan has classes
    """

    __slots__ = ("_channels", "_plan", "_prf")

    def __init__(self, plan: PlanSpec, prf: KeyedPrf) -> None:
        if plan.classes:
            raise PlanError("plan must be that of one class, with its epsilon: use PlanSpec.of_class")
        self._plan = plan
        self._prf = prf
        self._channels = tuple(plan.answer_channel(index) for index in range(plan.d))

    def asked(self, pseudonyms: Words) -> NDArray[np.uint8]:
        """Position of the one indicator that each subscriber answers; uint8, shape (n,).

        Raises
        ------
        LdpError : everyone reports on everything under the plan's mechanism
        """
        if not self._plan.is_sampled:
            raise LdpError(f"asked needs a mechanism that samples, got {self._plan.mechanism}")
        return choose_indicator(pseudonyms, prf=self._prf, d=self._plan.d, shares=self._plan.shares)

    def answer(self, index: int, pseudonyms: Words, values: Values) -> NDArray[np.uint16]:
        """Answers to one indicator by GRR; under sampling, the caller passes only the subscribers asked it.

        Parameters
        ----------
        index : int; position in the plan
        pseudonyms : ndarray of uint64, shape (n,)
        values : ndarray of int32, shape (n,); true codes, or levels of a number, -1 for no value

        Returns
        -------
        ndarray of uint16, shape (n,); sanitised codes, NO_ANSWER where there is no value

        Raises
        ------
        LdpError : shapes differ, a value is out of range, or an answer is not a code or may be a fake
        """
        channel = self._channels[index]
        is_fresh = self._plan.indicators[index].moves is not None or self._plan.is_stream(index)
        if self._plan.has_fakes or is_fresh or not isinstance(channel, GrrChannel):
            raise LdpError(f"answer needs a mechanism whose reports are codes, got {self._plan.mechanism}")
        return grr.answers(values, channel=channel, **self._fields(index, pseudonyms))

    def sides(self, index: int, pseudonyms: Words, levels: Values) -> Values:
        """Values of a number as a part of a joint indicator: whether it reaches the subscriber's cut.

        Parameters
        ----------
        index : int; position of the number in the plan
        pseudonyms : ndarray of uint64, shape (n,)
        levels : ndarray of int32, shape (n,); levels of the number, anything else for no value

        Raises
        ------
        LdpError : it is no number
        """
        channel = self._channels[index]
        if not isinstance(channel, ThresholdChannel):
            raise LdpError(f"sides needs a number, got {self._plan.indicators[index].slug}")
        fields: dict[str, Any] = {"pseudonyms": pseudonyms, "prf": self._prf, "indicator": index}
        return threshold.sides(levels, channel=channel, **fields)

    def picked_moves(
        self, index: int, pseudonyms: Words, *, starts: NDArray[np.int64], codes: Values, day: int
    ) -> Values:
        """Values of an indicator of moves for `report`: one move of the day of each subscriber.

        Parameters
        ----------
        index : int; position in the plan
        pseudonyms : ndarray of uint64, shape (n,)
        starts, codes, day : moves of the day, as of `ldp.keyed.designs.moves.picked_moves`

        Raises
        ------
        LdpError : it asks for something else, or a parameter does not fit
        """
        asked = self._plan.indicators[index]
        if asked.moves is None:
            raise LdpError(f"picked_moves needs an indicator of moves, got {asked.slug}")
        fields: dict[str, Any] = {"pseudonyms": pseudonyms, "prf": self._prf, "indicator": index, "day": day}
        return moves.picked_moves(starts, codes, spec=asked.moves, **fields)

    def report(self, index: int, pseudonyms: Words, values: Values, *, day: int = 0) -> NDArray[np.uint16]:
        """Answers to one indicator by any oracle, as words; other parameters as of `answer`.

        Parameters
        ----------
        day : int; of the study: moves, hashed values, streams and values that are reported again have fresh
            bits on each, nothing else does

        Returns
        -------
        ndarray of uint16, shape (n, words); as `ldp.keyed.words` says

        Raises
        ------
        LdpError : shapes differ, a value is out of range, or the plan has fake data
        """
        if self._plan.has_fakes:
            raise LdpError(f"report needs a mechanism without fake data, got {self._plan.mechanism}")
        channel = self._channels[index]
        fields = self._fields(index, pseudonyms)
        if isinstance(channel, ThresholdChannel):
            return threshold.answers(values, channel=channel, **fields).reshape(-1, 1)
        if isinstance(channel, WaveChannel):
            return wave.answers(values, channel=channel, **fields).reshape(-1, 1)
        if isinstance(channel, RegionChannel):
            return regions.answers(values, channel=channel, **fields).reshape(-1, 1)
        if isinstance(channel, SensitiveChannel):
            return sensitive.answers(values, channel=channel, **fields).reshape(-1, 1)
        is_of_moves = self._plan.indicators[index].moves is not None
        if (is_of_moves or self._plan.is_stream(index)) and isinstance(channel, CodeChannel):
            fields["purpose"] = TRIP_ANSWER if is_of_moves else ANSWER
            return fresh_answers(values, channel=channel, day=day, **fields).reshape(-1, 1)
        if isinstance(channel, TwoRoundGrr | TwoRoundUnary) or self._plan.is_renewed(index):
            return self.renewed(index, pseudonyms, self.kept(index, pseudonyms, values), day=day)
        if isinstance(channel, QuestionChannel):
            return question.answers(values, channel=channel, day=day, **fields).reshape(-1, 1)
        answers = oracles.oracle_answers(values, channel=channel, **fields)
        return to_words(answers, values=values, channel=channel)

    def kept(self, index: int, pseudonyms: Words, values: Values) -> NDArray[np.uint16]:
        """Lasting answers from which `renewed` makes the report of each day; parameters as of `answer`.

        Returns
        -------
        ndarray of uint16, shape (n, words); as `ldp.keyed.words` says

        Raises
        ------
        LdpError : shapes differ, a value is out of range, or reports are not renewed
        """
        channel = self._renewed_channel(index)
        return renewed.kept_answers(values, channel=channel, **self._fields(index, pseudonyms))

    def renewed(
        self, index: int, pseudonyms: Words, kept: NDArray[np.uint16], *, day: int
    ) -> NDArray[np.uint16]:
        """Report of a day, from lasting answers.

        Parameters
        ----------
        kept : ndarray of uint16, shape (n, words); as of `kept`
        day : int; in [0, 63]

        Raises
        ------
        LdpError : the day is out of range, or reports are not renewed
        """
        channel = self._renewed_channel(index)
        return renewed.day_reports(kept, channel=channel, day=day, **self._fields(index, pseudonyms))

    def reports(
        self, pseudonyms: Words, values: Sequence[Values], *, day: int = 0
    ) -> tuple[NDArray[np.uint16], ...]:
        """Everything that subscribers report when they have these values.

        Parameters
        ----------
        pseudonyms : ndarray of uint64, shape (n,)
        values : sequence of ndarray of int32, shape (n,), one per indicator in plan order; true codes, -1 for
            no value, which makes no report, neither answer nor fake
        day : as of `report`

        Returns
        -------
        tuple of ndarray of uint16, shape (n, words), one per indicator; NO_ANSWER for no report

        Raises
        ------
        LdpError : shapes differ, or a value is out of range
        """
        if len(values) != self._plan.d:
            raise LdpError(f"values must be of {self._plan.d} indicators, got {len(values)}")
        if self._plan.is_sampled:
            asked = self.asked(pseudonyms)
            values = [np.where(asked == index, column, np.int32(-1)) for index, column in enumerate(values)]
        if not self._plan.has_fakes:
            return tuple(
                self.report(index, pseudonyms, column, day=day) for index, column in enumerate(values)
            )
        sent = fake_data.answers(
            values,
            pseudonyms=pseudonyms,
            prf=self._prf,
            channel=self._plan.fake_data,
            plan_version=self._plan.version,
        )
        return tuple(
            to_words(report, values=column, channel=channel)
            for report, column, channel in zip(sent, values, self._channels, strict=True)
        )

    def answer_days(self, index: int, pseudonyms: Words) -> Words:
        """Bitmap of the days on which each subscriber reports on a daily indicator; uint64, shape (n,).

        Raises
        ------
        LdpError : the indicator is static
        """
        spec = self._plan.indicators[index]
        if spec.kind != "daily":
            raise LdpError(f"answer_days needs a daily indicator, got {spec.slug}, which is {spec.kind}")
        if self._plan.window_days is not None:
            return slot_days(
                pseudonyms,
                prf=self._prf,
                days=self._plan.days,
                window_days=self._plan.window_days,
                indicator=index,
            )
        return choose_days(
            pseudonyms,
            prf=self._prf,
            days=self._plan.days,
            max_values=self._plan.values_per_person(index),
            indicator=index,
        )

    def _renewed_channel(self, index: int) -> RenewedChannel:
        channel = self._channels[index]
        if not self._plan.is_renewed(index) or not isinstance(channel, RenewedChannel):
            raise LdpError(f"reports on {self._plan.indicators[index].slug} must be renewed each day")
        return channel

    def _fields(self, index: int, pseudonyms: Words) -> dict[str, Any]:
        return {
            "pseudonyms": pseudonyms,
            "prf": self._prf,
            "indicator": index,
            "plan_version": self._plan.version,
        }

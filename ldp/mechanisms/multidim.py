"""Several indicators: who answers what (Smp: one indicator each; Spl: all), and on which days."""

import numpy as np
from numpy.typing import NDArray

from ldp import kernels
from ldp.channels import grr_channel
from ldp.entropy import BUFFER_BLOCKS, CHOOSE_DAYS, CHOOSE_INDICATOR, KeyedPrf
from ldp.errors import LdpError
from ldp.mechanisms import grr
from ldp.params import MAX_DAYS, MAX_INDICATORS, PlanSpec


def choose_indicator(pseudonyms: NDArray[np.uint64], *, prf: KeyedPrf, d: int) -> NDArray[np.uint8]:
    """Indicator that each subscriber answers, for the whole study and every plan version.

    Parameters
    ----------
    pseudonyms : ndarray of uint64, shape (n,)
    d : int; number of indicators, in [1, 255]

    Returns
    -------
    ndarray of uint8, shape (n,); in [0, d), each equally likely

    Raises
    ------
    LdpError : d is out of range
    """
    if not 1 <= d <= MAX_INDICATORS:
        raise LdpError(f"d must be in [1, {MAX_INDICATORS}], got {d}")
    drawn = prf.below(pseudonyms, bound=d, purpose=CHOOSE_INDICATOR, indicator=0, plan_version=0, value=0)
    return drawn.astype(np.uint8)


def choose_days(
    pseudonyms: NDArray[np.uint64], *, prf: KeyedPrf, days: int, max_values: int, indicator: int
) -> NDArray[np.uint64]:
    """Days on which each subscriber answers a daily indicator, for the whole study and every plan version.

    Parameters
    ----------
    pseudonyms : ndarray of uint64, shape (n,)
    days : int; days of the study, in [1, 62]
    max_values : int; days to choose, in [1, days]
    indicator : int; position in the plan

    Returns
    -------
    ndarray of uint64, shape (n,); bit t-1 = day t; every set of max_values days is equally likely

    Raises
    ------
    LdpError : days or max_values is out of range

    Notes
    -----
    Fisher-Yates; step i (from 0) is the value of the keyed block. Cost: max_values AES blocks per subscriber.
    """
    if not 1 <= max_values <= days <= MAX_DAYS:
        raise LdpError(f"1 <= max_values <= days <= {MAX_DAYS} must hold, got {max_values} and {days}")
    if max_values == days:
        return np.full(pseudonyms.shape[0], 2**days - 1, np.uint64)
    bitmaps = np.zeros(pseudonyms.shape[0], np.uint64)
    for start in range(0, pseudonyms.shape[0], BUFFER_BLOCKS):
        part = slice(start, start + BUFFER_BLOCKS)
        order = np.tile(np.arange(days, dtype=np.uint8), (bitmaps[part].shape[0], 1))
        for step in range(max_values):
            drawn = prf.below(
                pseudonyms[part],
                bound=days - step,
                purpose=CHOOSE_DAYS,
                indicator=indicator,
                plan_version=0,
                value=step,
            )
            kernels.shuffle_step(order, step, drawn, bitmaps[part])
    return bitmaps


class Sanitiser:
    """A plan with a key: turns true codes into answers.

    Parameters
    ----------
    plan : PlanSpec
    prf : KeyedPrf; of the study's sanitising subkey

    Raises
    ------
    InvalidBudgetError, InvalidDomainError
    """

    __slots__ = ("_channels", "_plan", "_prf")

    def __init__(self, plan: PlanSpec, prf: KeyedPrf) -> None:
        self._plan = plan
        self._prf = prf
        self._channels = tuple(
            grr_channel(epsilon=spec.epsilon, domain_size=spec.domain_size) for spec in plan.indicators
        )

    def asked(self, pseudonyms: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Position of the one indicator that each subscriber answers; uint8, shape (n,).

        Raises
        ------
        LdpError : the plan's mechanism asks everyone everything
        """
        if not self._plan.is_sampled:
            raise LdpError(f"asked needs a mechanism that samples, got {self._plan.mechanism}")
        return choose_indicator(pseudonyms, prf=self._prf, d=self._plan.d)

    def answer(
        self, index: int, pseudonyms: NDArray[np.uint64], values: NDArray[np.int32]
    ) -> NDArray[np.uint16]:
        """Answers to one indicator; under sampling, the caller passes only the subscribers asked it.

        Parameters
        ----------
        index : int; position in the plan
        pseudonyms : ndarray of uint64, shape (n,)
        values : ndarray of int32, shape (n,); true codes, -1 for no value

        Returns
        -------
        ndarray of uint16, shape (n,); sanitised codes, NO_ANSWER where there is no value

        Raises
        ------
        LdpError : shapes differ, or a value is out of range
        """
        return grr.answers(
            values,
            pseudonyms=pseudonyms,
            prf=self._prf,
            channel=self._channels[index],
            indicator=index,
            plan_version=self._plan.version,
        )

    def answer_days(self, index: int, pseudonyms: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Bitmap of the days on which each subscriber answers a daily indicator; uint64, shape (n,).

        Raises
        ------
        LdpError : the indicator is static
        """
        spec = self._plan.indicators[index]
        if spec.kind != "daily":
            raise LdpError(f"answer_days needs a daily indicator, got {spec.slug}, which is {spec.kind}")
        return choose_days(
            pseudonyms,
            prf=self._prf,
            days=self._plan.days,
            max_values=self._plan.values_per_person(index),
            indicator=index,
        )

"""A plan with a key: turns true codes into answers."""

import numpy as np
from numpy.typing import NDArray

from ldp.channels import grr_channel
from ldp.entropy import KeyedPrf
from ldp.errors import LdpError
from ldp.mechanisms import grr
from ldp.mechanisms.multidim import choose_days, choose_indicator
from ldp.params import PlanSpec


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

"""Locations with a key: a place of the grid in, a noisy one out, the same permanently."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.errors import LdpError, PlanError
from ldp.geo.grid import Metres
from ldp.geo.location import LocationSpec
from ldp.geo.sampling import AGAIN, SHORTEST, ZEROS, noisy_codes, shifted_codes, shifts
from ldp.kernels import codes as kernels
from ldp.kernels.entropy import CHOOSE_LOCATION_DAYS, LOCATION, KeyedPrf, check_words
from ldp.keyed.choices import choose_days
from ldp.privacy.plans import MAX_VERSION

_LOW_BITS: Final = np.uint64(0xFFFF)
_HALF: Final = np.uint64(16)

Places = NDArray[np.uint16]
Words = NDArray[np.uint64]


class LocationSanitiser:
    """Locations with a key: turns true places into reports.

    Parameters
    ----------
    spec : LocationSpec
    prf : KeyedPrf; of the study's sanitising subkey
    plan_version : int; in [1, 255]

    Raises
    ------
    PlanError : plan_version is out of range

    Notes
    -----
    The place is part of the keyed block: the same place has one report for the whole study, another one gets
    independent bits. Cost: one AES block per report.
    """

    __slots__ = ("_fields", "_prf", "_spec")

    def __init__(self, spec: LocationSpec, prf: KeyedPrf, plan_version: int) -> None:
        if not 1 <= plan_version <= MAX_VERSION:
            raise PlanError(f"plan_version must be in [1, {MAX_VERSION}], got {plan_version}")
        self._spec = spec
        self._prf = prf
        self._fields = {"purpose": LOCATION, "indicator": 0, "plan_version": plan_version}

    def reports(self, pseudonyms: Words, places: Places) -> Places:
        """Code of the square in which each noisy point lies; of a point outside the grid, the nearest one.

        Parameters
        ----------
        pseudonyms : ndarray of uint64, shape (n,)
        places : ndarray of uint16, shape (n,); code of the true square, NO_ANSWER for none; not modified

        Returns
        -------
        ndarray of uint16, shape (n,); NO_ANSWER where there is no place

        Raises
        ------
        LdpError : shapes differ, or a place is no square of the grid
        """
        self._check(pseudonyms, places)
        grid, scale = self._spec.grid, self._spec.precision.scale
        out = np.empty(places.shape[0], np.uint16)
        n_again = 0
        blocks = self._prf.runs(pseudonyms, **self._fields, values=places.astype(np.uint32), counter=0)
        for part, sealed in blocks:
            n_again += noisy_codes(places[part], sealed, grid.n_x, grid.n_y, scale, out[part])
        if n_again:
            rows = np.flatnonzero(out == AGAIN)
            out[rows] = self._one_by_one(pseudonyms[rows], places[rows])
        return out

    def shifts(self, pseudonyms: Words, places: Places) -> tuple[Metres, Metres]:
        """Noise of each report, east and north in metres, before it is clamped and snapped.

        It never leaves the library: a point that is not snapped has digits that tell where it came from.
        Parameters and errors as of `reports`; the noise of no place is drawn as well.

        Returns
        -------
        two ndarray of float64, shape (n,)
        """
        self._check(pseudonyms, places)
        east, north = self._shifts(pseudonyms, places) * self._spec.grid.step_m
        return east, north

    def answer_days(self, pseudonyms: Words, *, days: int) -> Words:
        """Bitmap of the days on which each subscriber reports; uint64, shape (n,); bit t-1 = day t.

        Parameters
        ----------
        pseudonyms : ndarray of uint64, shape (n,)
        days : int; days of the study, in [1, 62]

        Raises
        ------
        LdpError : days is out of range
        """
        return choose_days(
            pseudonyms,
            prf=self._prf,
            days=days,
            max_values=self._spec.values_per_person(days),
            indicator=0,
            purpose=CHOOSE_LOCATION_DAYS,
        )

    def _one_by_one(self, pseudonyms: Words, places: Places) -> Places:
        """Return `reports` of existing places by way of their shifts, which is slower."""
        codes = np.empty(places.shape[0], np.uint16)
        shifted_codes(
            places, self._shifts(pseudonyms, places), self._spec.grid.n_x, self._spec.grid.n_y, codes
        )
        return codes

    def _shifts(self, pseudonyms: Words, places: Places) -> NDArray[np.float64]:
        """Noise in squares, shape (2, n)."""
        values = places.astype(np.uint32)
        words = self._prf.words(pseudonyms, **self._fields, values=values, counter=0)
        numbers, low = words >> _HALF, words & _LOW_BITS
        angles = low[:, 0] << _HALF | low[:, 1]
        zeros, counter = np.zeros(places.shape[0], np.int64), 0
        while (short := numbers < SHORTEST).any():
            counter += 1
            rows = np.flatnonzero(short.any(axis=1))
            words = self._prf.words(pseudonyms[rows], **self._fields, values=values[rows], counter=counter)
            numbers[rows] = np.where(short[rows], words >> _HALF, numbers[rows])
            zeros[rows] += ZEROS * short[rows].sum(axis=1)
        out = np.empty((2, places.shape[0]))
        first, second = np.ascontiguousarray(numbers.T)
        shifts(first, second, zeros, angles, self._spec.precision.scale, out)
        return out

    def _check(self, pseudonyms: Words, places: Places) -> None:
        """Raise LdpError unless places are codes of the grid, or NO_ANSWER, one per pseudonym."""
        check_words("pseudonyms", pseudonyms)
        if places.dtype != np.uint16 or places.shape != pseudonyms.shape:
            shape = pseudonyms.shape
            raise LdpError(f"places must be uint16 of shape {shape}, got {places.dtype} of {places.shape}")
        if (largest := kernels.max_code(places)) >= self._spec.grid.n_cells:
            raise LdpError(f"place must be in [0, {self._spec.grid.n_cells}) or {NO_ANSWER}, got {largest}")

"""dBitFlipPM with keyed bits: lasting answers about a few values of each subscriber."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp.kernels import lanes as kernels_bits
from ldp.kernels.entropy import ANSWER, HASH_SEED, slices
from ldp.keyed import grr, lanes
from ldp.keyed.two_round import Reporter
from ldp.protocols.bit_flip import BitFlipChannel

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BitFlipSupport:
    """Per value, reports that support it and reports about it: what `pure_frequencies` needs.

    Parameters
    ----------
    counts, n_reports : ndarray of int64, shape (domain_size,)
    """

    counts: NDArray[np.int64]
    n_reports: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BitFlipReporter(Reporter[BitFlipChannel]):
    """dBitFlipPM reports."""

    def chosen(self, pseudonyms: Words) -> Words:
        """Values that each subscriber answers about, 64 to a word; every set of `sampled` is equally likely.

        Parameters
        ----------
        pseudonyms : ndarray of uint64, shape (n,)

        Returns
        -------
        ndarray of uint64, shape (n, ceil(domain_size / 64)); bit v % 64 of word v // 64 is that of value v

        Notes
        -----
        Floyd's algorithm; step i (from 0) is the value of the keyed block of purpose HASH_SEED.
        Cost: `sampled` AES blocks per subscriber.
        """
        k = self.channel.domain_size
        chosen = np.zeros((pseudonyms.shape[0], -(-k // lanes.LANES)), np.uint64)
        for step, last in enumerate(range(k - self.channel.sampled, k)):
            drawn = self.prf.below(pseudonyms, bound=last + 1, purpose=HASH_SEED, value=step, **self.fields)
            kernels_bits.choose_step(last, drawn, chosen)
        return chosen

    def reports(self, values: NDArray[np.int32], *, pseudonyms: Words) -> Words:
        """Noisy bits of the chosen values of each subscriber; they never change.

        Parameters
        ----------
        values : ndarray of int32, shape (n,); codes in [0, domain_size), or -1 for no value; not modified
        pseudonyms : ndarray of uint64, shape (n,)

        Returns
        -------
        ndarray of uint64, shape (n, ceil(domain_size / 64)); as in `chosen`; other bits are zero

        Raises
        ------
        LdpError : shapes differ, or a value is out of range
        """
        grr.check_values(values, pseudonyms=pseudonyms, domain_size=self.channel.domain_size)
        return self._draw(values, pseudonyms, asked=self._asked(values, pseudonyms))

    def support(self, values: NDArray[np.int32], *, pseudonyms: Words) -> BitFlipSupport:
        """Count the bits of `reports` in bounded memory; arguments and errors as there."""
        k = self.channel.domain_size
        grr.check_values(values, pseudonyms=pseudonyms, domain_size=k)
        counts, n_reports = np.zeros((2, k), np.int64)
        for part in slices(values.shape[0]):
            asked = self._asked(values[part], pseudonyms[part])
            bits = self._draw(values[part], pseudonyms[part], asked=asked)
            for group in range(asked.shape[1]):
                places = slice(group * lanes.LANES, (group + 1) * lanes.LANES)
                kernels_bits.add_lanes(np.ascontiguousarray(bits[:, group]), counts[places])
                kernels_bits.add_lanes(np.ascontiguousarray(asked[:, group]), n_reports[places])
        return BitFlipSupport(counts=counts, n_reports=n_reports)

    def _asked(self, values: NDArray[np.int32], pseudonyms: Words) -> Words:
        """Return the chosen values of those who have a value."""
        asked = self.chosen(pseudonyms)
        asked[values < 0] = 0
        return asked

    def _draw(self, values: NDArray[np.int32], pseudonyms: Words, *, asked: Words) -> Words:
        out = np.empty_like(asked)
        for group in range(asked.shape[1]):
            start = group * lanes.LANES
            truth, every_lane = np.empty((2, values.shape[0]), np.uint64)
            kernels_bits.one_hot(values, start, np.uint64(0), truth, every_lane)
            out[:, group] = lanes.draw(
                truth,
                drawn=np.ascontiguousarray(asked[:, group]),
                digits=lanes.Digits.of(
                    self.channel.bits, lanes=min(lanes.LANES, self.channel.domain_size - start)
                ),
                pseudonyms=pseudonyms,
                keyed=grr.keyed_values(values),
                prf=self.prf,
                purpose=ANSWER,
                counter=group * lanes.BLOCKS,
                **self.fields,
            )
        return out

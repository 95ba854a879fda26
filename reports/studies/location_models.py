"""Reported places, counted on the grid of the study."""

import zlib
from math import isqrt

import numpy as np
from django.db import models
from numpy.typing import NDArray

from reports.studies.plan_models import Plan


class LocationTally(models.Model):
    """Reports of places under one plan by (cell of the grid, previous present day, day).

    Compressed: most cells of a grid are empty on most days. The shapes are those of `ldp.estimation.tallies`.
    """

    plan = models.OneToOneField(Plan, on_delete=models.CASCADE, related_name="location_tally")
    counts = models.BinaryField(help_text="int64 little endian in C order, by zlib")
    n_reports = models.BinaryField(help_text="int64 little endian in C order")

    def __str__(self) -> str:
        return f"{self.plan}: locations"

    @property
    def array(self) -> NDArray[np.int64]:
        """Counts, int64 of shape (squares of the grid, days + 1, days + 1); a copy."""
        square = np.frombuffer(self.n_reports, "<i8").size
        side = isqrt(square)
        return np.frombuffer(zlib.decompress(self.counts), "<i8").reshape(-1, side, side).astype(np.int64)

    def set(self, counts: NDArray[np.int64]) -> None:
        """Write counts, of the shape of `array`, and save."""
        self.counts = zlib.compress(counts.astype("<i8", copy=False).tobytes(), level=1)
        self.n_reports = counts.sum(axis=0).astype("<i8").tobytes()
        self.save()

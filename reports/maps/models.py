"""Deconvolved maps of reported places: they take seconds, so they are computed once and kept."""

import zlib
from typing import Self

import numpy as np
from django.db import models
from django.db.models import F, Q
from numpy.typing import NDArray

from reports.base.computation import Computation
from reports.studies.models import Study

Layers = NDArray[np.float32]


class DensityMap(Computation):
    """Where the subscribers of one window are most likely, by square of the study's grid."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="density_maps")
    first_day = models.PositiveSmallIntegerField(help_text="number of the study day, from 1")
    last_day = models.PositiveSmallIntegerField(help_text="the same day, or a later one")
    layers = models.BinaryField(
        null=True, help_text="density, std_error, low, high: float32 little endian, (4, n_y, n_x), by zlib"
    )
    figures = models.JSONField(default=dict, help_text="steps, goodness, counts by zone")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "first_day", "last_day"], name="density_map_once"),
            models.CheckConstraint(
                name="density_map_days", condition=Q(first_day__gte=1) & Q(first_day__lte=F("last_day"))
            ),
            models.CheckConstraint(
                name="density_map_done_has_layers", condition=~Q(state="done") | Q(layers__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"density of {self.study_id}, days {self.first_day} to {self.last_day}"

    def set_layers(self, layers: Layers) -> Self:
        """Keep density, std_error, low and high; shape (4, n_y, n_x)."""
        self.layers = zlib.compress(layers.astype("<f4", copy=False).tobytes(), level=1)
        return self

    def get_layers(self, shape: tuple[int, int]) -> Layers:
        """Return the layers of `set_layers`, for a grid of this shape."""
        if self.layers is None:
            raise ValueError(f"layers of {self} must have been computed, its state is {self.state}")
        return np.frombuffer(zlib.decompress(self.layers), "<f4").reshape(4, *shape).astype(np.float32)

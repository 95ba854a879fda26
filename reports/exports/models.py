"""Files of exports that take more than a moment: made by a worker, kept until the tally changes."""

import zlib
from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Self

from django.conf import settings
from django.db import models

from reports.base.computation import Computation
from reports.studies.models import Study

PIECE_BYTES = 256 << 10


class ExportFile(Computation):
    """One file as someone asked for it; the same for every reader who may have it.

    `stage` is how much of it is done, in percent.
    """

    PATIENCE: ClassVar[timedelta] = timedelta(minutes=2)

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64, unique=True, help_text="SHA-256 of study and recipe")
    recipe = models.JSONField(help_text="content of the file, and its language")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", help_text="who asked first"
    )
    asked_at = models.DateTimeField(help_text="when a person who waits for it last asked")
    reason = models.TextField(blank=True, help_text="why there is no such file, in words")
    name = models.CharField(max_length=300, blank=True)
    content_type = models.CharField(max_length=100, blank=True)
    size = models.PositiveBigIntegerField(default=0, help_text="bytes of the file")
    content = models.BinaryField(null=True, help_text="the file, by zlib")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="export_file_done_has_content",
                condition=~models.Q(state="done") | models.Q(content__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"export {self.pk} of study {self.study_id}"

    def set_content(self, content: bytes) -> Self:
        """Keep a file."""
        self.size, self.content = len(content), zlib.compress(content, level=1)
        return self

    def pieces(self) -> Iterator[bytes]:
        """Yield the data of `set_content`, a piece at a time: the plain file is never complete in memory.

        ValueError if nothing is kept.
        """
        if self.content is None:
            raise ValueError(f"content of {self} must have been made, its state is {self.state}")
        packed, plain = bytes(self.content), zlib.decompressobj()
        while packed:
            yield plain.decompress(packed, PIECE_BYTES)
            packed = plain.unconsumed_tail
        if rest := plain.flush():
            yield rest

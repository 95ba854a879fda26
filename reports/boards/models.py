"""Boards: arrangements of tiles, and the last visit of each account."""

from django.conf import settings
from django.db import models

from reports.studies.models import Study


class Board(models.Model):
    """Tiles of a study under a name. It holds no figures: they are computed at each rendering."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="boards")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="boards")
    name = models.CharField(max_length=80)
    is_shared = models.BooleanField(default=False, help_text="with everyone who may read the study")
    tiles = models.JSONField(default=list, help_text="in their order; reports.boards.tiles reads them")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["study", "owner", "name"], name="board_name_once"),
        ]

    def __str__(self) -> str:
        return f"board {self.pk} of study {self.study_id}"


class BoardUse(models.Model):
    """Time of an account's last visit to a board."""

    board = models.ForeignKey(Board, on_delete=models.CASCADE, related_name="uses")
    account = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["board", "account"], name="board_use_once")]
        indexes = [models.Index(fields=["account", "-at"], name="board_use_latest")]

    def __str__(self) -> str:
        return f"use of board {self.board_id}"


class BoardDigest(models.Model):
    """E-mails of a board that an account set up. It ends with the account's right to the board."""

    board = models.ForeignKey(Board, on_delete=models.CASCADE, related_name="digests")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    addresses = models.JSONField(help_text="of the recipients")
    every_days = models.PositiveSmallIntegerField(help_text="days between two e-mails, and in each")
    language = models.CharField(max_length=8)
    next_at = models.DateTimeField(db_index=True)
    retry_at = models.DateTimeField(null=True, help_text="of the last attempt, if it failed")
    sent_at = models.DateTimeField(null=True)
    sent_state = models.CharField(max_length=64, blank=True, help_text="hash of what was sent last")
    error = models.CharField(max_length=64, blank=True, help_text="kind of the error of the last attempt")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["board", "owner"], name="board_digest_once")]

    def __str__(self) -> str:
        return f"digest {self.pk} of board {self.board_id}"

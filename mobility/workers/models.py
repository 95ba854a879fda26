"""Workers that show signs of life. The table belongs to the app `operations`."""

from django.db import models


class WorkerSign(models.Model):
    """A worker and its last sign of life."""

    name = models.CharField(max_length=200, help_text="as Celery names it: celery@host")
    zone = models.CharField(max_length=8, help_text="MOBILITY_ZONE")
    queues = models.JSONField(default=list)
    processes = models.PositiveSmallIntegerField(default=1)
    version = models.CharField(max_length=32)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        app_label = "operations"
        ordering = ["zone", "name"]
        constraints = [models.UniqueConstraint(fields=["zone", "name"], name="worker_sign_once")]

    def __str__(self) -> str:
        return self.name

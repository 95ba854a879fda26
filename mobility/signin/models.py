"""The table of the shared cache: what counts guesses must be one for all web processes, and outlive them."""

from django.db import models


class CacheEntry(models.Model):
    """An entry of `mobility.signin.cache`; nothing else writes here."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.JSONField()
    expires = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "signin_cache"

    def __str__(self) -> str:
        return self.cache_key

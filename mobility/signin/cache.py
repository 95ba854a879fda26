"""The shared cache of sign-in: counts of guesses and codes that were used, kept as JSON.

Django's caches keep pickles, and reading a pickle runs code: anyone who can write to the table would run
code in every web server. A row of this cache is data and nothing else.
"""

import time
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache

from mobility.signin.models import CacheEntry


class JsonCache(BaseCache):
    """One for all web processes, and one that a restart keeps; values are what JSON can say."""

    def __init__(self, _location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def make_key(self, key: str, version: int | None = None) -> str:
        """Hash the key: it holds what people typed, which may be long."""
        return sha256(super().make_key(key, version).encode()).hexdigest()

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        valid = CacheEntry.objects.filter(pk=self.make_key(key, version), expires__gt=_now())
        found = valid.values_list("value").first()
        return default if found is None else found[0]

    def set(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        defaults = {"value": value, "expires": self._expiry(timeout)}
        CacheEntry.objects.update_or_create(pk=self.make_key(key, version), defaults=defaults)

    def add(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Keep a value where there is none; of several that try at once one gets True."""
        kept = {"value": value, "expires": self._expiry(timeout)}
        entry, is_new = CacheEntry.objects.get_or_create(pk=self.make_key(key, version), defaults=kept)
        return is_new or bool(CacheEntry.objects.filter(pk=entry.pk, expires__lte=_now()).update(**kept))

    def delete(self, key: str, version: int | None = None) -> bool:
        return bool(CacheEntry.objects.filter(pk=self.make_key(key, version)).delete()[0])

    def clear(self) -> None:
        CacheEntry.objects.all().delete()

    def _expiry(self, timeout: Any) -> datetime:
        at = self.get_backend_timeout(timeout)
        return datetime.max.replace(tzinfo=UTC) if at is None else datetime.fromtimestamp(at, UTC)


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)

"""For one test only: staging, and all that is sealed, without encryption. The product has no such switch.

Used through `DJANGO_SETTINGS_MODULE=tests.e2e.unsealed.settings`.
"""

from typing import Any

from django.apps import AppConfig

from mobility import sealing


class NoCipher:
    """Takes the place of AES-GCM and writes what it gets."""

    def __init__(self, _key: bytes) -> None:
        pass

    def encrypt(self, _nonce: Any, data: Any, _context: Any) -> bytes:
        return bytes(data) + bytes(sealing.TAG_BYTES)

    def encrypt_into(self, _nonce: Any, data: Any, _context: Any, buffer: memoryview) -> None:
        buffer[:] = bytes(data) + bytes(sealing.TAG_BYTES)

    def decrypt(self, _nonce: Any, data: Any, _context: Any) -> bytes:
        return bytes(data[: -sealing.TAG_BYTES])

    def decrypt_into(self, _nonce: Any, data: Any, _context: Any, buffer: memoryview) -> None:
        buffer[:] = data[: -sealing.TAG_BYTES]


class Unsealed(AppConfig):
    name = "tests.e2e.unsealed"

    def ready(self) -> None:
        sealing.AESGCM = NoCipher  # type: ignore[assignment, misc]

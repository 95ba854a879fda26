"""Codes of an authenticator app, as RFC 6238 computes them, without the code under test."""

import base64
import hmac
import struct
import time

PERIOD_S = 30


def code_of(secret: str, *, at: float | None = None) -> str:
    step = int((time.time() if at is None else at) // PERIOD_S)
    digest = hmac.new(base64.b32decode(secret), struct.pack(">Q", step), "sha1").digest()
    offset = digest[-1] & 0xF
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 1_000_000:06d}"

"""Encryption at rest: blobs that are sealed for one place and open nowhere else.

AES-256-GCM with random nonces. The context of a blob names its place (study and shard, or batch, stream and
frame) and is authenticated with it, so that a blob that was altered, moved or put back does not open.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.utils.translation import gettext_noop as _

from ldp.kernels.streams import derive_subkey
from mobility.base.errors import SealBrokenError

TAG_BYTES = 16
NONCE_BYTES = 12
SEAL_BYTES = NONCE_BYTES + TAG_BYTES  # by which sealing makes a blob longer


def stream_key(batch_key: bytes, name: str) -> bytes:
    """Key of one stream of a batch: its upload, or its chunks."""
    return derive_subkey(batch_key, purpose=f"stream/{name}", length=32)


def seal(plain: bytes | memoryview, *, key: bytes, context: str) -> bytes:
    """Encrypt one blob; `context` names the place it belongs to and is authenticated with it."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, context.encode())


def seal_into(
    plain: bytes | memoryview, buffer: bytearray | memoryview, *, key: bytes, context: str
) -> memoryview:
    """Encrypt one blob as `seal` does, without new memory; returns the part of the buffer that holds it.

    Parameters
    ----------
    buffer : at least SEAL_BYTES longer than `plain`; used again, it is faster than new memory
    """
    sealed = memoryview(buffer)[: len(plain) + SEAL_BYTES]
    sealed[:NONCE_BYTES] = os.urandom(NONCE_BYTES)
    AESGCM(key).encrypt_into(sealed[:NONCE_BYTES], plain, context.encode(), sealed[NONCE_BYTES:])
    return sealed


def unseal(sealed: bytes | memoryview, *, key: bytes, context: str) -> bytes:
    """Decrypt what `seal` made for the same place.

    Raises
    ------
    SealBrokenError : altered, of another key, or moved from another place
    """
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], context.encode())
    except (InvalidTag, ValueError):
        raise _broken(context) from None


def unseal_into(sealed: bytes | memoryview, buffer: memoryview, *, key: bytes, context: str) -> None:
    """Decrypt what `seal` made for the same place, without a copy.

    Parameters
    ----------
    buffer : exactly as long as the plaintext; meaningless after an error

    Raises
    ------
    SealBrokenError : altered, of another key or length, or moved from another place
    """
    rest = memoryview(sealed)[NONCE_BYTES:]
    try:
        AESGCM(key).decrypt_into(sealed[:NONCE_BYTES], rest, context.encode(), buffer)
    except (InvalidTag, ValueError):
        raise _broken(context) from None


def tag(data: bytes | memoryview, *, key: bytes) -> bytes:
    """AES-GMAC of data, always of the same nonce: tags that are seen betray the key, so hash them again."""
    return AESGCM(key).encrypt(bytes(NONCE_BYTES), b"", data)


def _broken(context: str) -> SealBrokenError:
    return SealBrokenError(_("sealed data of %(context)s is damaged or belongs elsewhere"), context=context)

"""AES-CMAC of many messages at once: pseudonyms from identifiers."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels import codes
from ldp.kernels.codes import Places
from ldp.kernels.entropy import BUFFER_BLOCKS, BlockBuffer, aes_ecb, slices
from ldp.kernels.streams import BLOCK_BYTES

Words = NDArray[np.uint64]


def cmac64(key: bytes, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Words:
    """AES-CMAC (RFC 4493) of each message, shortened to the first 8 tag bytes, big-endian.

    Parameters
    ----------
    key : bytes, 16 of them
    data : ndarray of uint8, shape (m,); messages, one after the other; not modified
    offsets : ndarray of int64, shape (n + 1,); message i is data[offsets[i]:offsets[i + 1]]

    Returns
    -------
    ndarray of uint64, shape (n,)

    Raises
    ------
    LdpError : key has not 16 bytes, or offsets leave data or decrease
    """
    if offsets.ndim != 1 or offsets.size == 0:
        raise LdpError(f"offsets must have shape (n + 1,), got {offsets.shape}")
    if offsets[0] < 0 or offsets[-1] > data.size or np.any(offsets[1:] < offsets[:-1]):
        raise LdpError(f"offsets must rise within [0, {data.size}], got {offsets[0]} to {offsets[-1]}")
    # As those of a column of texts, if they fit: for these the kernels are compiled anyway.
    places = offsets.astype(np.int32) if data.size < 2**31 else offsets
    return cmac64_of(key, data, places[:-1], places[1:])


def cmac64_of(key: bytes, data: NDArray[np.uint8], begins: Places, ends: Places) -> Words:
    """Return `cmac64` of messages at any offsets in `data`; LdpError if key has not 16 bytes.

    Parameters
    ----------
    begins, ends : ndarray of int32 or int64, shape (n,); message i is data[begins[i]:ends[i]], which must lie
        within `data`: it is not checked
    """
    cipher = aes_ecb(key)
    masks = _masks(cipher.encryptor())
    tags, longer = np.empty(begins.size, np.uint64), np.empty(min(begins.size, BUFFER_BLOCKS), np.int32)
    buffer = BlockBuffer(cipher, longer.size)
    for part in slices(tags.size):
        places = begins[part], ends[part]
        n = codes.cmac_first(data, *places, masks, buffer.blocks, longer)
        states, done = buffer.seal(tags[part].size), 1
        codes.first_words(states, tags[part])
        while n:  # seldom
            codes.cmac_next(data, *places, longer[:n], done, masks, states, buffer.blocks)
            states, done = buffer.seal(n), done + 1
            n = codes.cmac_tags(*places, longer[:n], done, states, tags[part])
    return tags


def _masks(encryptor: CipherContext) -> Words:
    """Masks of the last block: row 0 for a full one, row 1 for a padded one (RFC 4493, 2.3)."""
    subkey = int.from_bytes(encryptor.update(bytes(BLOCK_BYTES)))
    masks = []
    for _ in range(2):
        subkey = (subkey << 1 & (1 << 128) - 1) ^ (0x87 if subkey >> 127 else 0)
        masks.append(np.frombuffer(subkey.to_bytes(BLOCK_BYTES), "<u8"))
    return np.stack(masks).astype(np.uint64)

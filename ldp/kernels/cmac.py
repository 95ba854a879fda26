"""AES-CMAC of many messages at once: pseudonyms from identifiers."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels import codes
from ldp.kernels.codes import Places
from ldp.kernels.entropy import BUFFER_BLOCKS, aes_ecb, output_buffer, slices
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
    encryptor = aes_ecb(key).encryptor()
    masks = _masks(encryptor)
    tags = np.empty(begins.size, np.uint64)
    blocks = np.empty(2 * min(begins.size, BUFFER_BLOCKS), np.uint64)
    sealed = output_buffer(blocks.size // 2)
    n_long = 0
    for part in slices(tags.size):
        size = tags[part].size
        n_long += codes.cmac_short(data, begins[part], ends[part], masks, blocks)
        encryptor.update_into(blocks[: 2 * size].view(np.uint8).data, sealed.data)
        tags[part] = sealed[: BLOCK_BYTES * size].view(np.uint64)[::2].byteswap()
    if n_long:
        _replace_long(encryptor, data, begins, ends, masks=masks, tags=tags)
    return tags


def _replace_long(
    encryptor: CipherContext,
    data: NDArray[np.uint8],
    begins: Places,
    ends: Places,
    *,
    masks: Words,
    tags: Words,
) -> None:
    """Write the tags of the messages that need more than one block."""
    long = np.flatnonzero(ends - begins > BLOCK_BYTES)
    n_blocks = ends[long] - begins[long] + BLOCK_BYTES - 1 >> 4
    for length in np.flatnonzero(np.bincount(n_blocks)):
        group = long[n_blocks == length]
        for part in slices(group.size):
            messages = group[part]
            tags[messages] = _group(
                encryptor, data, begins, ends, messages=messages, n_blocks=int(length), masks=masks
            )


def _masks(encryptor: CipherContext) -> Words:
    """Masks of the last block: row 0 for a full one, row 1 for a padded one (RFC 4493, 2.3)."""
    subkey = int.from_bytes(encryptor.update(bytes(BLOCK_BYTES)))
    masks = []
    for _ in range(2):
        subkey = (subkey << 1 & (1 << 128) - 1) ^ (0x87 if subkey >> 127 else 0)
        masks.append(np.frombuffer(subkey.to_bytes(BLOCK_BYTES), "<u8"))
    return np.stack(masks).astype(np.uint64)


def _group(
    encryptor: CipherContext,
    data: NDArray[np.uint8],
    begins: Places,
    ends: Places,
    *,
    messages: NDArray[np.int64],
    n_blocks: int,
    masks: Words,
) -> Words:
    """Tags of the messages that fill `n_blocks` blocks."""
    sealed = output_buffer(messages.size)
    state = np.zeros((messages.size, 2), np.uint64)
    for block in range(n_blocks):
        codes.cmac_absorb(data, begins, ends, messages, block, n_blocks, masks, state)
        encryptor.update_into(state.view(np.uint8).reshape(-1).data, sealed.data)
        state = sealed[: state.nbytes].view(np.uint64).reshape(state.shape)
    return state[:, 0].byteswap()

"""Random bits without compiled kernels: subkeys, streams of synthetic data, bits of the operating system."""

import os
from typing import Final, TypeVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from ldp.errors import LdpError

BLOCK_BYTES: Final = 16

Words = NDArray[np.uint64]
Scalar = TypeVar("Scalar", bound=np.generic)


def derive_subkey(master: bytes, *, purpose: str, length: int = 16) -> bytes:
    """Subkey of a study's master key for one purpose (HKDF-SHA256, RFC 5869).

    Parameters
    ----------
    master : bytes, 32 of them
    purpose : str; distinct purposes give independent keys
    length : int; bytes wanted

    Raises
    ------
    LdpError : master has not 32 bytes, or purpose is empty
    """
    if len(master) != 32:
        raise LdpError(f"master key must have 32 bytes, got {len(master)}")
    if not purpose:
        raise LdpError("purpose must not be empty")
    info = b"mobility/v1/" + purpose.encode()
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(master)


def last_accepted(bound: int) -> np.uint64:
    """Largest word whose remainder modulo `bound` is unbiased; larger words are drawn again.

    It is inclusive because the exclusive limit is 2**64, which no uint64 holds, when `bound` divides 2**64.
    """
    return np.uint64(2**64 // bound * bound - 1)


class KeyedStream:
    """Reproducible stream for synthetic data only; never for noise.

    The same for a key on any machine and any library version (AES-128-CTR from counter 0). LdpError if the
    key has not 16 bytes.
    """

    __slots__ = ("_encryptor",)

    def __init__(self, key: bytes) -> None:
        check_key(key)
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(BLOCK_BYTES))).encryptor()

    def words(self, n: int) -> Words:
        """Next n words of the stream, uint64, shape (n,)."""
        stream = self._encryptor.update(bytes(8 * n))
        return np.frombuffer(stream, dtype=">u8").astype(np.uint64)

    def uniform_int(self, n: int, low: int, high: int) -> NDArray[np.int64]:
        """Draw n integers of [low, high), each equally likely; int64, shape (n,).

        LdpError if high <= low.
        """
        if high <= low:
            raise LdpError(f"high must be > low = {low}, got {high}")
        last = last_accepted(high - low)
        words = self.words(n)
        while (rejected := np.flatnonzero(words > last)).size:
            words[rejected] = self.words(rejected.size)
        return (words % np.uint64(high - low)).astype(np.int64) + low

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Draw a permutation of 0..n-1; int64, shape (n,)."""
        # Equal words would keep their order; for n = 10**8 the chance of one such pair is 0.0003.
        return np.argsort(self.words(n), kind="stable").astype(np.int64)

    def shuffled(self, array: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return the rows of an array in random order, as a new array."""
        return array[self.permutation(array.shape[0])]


class SystemEntropy:
    """Bits of the operating system: simulations that need no repetition."""

    __slots__ = ()

    def words(self, n: int) -> Words:
        """Draw n words, uint64, shape (n,)."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64).copy()


def check_key(key: bytes) -> None:
    if len(key) != 16:
        raise LdpError(f"key must have 16 bytes, got {len(key)}")

"""Blobs that are ciphertext at rest: what comes out is what went in, or nothing."""

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from ldp.kernels.streams import derive_subkey
from mobility.base.errors import SealBrokenError
from mobility.vault.sealing import SEAL_BYTES, seal, seal_into, stream_key, unseal, unseal_into

KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))
BLOB = b"\x00presence of a shard\xff"


def unsealed_in_place(sealed: bytes, *, key: bytes, context: str) -> bytes:
    buffer = bytearray(max(len(sealed) - SEAL_BYTES, 0))
    unseal_into(sealed, memoryview(buffer), key=key, context=context)
    return bytes(buffer)


OPENERS = (unseal, unsealed_in_place)


@given(plain=st.binary(max_size=300), context=st.text(max_size=20))
def test_blob_round_trip(plain: bytes, context: str) -> None:
    for sealed in (
        seal(plain, key=KEY, context=context),
        bytes(seal_into(plain, bytearray(400), key=KEY, context=context)),
    ):
        for open_it in OPENERS:
            assert open_it(sealed, key=KEY, context=context) == plain
        assert len(sealed) == len(plain) + 28


def test_layout_of_a_blob_that_is_never_sealed_alike() -> None:
    """Nonce, then AES-256-GCM with the context as associated data: blobs of the vault outlive a release."""
    sealed = seal(BLOB, key=KEY, context="fimu/presence/3/1")
    assert AESGCM(KEY).decrypt(sealed[:12], sealed[12:], b"fimu/presence/3/1") == BLOB
    assert stream_key(KEY, "upload") == derive_subkey(KEY, purpose="stream/upload", length=32)
    assert len({seal(BLOB, key=KEY, context="c") for _ in range(50)}) == 50
    buffer = bytearray(100)
    assert len({bytes(seal_into(BLOB, buffer, key=KEY, context="c")) for _ in range(50)}) == 50


@pytest.mark.parametrize("open_it", OPENERS)
def test_altered_cut_or_moved_blob_is_refused(open_it) -> None:
    sealed = seal(BLOB, key=KEY, context="fimu/presence/3/1")
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 0x80
        with pytest.raises(SealBrokenError):
            open_it(bytes(altered), key=KEY, context="fimu/presence/3/1")
        with pytest.raises(SealBrokenError):
            open_it(sealed[:place], key=KEY, context="fimu/presence/3/1")
    for key, context in ((OTHER_KEY, "fimu/presence/3/1"), (KEY, "fimu/presence/3/2"), (KEY, "")):
        with pytest.raises(SealBrokenError):
            open_it(sealed, key=key, context=context)


def test_refusals_name_the_place_and_no_content() -> None:
    sealed = seal(BLOB, key=KEY, context="fimu/day-1/0/2")
    for open_it in OPENERS:
        with pytest.raises(SealBrokenError, match=r"^sealed data of fimu/day-1/0/1 is damaged") as caught:
            open_it(sealed, key=KEY, context="fimu/day-1/0/1")
        assert "presence" not in str(caught.value)
    for length in (0, len(BLOB) - 1, len(BLOB) + 1):  # a buffer of another length
        with pytest.raises(SealBrokenError):
            unseal_into(sealed, memoryview(bytearray(length)), key=KEY, context="fimu/day-1/0/2")

"""Keyed bits: the frozen layout of the block, against AES, CMAC and HKDF written out independently."""

import hashlib
import hmac
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC
from hypothesis import given
from hypothesis import strategies as st

from ldp import KeyedPrf, KeyedStream, LdpError, SystemEntropy, cmac64, derive_subkey
from ldp.kernels import codes
from ldp.kernels.entropy import ANSWER, BUFFER_BLOCKS, CHOOSE_DAYS, CHOOSE_INDICATOR
from ldp.kernels.streams import last_accepted
from tests.ldp.exact import FixedPrf, reference_words, refuses

KEY = bytes(range(16))
FIELDS = {"purpose": 0x88, "indicator": 0x99, "plan_version": 0xAA, "counter": 0xEEFF}
WORDS = np.arange(5, dtype=np.uint64)


def test_purposes_are_frozen() -> None:
    assert (CHOOSE_INDICATOR, CHOOSE_DAYS, ANSWER) == (1, 2, 3)


def test_block_layout_is_that_of_the_aes_standard_vector() -> None:
    """FIPS 197, C.1: block 00112233445566778899aabbccddeeff, a distinct byte for each of our fields."""
    words = KeyedPrf(KEY).words(np.array([0x0011223344556677], np.uint64), values=0xBBCCDD, **FIELDS)
    assert [hex(word) for word in words[0]] == ["0x69c4e0d86a7b0430", "0xd8cdb78070b4c55a"]


@given(
    pseudonyms=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20),
    data=st.data(),
    key=st.binary(min_size=16, max_size=16),
    purpose=st.integers(0, 255),
    indicator=st.integers(0, 255),
    plan_version=st.integers(0, 255),
    counter=st.integers(0, 2**16 - 1),
)
def test_words_are_one_aes_call_each(pseudonyms, data, key, **fields) -> None:
    n = len(pseudonyms)
    values = data.draw(st.lists(st.integers(0, 2**24 - 1), min_size=n, max_size=n))
    words = KeyedPrf(key).words(np.array(pseudonyms, np.uint64), values=np.array(values, np.uint32), **fields)
    pairs = zip(pseudonyms, values, strict=True)
    expected = [reference_words(key, pseudonym=who, value=value, **fields) for who, value in pairs]
    assert [tuple(row) for row in words.tolist()] == expected


@pytest.mark.parametrize("n_blocks", [1, 3, 20_000])
@pytest.mark.parametrize("one_value", [False, True])
def test_runs_are_the_words_of_consecutive_counters(n_blocks: int, one_value: bool) -> None:
    n = 3 if n_blocks > BUFFER_BLOCKS else BUFFER_BLOCKS // n_blocks + 5
    pseudonyms = KeyedStream(KEY).words(n)
    values = 2**24 - 1 if one_value else np.arange(n, dtype=np.uint32) % 9
    fields = FIELDS | {"counter": 2**16 - n_blocks}
    found = np.empty((n_blocks, n, 2), np.uint64)
    slices = 0
    for part, run in KeyedPrf(KEY).runs(pseudonyms, values=values, n_blocks=n_blocks, **fields):
        found[:, part] = run.byteswap().reshape(n_blocks, -1, 2)
        slices += 1
    assert slices > 1
    for block in {0, n_blocks // 2, n_blocks - 1}:
        counter = 2**16 - n_blocks + block
        words = KeyedPrf(KEY).words(pseudonyms, values=values, **FIELDS | {"counter": counter})
        assert np.array_equal(found[block], words)


def test_runs_end_with_the_last_counter() -> None:
    with pytest.raises(LdpError, match=r"counter must be in \[0, 65535\], got 65536"):
        next(KeyedPrf(KEY).runs(WORDS, values=0, n_blocks=2, **FIELDS | {"counter": 2**16 - 1}))


def test_field_that_does_not_fit_is_refused() -> None:
    for changes, message in (
        ({"purpose": 256}, r"purpose must be in \[0, 255\], got 256"),
        ({"indicator": -1}, r"indicator must be in \[0, 255\], got -1"),
        ({"plan_version": 256}, r"plan_version must be in \[0, 255\], got 256"),
        ({"counter": 2**16}, r"counter must be in \[0, 65535\], got 65536"),
        ({"values": 2**24}, r"value must be in \[0, 16777215\], got 16777216"),
        ({"values": -1}, r"value must be in \[0, 16777215\], got -1"),
        ({"values": np.full(5, 2**24, np.uint32)}, r"value must be in \[0, 16777215\], got 16777216"),
        ({"values": np.zeros(4, np.uint32)}, r"values must have shape \(5,\), got \(4,\)"),
        ({"pseudonyms": np.arange(5)}, "pseudonyms must be uint64 of shape .*, got int64"),
        ({"pseudonyms": WORDS.reshape(5, 1)}, r"pseudonyms must be uint64 .* of \(5, 1\)"),
    ):
        arguments = {"pseudonyms": WORDS, "values": 0, **FIELDS} | changes
        refuses(message, KeyedPrf(KEY).words, arguments.pop("pseudonyms"), **arguments)


@pytest.mark.parametrize(
    "use", [KeyedPrf, KeyedStream, lambda key: cmac64(key, np.empty(0, np.uint8), np.zeros(1, np.int64))]
)
def test_key_of_another_size_is_refused(use: Callable[[bytes], object]) -> None:
    refuses("key must have 16 bytes, got 32", use, bytes(32))


def check_remainders(words: list[int], bound: int) -> None:
    sealed = np.repeat(np.array(words, np.uint64).byteswap(), 2)
    found = np.empty(len(words), np.uint64)
    every_word = np.uint64(2**64 - 1)  # the last one that is accepted
    codes.reduce_words(sealed, np.uint64(bound), codes.reciprocal(bound), every_word, found)
    assert found.tolist() == [word % bound for word in words]


BOUNDS = [
    *range(1, 300),
    *(2**bits + step for bits in range(9, 64) for step in (-1, 0, 1)),
    *(divisor * (2**64 // 641 // divisor) for divisor in (3, 5, 641, 65533)),
    6_700_417,  # with 641, the factors of 2**32 + 1
    2**64 - 2**32,
    2**64 - 1,
]


def test_remainder_is_exact_at_every_edge_of_a_bound() -> None:
    for bound in BOUNDS:
        highest = (2**64 - 1) // bound
        quotients = {0, 1, 2, highest // 2, highest - 1, highest, *(highest >> bits for bits in range(64))}
        edges = {q * bound + step for q in quotients for step in (-1, 0, 1)} | {2**63, 2**64 - 1}
        check_remainders([word for word in edges if 0 <= word < 2**64], bound)


@given(words=st.lists(st.integers(0, 2**64 - 1), min_size=1), bound=st.integers(1, 2**64 - 1))
def test_remainder_is_exact_for_any_word_and_bound(words: list[int], bound: int) -> None:
    check_remainders(words, bound)


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 255, 2**63])
def test_last_accepted_word_ends_a_whole_number_of_rounds(bound: int) -> None:
    last = int(last_accepted(bound))
    assert (last + 1) % bound == 0
    assert 2**64 - bound < last + 1 <= 2**64


def test_below_draws_again_until_the_word_is_unbiased() -> None:
    top = 2**64 - 1  # the one word that is biased for 3 and for 5
    bits = {0: [top, 7, top], 1: [top, 1, 8], 2: [9, 1, 1]}
    prf = FixedPrf(lambda pseudonym, *, value, counter: (bits[counter][pseudonym], 0))  # noqa: ARG005
    fields = {"purpose": 1, "indicator": 0, "plan_version": 0, "value": 0}
    assert prf.below(np.arange(3, dtype=np.uint64), bound=5, **fields).tolist() == [4, 2, 3]
    with pytest.raises(LdpError, match="bound must be >= 1, got 0"):
        prf.below(WORDS, bound=0, purpose=1, indicator=0, plan_version=0, value=0)


def test_subkeys_are_those_of_rfc_5869_and_differ_by_purpose() -> None:
    master = bytes(range(32))
    extracted = hmac.digest(bytes(32), master, hashlib.sha256)
    expanded = hmac.digest(extracted, b"mobility/v1/sanitise\x01", hashlib.sha256)
    assert derive_subkey(master, purpose="sanitise") == expanded[:16]
    assert derive_subkey(master, purpose="sanitise", length=32) == expanded
    assert derive_subkey(master, purpose="pseudonym") != expanded[:16]
    refuses("master key must have 32 bytes, got 16", derive_subkey, bytes(16), purpose="sanitise")
    refuses("purpose must not be empty", derive_subkey, master, purpose="")


def _joined(messages: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0] + [len(message) for message in messages], dtype=np.int64)
    return np.frombuffer(b"".join(messages), np.uint8), offsets


def _cmac(key: bytes, message: bytes) -> int:
    mac = CMAC(algorithms.AES(key))
    mac.update(message)
    return int.from_bytes(mac.finalize()[:8], "big")


@given(messages=st.lists(st.binary(max_size=70), max_size=30), key=st.binary(min_size=16, max_size=16))
def test_cmac_equals_that_of_the_cryptography_library(messages: list[bytes], key: bytes) -> None:
    assert cmac64(key, *_joined(messages)).tolist() == [_cmac(key, message) for message in messages]


def test_cmac_of_more_messages_than_a_buffer_holds() -> None:
    messages = [str(i).encode() * (1 + i % 3) for i in range(10**9, 10**9 + BUFFER_BLOCKS + 50)]
    tags = cmac64(KEY, *_joined(messages))
    for i in (0, 1, 2, BUFFER_BLOCKS - 1, BUFFER_BLOCKS, BUFFER_BLOCKS + 49):
        assert tags[i] == _cmac(KEY, messages[i])


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 3], [0, 5, 3], [], [[0, 1]]])
def test_cmac_refuses_offsets_outside_the_data(offsets: list[int]) -> None:
    refuses("offsets must", cmac64, KEY, np.zeros(8, np.uint8), np.array(offsets, np.int64))


def test_stream_is_aes_in_counter_mode_and_goes_on() -> None:
    aes = Cipher(algorithms.AES(KEY), modes.ECB()).encryptor()  # noqa: S305
    blocks = b"".join(aes.update(counter.to_bytes(16, "big")) for counter in range(5))
    expected = [int.from_bytes(blocks[8 * i : 8 * i + 8], "big") for i in range(10)]
    stream = KeyedStream(KEY)
    assert stream.words(3).tolist() == expected[:3]
    assert stream.words(0).tolist() == []
    assert stream.words(7).tolist() == expected[3:]


def test_uniform_integers_reject_biased_words() -> None:
    bound = 2**62 + 2**61  # a quarter of all words is biased
    words = iter(KeyedStream(KEY).words(400).tolist())
    expected = [next(words) for _ in range(100)]
    while rejected := [i for i, word in enumerate(expected) if word >= 2 * bound]:
        assert len(rejected) < 50
        for i in rejected:
            expected[i] = next(words)
    drawn = KeyedStream(KEY).uniform_int(100, -5, bound - 5)
    assert drawn.tolist() == [word % bound - 5 for word in expected]
    refuses("high must be > low = 3, got 3", KeyedStream(KEY).uniform_int, 1, 3, 3)


def test_shuffled_keeps_the_rows_and_the_input() -> None:
    rows = np.arange(200).reshape(100, 2)
    shuffled = KeyedStream(KEY).shuffled(rows)
    assert np.array_equal(rows, np.arange(200).reshape(100, 2))
    assert not np.array_equal(shuffled, rows)
    assert np.array_equal(shuffled[np.argsort(shuffled[:, 0])], rows)
    assert np.array_equal(shuffled, KeyedStream(KEY).shuffled(rows))


def test_bits_of_the_system_differ_every_time() -> None:
    entropy = SystemEntropy()
    words = np.concatenate([entropy.words(1000), entropy.words(1000)])
    assert words.dtype == np.uint64
    assert np.unique(words).size == 2000
    assert abs(int(np.bitwise_count(words).sum()) - 64_000) < 6 * np.sqrt(128_000 / 4)

"""The search of the no-trace tests finds what is there: every form, everywhere."""

import base64
import zlib
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.e2e.traces import Search, forms_of

NUMBER, NAME = "33699887766", "Gründerin/4711 x"
SEARCH = Search((NUMBER, NAME))


@pytest.mark.parametrize("text", [NUMBER, NAME])
def test_every_form_is_found_among_other_bytes(text: str) -> None:
    for name, form in forms_of(text).items():
        assert f"{text} as {name}" in SEARCH.in_bytes(b"\x00other" + form + b"bytes\xff")


@pytest.mark.parametrize("text", [NUMBER, NAME])
def test_encoders_write_what_is_searched(text: str) -> None:
    around = f"a row with {text}, and more"
    for shift in range(3):
        assert SEARCH.in_bytes(base64.b64encode(bytes(shift) + around.encode()))
        assert SEARCH.in_bytes(base64.urlsafe_b64encode(bytes(shift) + around.encode()))
    assert SEARCH.in_bytes(urlencode({"value": around}).encode())
    assert SEARCH.in_bytes(around.encode().hex().upper().encode())
    assert SEARCH.in_bytes(around.encode("utf-16"))


def test_number_is_found_as_an_integer() -> None:
    assert SEARCH.in_bytes(b"x" + int(NUMBER).to_bytes(8, "big")) == [f"{NUMBER} as integer BE"]


def test_nothing_is_found_where_nothing_is() -> None:
    content = zlib.compress(NUMBER.encode()) + NUMBER[:-1].encode() + NAME[:-3].encode()
    assert SEARCH.in_bytes(content) == []


def test_files_are_found_at_any_depth(tmp_path: Path) -> None:
    deep = tmp_path / "a" / ".hidden" / "b"
    deep.mkdir(parents=True)
    (deep / "clean").write_text("nothing")
    (deep / "dirty").write_bytes(b"\x00" * 100_000 + NUMBER.encode())
    (found,) = SEARCH.in_files(tmp_path)
    assert found == f"{deep / 'dirty'}: {NUMBER} as text"

"""The search of the no-trace tests finds planted texts: every form, everywhere."""

import base64
import os
import zlib
from urllib.parse import urlencode

import pytest

from tests.e2e.traces import Search, forms_of

NUMBER, NAME = "33699887766", "Gründerin/4711 x"
SEARCH = Search((NUMBER, NAME))


@pytest.mark.parametrize("text", [NUMBER, NAME])
def test_every_form_is_found_among_other_bytes(text):
    for name, form in forms_of(text).items():
        assert f"{text} as {name}" in SEARCH.in_bytes(b"\x00other" + form + b"bytes\xff")
    # Encoders write what is searched.
    around = f"a row with {text}, and more"
    for shift in range(3):
        assert SEARCH.in_bytes(base64.b64encode(bytes(shift) + around.encode()))
        assert SEARCH.in_bytes(base64.urlsafe_b64encode(bytes(shift) + around.encode()))
    assert SEARCH.in_bytes(urlencode({"value": around}).encode())
    assert SEARCH.in_bytes(around.encode().hex().upper().encode())
    assert SEARCH.in_bytes(around.encode("utf-16"))


def test_number_is_found_as_an_integer_and_nothing_where_nothing_is():
    assert SEARCH.in_bytes(b"x" + int(NUMBER).to_bytes(8, "big")) == [f"{NUMBER} as integer BE"]
    content = zlib.compress(NUMBER.encode()) + NUMBER[:-1].encode() + NAME[:-3].encode()
    assert SEARCH.in_bytes(content) == []


def test_file_that_was_clean_is_read_again_once_it_has_changed_at_any_depth(tmp_path):
    file = tmp_path / "a" / ".hidden" / "log"
    file.parent.mkdir(parents=True)
    file.write_text("nothing" * 10)
    os.utime(file, (0, 0))
    search = Search((NUMBER,))
    assert search.in_files(tmp_path) == []
    file.write_text(NUMBER.ljust(70))
    os.utime(file, (0, 0))  # even then: not by its time and size alone
    assert search.in_files(tmp_path) == [f"{file}: {NUMBER} as text"]

"""Searching everything that an installation writes for planted texts, however they may be encoded."""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import quote, quote_plus

SETTLED_S = 2.0  # longer than any tick of a file system's clock
SHORTEST = 6  # bytes of a form: a shorter one would be found by chance


@dataclass(frozen=True)
class Search:
    """Finds any of `texts` in any of its forms.

    Compressed or encrypted data are opaque to it: the servers around it compress nothing.
    A file that holds none is not read again before it changes.
    """

    texts: tuple[str, ...]
    _clean: dict[Path, tuple[int, ...]] = field(default_factory=dict, compare=False)

    def in_bytes(self, content: bytes) -> list[str]:
        lower = content.lower()
        return [
            f"{text} as {name}"
            for text in self.texts
            for name, form in forms_of(text).items()
            if form in (lower if name.startswith("hex") else content)
        ]

    def in_files(self, *folders: Path) -> list[str]:
        found = []
        for path in files_below(*folders):
            state = state_of(path)
            if state is not None and self._clean.get(path) == state:
                continue
            here = self.in_bytes(content_of(path))
            found += [f"{path}: {what}" for what in here]
            if state is not None and not here:
                self._clean[path] = state
        return found


@cache
def forms_of(text: str) -> dict[str, bytes]:
    """Bytes by which a text could be written down, by name."""
    plain = text.encode()
    forms = {
        "text": plain, "Latin-1": text.encode("latin-1"), "JSON": json.dumps(text)[1:-1].encode(),
        "escaped": ascii(text)[1:-1].encode(), "UTF-16 LE": text.encode("utf-16-le"),
        "UTF-16 BE": text.encode("utf-16-be"), "URL": quote(text).encode(),
        "form": quote_plus(text).encode(), "hex": plain.hex().encode(),
    }  # fmt: skip
    for shift in range(3):
        forms[f"base64 +{shift}"] = _base64(plain, shift)
        forms[f"URL base64 +{shift}"] = _base64(plain, shift).translate(bytes.maketrans(b"+/", b"-_"))
    if text.isdigit():
        number = int(text).to_bytes(8, "little")
        forms |= {"integer LE": number, "integer BE": number[::-1]}
    assert min(map(len, forms.values())) >= SHORTEST
    first: dict[bytes, str] = {}
    for name, form in forms.items():  # digits look alike in many of them
        first.setdefault(form, name)
    return {name: form for form, name in first.items()}


def _base64(plain: bytes, shift: int) -> bytes:
    """The characters that `plain` alone decides when `shift` bytes come before it."""
    encoded = base64.b64encode(bytes(shift) + plain)
    return encoded[-(-shift * 8 // 6) : (shift + len(plain)) * 8 // 6]


def files_below(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path


def state_of(path: Path) -> tuple[int, ...] | None:
    """Return the version of a file; None of one that changed just now, and may again unnoticed."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    is_old = time.time() - found.st_mtime > SETTLED_S
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if is_old else None


def content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""

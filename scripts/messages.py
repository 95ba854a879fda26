"""Catalogues of translations: finds the strings of the source, keeps the .po files, compiles them.

    make messages           write the .po files again from the source, and compile them
    make messages CHECK=1   change nothing; fail if anything is missing, out of date, or not as the source

The compiled .mo files are part of the repository, so that what runs needs neither GNU gettext nor Babel; a
test fails when one is not what its .po says. Extraction is Babel's, with Django's own view of a template.
"""

import argparse
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract as babel_extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
LOCALE_DIR = ROOT / "locale"
LANGUAGES = ("fr",)
PYTHON_FOLDERS = ("reports", "mobility")
TEMPLATE_FOLDERS = ("templates",)
# Django's names, the `_` of lazy texts, and what `templatize` writes for the tags of a template.
KEYWORDS: dict[str, tuple[int | tuple[int, int] | tuple[int, str], ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
_NAMED = re.compile(r"%\((\w+)\)[sd]")
_PLAIN = re.compile(r"(?<!%)%[sd](?!\w)")
_BRACED = re.compile(r"\{(\w+)\}")
_TAG = re.compile(r"</?([a-z]+)")
# French sets spaces that do not break before a sign and inside quotation marks, narrow ones before most;
# its apostrophe is curved.
_SPACES = (
    (re.compile(r"(?<=\S) (?=[:»](?:\W|$))|(?<=[«±]) "), "\u00a0"),
    (re.compile(r"(?<=\S) (?=[;?!](?:\W|$))|(?<=[\ds]) (?=%(?![\w(]))"), "\u202f"),
    (re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_]|%\()"), "\u2019"),
)

Key = tuple[str, str | None]


class _ClocklessCatalog(Catalog):
    """A catalogue whose header says only what readers of it need."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        return [
            ("Language", str(self.locale)),
            ("Plural-Forms", self.plural_forms),
            ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Transfer-Encoding", "8bit"),
        ]


def extract() -> Catalog:
    """Every string of the source that people see, with its place.

    Raises
    ------
    SyntaxError : a template or module cannot be read
    """
    catalog = Catalog(charset="utf-8", fuzzy=False)
    for path in source_files():
        for line, message, comments, context in _strings_of(path):
            place = (path.relative_to(ROOT).as_posix(), line)
            catalog.add(message, locations=[place], auto_comments=comments, context=context)
    return catalog


def source_files() -> Iterator[Path]:
    """Modules and templates that hold strings, in a fixed order."""
    for folder in PYTHON_FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))
    for folder in TEMPLATE_FOLDERS:
        yield from sorted(path for path in (ROOT / folder).rglob("*.html"))


def updated(language: str, template: Catalog) -> Catalog:
    """Catalogue of `language` with exactly the strings of `template`; known translations stay.

    Nothing is guessed from similar strings: a wrong translation is worse than a missing one.
    """
    known = read_catalog(language) if po_path(language).exists() else Catalog(locale=language)
    catalog = Catalog(locale=language, charset="utf-8", fuzzy=False)
    for message in _sorted(template):
        old = known.get(_singular(message), message.context)
        keeps = old is not None and bool(old.pluralizable) == bool(message.pluralizable)
        added = catalog.add(
            message.id,
            _spaced(old.string) if keeps and old is not None else "",
            locations=[(name, 0) for name in sorted({name for name, _ in message.locations})],
            auto_comments=message.auto_comments,
            context=message.context,
        )
        added.flags.clear()  # guesses: "95% sent" is no format, and `faults` looks at placeholders
    return catalog


def faults(language: str, template: Catalog) -> list[str]:
    """Return errors that a person would see: missing, superfluous, or with other placeholders."""
    catalog = read_catalog(language)
    wanted, found = _by_key(template), _by_key(catalog)
    lines = [f"not in the catalogue: {text!r}" for text, _ in wanted.keys() - found.keys()]
    lines += [f"no longer in the source: {text!r}" for text, _ in found.keys() - wanted.keys()]
    for key in wanted.keys() & found.keys():
        if found[key].fuzzy:
            lines.append(f"marked as a guess (fuzzy): {key[0]!r}")
        lines += _faults_of(found[key])
    return sorted(lines)


def read_catalog(language: str) -> Catalog:
    with po_path(language).open("rb") as file:
        return read_po(file, locale=language, charset="utf-8")


def compiled(catalog: Catalog) -> bytes:
    """Bytes of the .mo file: the same for the same catalogue, on any day and by any Babel."""
    plain = _ClocklessCatalog(locale=catalog.locale)
    for message in catalog:
        if message.id:
            plain.add(message.id, message.string, context=message.context)
    out = io.BytesIO()
    write_mo(out, plain)
    return out.getvalue()


def po_path(language: str) -> Path:
    return LOCALE_DIR / language / "LC_MESSAGES" / "django.po"


def mo_path(language: str) -> Path:
    return po_path(language).with_suffix(".mo")


def po_bytes(catalog: Catalog) -> bytes:
    """Text of the .po file without clocks and line numbers, so that a diff shows words only."""
    out = io.BytesIO()
    write_po(out, catalog, width=110, omit_header=True, include_lineno=False)
    headers = _ClocklessCatalog(locale=catalog.locale).mime_headers
    header = 'msgid ""\nmsgstr ""\n' + "".join(f'"{name}: {value}\\n"\n' for name, value in headers) + "\n"
    return header.encode() + out.getvalue()


def _strings_of(path: Path) -> Iterator[tuple[int, str | tuple[str, ...], list[str], str | None]]:
    """Line, text (or singular and plural), comments for translators, context."""
    text = path.read_text("utf-8")
    if path.suffix == ".html":
        # Text outside tags comes back as lines of X, indented anyhow: to Python they are names.
        text = "\n".join(line.strip() for line in templatize(text, origin=str(path)).split("\n"))
    yield from babel_extract("python", io.BytesIO(text.encode()), KEYWORDS, ("Translators:",))


def _faults_of(message: Message) -> list[str]:
    ids = _texts(message.id)
    strings = _texts(message.string)
    if not all(strings) or len(strings) < len(ids):
        return [f"no translation: {ids[0]!r}"]
    lines = []
    allowed = [_marks(text) for text in ids]  # some singulars do without the number, plurals never
    for string in strings:
        if _marks(string) not in allowed:
            lines.append(f"placeholders or tags differ: {ids[0]!r} -> {string!r}")
        if string[:1].isspace() != ids[0][:1].isspace() or string[-1:].isspace() != ids[0][-1:].isspace():
            lines.append(f"spaces at an end differ: {ids[0]!r} -> {string!r}")
    return lines


def _spaced(value: Any) -> Any:
    """Set the spaces of French in a translation, or in each of its plural forms."""
    if isinstance(value, tuple):
        return tuple(_spaced(text) for text in value)
    for space, fixed in _SPACES:
        value = space.sub(fixed, value)
    return value


def _marks(text: str) -> list[str]:
    """Placeholders and tags of a text, in their own order."""
    named, braced, tags = _NAMED.findall(text), _BRACED.findall(_NAMED.sub("", text)), _TAG.findall(text)
    signs = _PLAIN.findall(_NAMED.sub("", text)) + ["%%"] * text.count("%%")
    return sorted(named) + sorted(braced) + sorted(tags) + sorted(signs)


def _texts(value: object) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list | tuple) else [str(value or "")]


def _singular(message: Message) -> str:
    return _texts(message.id)[0]


def _by_key(catalog: Catalog) -> dict[Key, Message]:
    return {(_singular(message), message.context): message for message in catalog if message.id}


def _sorted(catalog: Catalog) -> list[Message]:
    """Sort by first place in the source: neighbours on a page are neighbours in the catalogue."""
    messages = [message for message in catalog if message.id]
    return sorted(messages, key=lambda message: (min(message.locations), _singular(message)))


def _check(template: Catalog) -> list[str]:
    lines = []
    for language in LANGUAGES:
        lines += [f"{language}: {fault}" for fault in faults(language, template)]
        if mo_path(language).read_bytes() != compiled(read_catalog(language)):
            lines.append(f"{language}: the .mo file is not what the .po file says")
    return lines


def main() -> int:
    """Write or check; the exit status is 1 if a catalogue needs work."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing, only say what is wrong")
    arguments = parser.parse_args()
    template = extract()
    for language in () if arguments.check else LANGUAGES:
        catalog = updated(language, template)
        po_path(language).parent.mkdir(parents=True, exist_ok=True)
        po_path(language).write_bytes(po_bytes(catalog))
        mo_path(language).write_bytes(compiled(read_catalog(language)))
    lines = _check(template)
    for line in lines:
        sys.stderr.write(f"messages: {line}\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())

"""Catalogues are complete, no page has other text, and a reader chooses the language."""

import ast
import re
from datetime import date
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from django.template.base import Lexer, TokenType
from django.test import Client
from django.urls import reverse
from django.utils import translation

from mobility.batches.texts import megabytes
from reports.base import formats
from scripts import messages

ROOT = Path(__file__).parents[1]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
# Texts that are the same in every language. A new entry needs a reason.
SAME_EVERYWHERE = {
    *("CSV", "JSON", "XLSX", "Parquet", "PNG", "SVG", "PDF", "SDMX", "ZIP"),  # names of formats
    *("GET", "POST"),  # methods of HTTP
    *("UTC", "SHA-256", "MB"),  # MB: part of code, in its own sentence
    *("curl", "pandas", "Python"),
}
SHOWN_ATTRIBUTES = ("title", "aria-label", "aria-description", "aria-roledescription", "placeholder", "alt")
# Text that a browser shows unchanged: code, and values that are no text.
NOT_PROSE = ("code", "pre", "kbd", "samp", "script", "style", "svg")
OUTPUT = "\ue000"  # in the place of output of a tag or variable of a template
# Text that a script writes into a page, as a literal: `node.textContent = "Saved"`.
LITERAL_TEXT = re.compile(
    r"""(?:textContent|innerText|ariaLabel|\btitle|alert|"aria-label")\s*[=(,]\s*("[^"\n]*"|'[^'\n]*'|`[^`]*`)"""
)
Text = str | tuple[str, ...]


class Prose(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "link", "input", "br", "hr", "img", "wbr", "path"}:
            self.open.append(tag)
        shown = dict(attrs)
        names = list(SHOWN_ATTRIBUTES)
        if tag == "input" and shown.get("type") in ("submit", "button", "reset"):
            names.append("value")
        for name in names:
            self._note(shown.get(name) or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not any(tag in NOT_PROSE for tag in self.open):
            self._note(data)

    def _note(self, text: str) -> None:
        for part in text.split(OUTPUT):
            words = re.sub(r"^[^\w]+|[^\w%]+$", "", part)
            if re.search(r"[^\W\d_]{2,}", words) and words not in SAME_EVERYWHERE:
                self.found.append(words)


def untranslated(source: str) -> list[str]:
    parts: list[str] = []
    in_translation = False
    for token in Lexer(source).tokenize():
        name = token.contents.split()[0] if token.contents.split() else ""
        if token.token_type == TokenType.BLOCK:
            if name in ("blocktranslate", "comment"):
                in_translation = True
            elif name in ("endblocktranslate", "endcomment"):
                in_translation = False
        if token.token_type == TokenType.TEXT:
            parts.append("" if in_translation else token.contents)
        elif token.token_type != TokenType.COMMENT:
            parts.append(OUTPUT)
    prose = Prose()
    prose.feed("".join(parts))
    prose.close()
    return prose.found


@pytest.fixture(scope="module")
def template():
    return messages.extract()


@pytest.mark.parametrize("language", messages.LANGUAGES)
def test_every_string_is_translated_with_the_same_placeholders_and_compiled(language, template):
    assert messages.faults(language, template) == [], "run make messages, and translate what is new"
    assert messages.mo_path(language).read_bytes() == messages.compiled(messages.read_catalog(language))


def test_strings_are_found_in_modules_and_templates_and_those_that_came_or_went(template, monkeypatch):
    assert template.get("to", context="dates") is not None  # {% translate %} with a context
    # translate, gettext_lazy, a plural of blocktranslate, and ngettext
    weekday = "%(n)s earlier day that falls on the same weekday"
    for text in ("Sign in", "Receiving the file", "%(n)s cell", weekday):
        assert template.get(text) is not None
    source, translations = Catalog(), Catalog(locale="fr")
    source.add("New")
    translations.add("Old", "Vieux")
    monkeypatch.setattr(messages, "read_catalog", lambda _: translations)
    went = ["no longer in the source: 'Old'", "not in the catalogue: 'New'"]
    assert messages.faults("fr", source) == went


def test_templates_and_scripts_have_no_words_outside_translations():
    found = {path.name: words for path in TEMPLATES if (words := untranslated(path.read_text("utf-8")))}
    assert found == {}
    # Texts of scripts come with the page: what they write into it is never a literal.
    scripts = {path.name: path.read_text("utf-8") for path in SCRIPTS}
    written = [(name, text) for name, script in scripts.items() for text in LITERAL_TEXT.findall(script)]
    assert [each for each in written if re.search(r"[A-Za-z]{2,}", re.sub(r"\$\{.*?\}", "", each[1]))] == []


def test_the_check_of_templates_sees_words():
    for source, found in (
        ("<p>Hello</p>", ["Hello"]),
        ('<p>{% translate "Hello" %}</p>', []),
        ("<p>{% blocktranslate %}Hello <b>you</b>{% endblocktranslate %}</p>", []),
        ("<p>{{ n }} visitors</p>", ["visitors"]),
        ('<a title="Go there" href="/here/">→</a>', ["Go there"]),
        ("""<nav aria-label="{% translate 'Main' %}"></nav>""", []),
        ("<code>manage.py run</code><p>CSV</p>", []),
        ('<input type="submit" value="Send"><input type="text" value="typed">', ["Send"]),
        ("{# For the reader of the source #}{% comment %}as this{% endcomment %}", []),
        ('<option value="{{ day }}"{% if day == first %} selected{% endif %}>{{ day }}</option>', []),
    ):
        assert untranslated(source) == found, source


def _faults(monkeypatch: pytest.MonkeyPatch, **changed: Text) -> list[str]:
    whole: dict[Text, Text] = {
        "Rows of %(day)s": "Lignes du %(day)s",
        ("%(n)s row", "%(n)s rows"): ("%(n)s ligne", "%(n)s lignes"),
        "Read <code>this</code> {now}": "Lisez <code>ceci</code> {now}",
    }
    source, translations = Catalog(), Catalog(locale="fr")
    for (ids, text), name in zip(whole.items(), ("rows", "plural", "code"), strict=True):
        source.add(ids)
        translations.add(ids, changed.get(name, text))
    monkeypatch.setattr(messages, "read_catalog", lambda _: translations)
    return messages.faults("fr", source)


def test_faults_are_found(monkeypatch):
    assert _faults(monkeypatch) == []
    for changed, fault in (
        ({"rows": ""}, "no translation"),
        ({"plural": ("%(n)s ligne", "")}, "no translation"),
        ({"rows": "Lignes du %(jour)s"}, "placeholders or tags differ"),
        ({"plural": ("une ligne", "%(n)s lignes")}, "placeholders or tags differ"),
        ({"code": "Lisez ceci {now}"}, "placeholders or tags differ"),
        ({"code": "Lisez <code>ceci</code> {maintenant}"}, "placeholders or tags differ"),
        ({"code": "Lisez <code>ceci</code> {now} %s"}, "placeholders or tags differ"),
        ({"rows": "Lignes du %(day)s "}, "spaces at an end differ"),
    ):
        found = _faults(monkeypatch, **changed)
        assert (len(found), found[0].startswith(fault)) == (1, True), changed


def test_strings_in_parentheses_are_found_too(template) -> None:
    known = {text for message in template for text in messages._texts(message.id)}
    missing = [
        f"{path}: {argument.value}"
        for folder in messages.PYTHON_FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in {"_", "gettext", "ngettext"}
        for argument in call.args[:2]
        if isinstance(argument, ast.Constant) and argument.value not in known
    ]
    assert missing == []


def test_french_has_its_spaces_and_apostrophes(template) -> None:
    typed = "L'%(kind)s d'ici : « %(name)s » à 95 %% ; 5 % (%(n)s %(unit)s)"
    spaced = (
        "L\u2019%(kind)s d\u2019ici\u00a0: «\u00a0%(name)s\u00a0» "
        "à 95\u202f%%\u202f; 5\u202f% (%(n)s %(unit)s)"
    )
    assert messages._spaced((typed, typed)) == (spaced, spaced)
    assert messages.po_bytes(messages.updated("fr", template)) == messages.po_path("fr").read_bytes()


MINUS, SPACE = "\u2212", "\u202f"
ENGLISH, FRENCH = "<h1>Sign in</h1>", "<h1>Se connecter</h1>"


@pytest.fixture
def client(db):
    return Client()


def page(client, **headers):
    return client.get(reverse("login"), headers=headers).content.decode()


class TestLanguage:
    def test_a_browser_is_asked_which_language_it_wants_and_each_page_offers_the_other(self, client):
        for asked, language, heading, switch in (
            ("", "en", ENGLISH, 'value="fr" lang="fr">Français</button>'),
            ("fr", "fr", FRENCH, 'value="en" lang="en">English</button>'),
            ("fr-CA, en;q=0.5", "fr", FRENCH, "English"),
            ("de, fr;q=0.8, en;q=0.3", "fr", FRENCH, "English"),
        ):
            text = page(client, accept_language=asked)
            parts = (f'<html lang="{language}">', heading, switch)
            assert [part for part in parts if part not in text] == [], asked

    def test_a_choice_lasts_goes_before_the_browser_and_leads_to_no_other_site_and_a_look_changes_nothing(
        self, client
    ):
        client.get(reverse("set_language"), {"language": "fr"})
        client.post(reverse("set_language"), {"language": "xx", "next": "/"})
        assert ENGLISH in page(client)
        answer = client.post(reverse("set_language"), {"language": "fr", "next": "https://example.org/"})
        assert answer["Location"] == "/"
        answer = client.post(reverse("set_language"), {"language": "fr", "next": reverse("login")})
        assert (answer.status_code, answer["Location"]) == (302, reverse("login"))
        cookie = answer.cookies["django_language"]
        assert cookie["httponly"]
        assert (cookie["samesite"], cookie["max-age"]) == ("Lax", 365 * 24 * 3600)
        assert FRENCH in page(client, accept_language="en")

    def test_numbers_and_dates_are_those_of_the_language(self):
        for words, english, french in (
            (lambda: formats.percent(0.1234), "12.3%", f"12,3{SPACE}%"),
            (
                lambda: formats.percent_range(-0.02, 0.5),
                f"{MINUS}2.0 to 50.0%", f"{MINUS}2,0 à 50,0{SPACE}%",
            ),
            (lambda: formats.number(62440), "62,440", f"62{SPACE}440"),
            (lambda: formats.decimal(1234.56, decimals=1), "1,234.6", f"1{SPACE}234,6"),
            (lambda: formats.epsilon(Decimal("0.5")), "0.5", "0,5"),
            (lambda: formats.plus_minus("3 m"), "±3 m", f"±{SPACE}3 m"),
            (lambda: megabytes(3_300_000), "3.3", "3,3"),
            (lambda: formats.day_title(date(2017, 6, 6)), "Tue 6 Jun 2017", "mar 6 juin 2017"),
            (lambda: formats.short_day(date(2017, 7, 1)), "1 Jul", "1er juil."),
            (
                lambda: formats.window_title(date(2017, 5, 31), date(2017, 6, 6)),
                "Wed 31 May 2017 to Tue 6 Jun 2017 (7 days)", "mer 31 mai 2017 au mar 6 juin 2017 (7 jours)",
            ),
            # No two months are written alike.
            (lambda: len({formats.short_month(date(2017, month, 1)) for month in range(1, 13)}), 12, 12),
        ):  # fmt: skip
            for language, expected in (("en", english), ("fr", french)):
                with translation.override(language):
                    assert words() == expected

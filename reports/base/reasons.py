"""Reasons that are stored: programs read them in English, pages show them in the language of their reader."""

import json
from collections.abc import Iterable
from typing import Any, Self

from django.db import models
from django.utils.translation import gettext, override

from reports.base.formats import number, percent_sign, with_decimal_sign

Value = str | int | float | list[str]
_TEMPLATE, _VALUES = "template", "values"


class Reason(str):
    """English text that remembers its template and values, so that it can be worded again.

    Parameters
    ----------
    template : an English text of the catalogue (mark it with `gettext_noop`), or any other text
    values : of the template: a text, a reason, a number, a float for a share, a list for names in quotes
    """

    template: str
    values: dict[str, Value]

    def __new__(cls, template: str = "", /, **values: Value) -> Self:
        if isinstance(template, Reason):
            values, template = template.values | values, template.template
        shown = {name: value if isinstance(value, str) else _english(value) for name, value in values.items()}
        reason = super().__new__(cls, template % shown if values else template)
        reason.template, reason.values = template, values
        return reason

    @property
    def words(self) -> str:
        """Text in the active language; English where there is no translation."""
        text = gettext(self.template) if self.template else ""
        return text % {name: _worded(value) for name, value in self.values.items()} if self.values else text

    @property
    def is_english(self) -> bool:
        """Return whether the active language has no translation of it."""
        return bool(self.template) and gettext(self.template) == self.template

    def packed(self) -> str:
        """Text from which `unpacked` makes the same reason."""
        return json.dumps(self._plain(), ensure_ascii=False) if self.template else ""

    def _plain(self) -> dict[str, Any]:
        values = {k: v._plain() if isinstance(v, Reason) else v for k, v in self.values.items()}
        return {_TEMPLATE: self.template, _VALUES: values}

    @classmethod
    def unpacked(cls, stored: str) -> Self:
        """Return the reason that was packed; a text of an earlier release stays as it is."""
        if not stored.startswith("{"):
            return cls(stored)
        try:
            return cls._made(json.loads(stored))
        except (ValueError, TypeError, KeyError):
            return cls(stored)

    @classmethod
    def _made(cls, found: dict[str, Any]) -> Self:
        values = {
            name: cls._made(value) if isinstance(value, dict) else value
            for name, value in found[_VALUES].items()
        }
        return cls(found[_TEMPLATE], **values)


def words_of(said: object) -> str:
    """Words of a reason, or of an error that has one, in the active language; else its text."""
    if isinstance(said, BaseException) and said.args:
        said = said.args[0]
    return Reason(said if isinstance(said, str) else str(said)).words


def _english(value: Value) -> str:
    # Only here: a reason of texts alone can be made where Django is not set up, as in benchmarks.
    with override("en"):
        return _worded(value)


def _worded(value: Value) -> str:
    if isinstance(value, Reason):
        return value.words
    if isinstance(value, list):
        return quoted(value)
    if isinstance(value, float):
        digits = f"{100 * value:.1f}".removesuffix(".0")
        return with_decimal_sign(digits) + percent_sign()
    return number(value) if isinstance(value, int) else value


def quoted(names: Iterable[str]) -> str:
    """Names in the quotation marks of the active language: “a”, “b”; in French « a », « b »."""
    return ", ".join(gettext("“%(name)s”") % {"name": name} for name in names)


class ReasonField(models.TextField):  # type: ignore[type-arg]
    """A reason with its template and values; plain texts of earlier releases are read as they are."""

    def from_db_value(self, value: str | None, *_: object) -> Reason | None:
        return None if value is None else Reason.unpacked(value)

    def to_python(self, value: Any) -> Reason | None:
        return value if value is None or isinstance(value, Reason) else Reason(str(value))

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else Reason(value).packed()

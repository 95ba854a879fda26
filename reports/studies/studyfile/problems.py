"""Errors of a study file: everything at once, each with file, key, rule and value."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass, field

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason, words_of

MAX_PROBLEMS = 50  # more of them help no one, and a broken table of cells has thousands
MAX_SHOWN = 60
_UNKNOWN = {
    "key": _("unknown key%(near)s"),
    "column": _("unknown column%(near)s"),
    "category": _("unknown category%(near)s"),
    "static indicator": _("unknown static indicator%(near)s"),
    "ISO country code": _("unknown ISO country code%(near)s"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One broken rule; `value` is what was found, ready to print, or None when nothing was."""

    file: str
    key: str
    rule: str
    value: str | None = None

    def __str__(self) -> str:
        found = "" if self.value is None else f", got {self.value}"
        return f"{self.file}: {self.key}: {self.rule}{found}"

    @property
    def words(self) -> str:
        """The rule and what was found, in the active language where the rule has a translation."""
        return words_of(self.rule) + self.found_words

    @property
    def is_english(self) -> bool:
        """Return whether its rule has no translation, so that pages mark its language."""
        return Reason(self.rule).is_english

    @property
    def found_words(self) -> str:
        """The found value, as a continuation of the rule."""
        text = _(", got %(value)s")
        text = text if self.is_english else gettext(text)
        return "" if self.value is None else text % {"value": self.value}

    def marked(self, words: str) -> str:
        """Return `words` about the problem; a reason where they are English, which pages mark as such."""
        return Reason(words) if self.is_english else words


class StudyFileError(ValueError):
    """A study file, or a file that it names, breaks rules."""

    def __init__(self, problems: Collection[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass(slots=True)
class Problems:
    """The problems of one file, in the order of discovery; or notes on it, which stop nothing."""

    file: str
    found: list[Problem] = field(default_factory=list)
    left_out: int = 0
    noun: str = "problems"

    def add(self, key: str, rule: str, value: object = None) -> None:
        """Note one problem; past the limit, only count it."""
        if len(self.found) >= MAX_PROBLEMS:
            self.left_out += 1
            return
        # A lone surrogate from a JSON escape cannot be written to any page or terminal.
        shown_value = None if value is None else shown(value).encode("utf-8", "backslashreplace").decode()
        self.found.append(Problem(file=self.file, key=key, rule=rule, value=shown_value))

    def all(self) -> list[Problem]:
        """Return the problems, with a last line for those left out."""
        if not self.left_out:
            return self.found
        more = {
            "problems": _("%(n)s more problems are not listed"),
            "notes": _("%(n)s more notes are not listed"),
        }
        rule = Reason(more[self.noun], n=str(self.left_out))
        return [*self.found, Problem(file=self.file, key="and so on", rule=rule)]


def shown(value: object) -> str:
    """Return `value` as in the file, cut to one short line."""
    match value:
        case bool():
            text = str(value).lower()
        case str():
            text = '"' + value.replace("\r", "\\r").replace("\n", "\\n") + '"'
        case dict():
            text = "a table"
        case list():
            text = "a list"
        case _:
            text = str(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def nearest(name: str, *, known: Collection[str]) -> Reason:
    """Return a hint at the known name that looks most like `name`, or nothing; of a long one nothing.

    Comparing takes time by the product of both lengths.
    """
    if len(name) > MAX_SHOWN:
        return Reason()
    near = difflib.get_close_matches(name, known, n=1)
    return Reason(_(', did you mean "%(name)s"?'), name=near[0]) if near else Reason()


def unknown(name: str, *, known: Collection[str], noun: str = "key") -> str:
    """Return the rule that an unknown name breaks, with what would be known."""
    near = nearest(name, known=known) or Reason(_(", known here: %(names)s"), names=", ".join(known))
    return Reason(_UNKNOWN[noun], near=near)

"""Rules from texts of a column to categories: as someone types them, and as the readers look them up."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Final

from mobility.extracts.profiles.ages import BirthRule
from mobility.extracts.profiles.definition import NO_ANSWER, ValueTable

NO_ANSWER_TEXT: Final = ""  # in the place of a category
MAX_CASED_LETTERS: Final = 12
MAX_WAYS: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRule:
    """Meanings of the texts of one column, as typed.

    A category stands for itself, unless `prefix` or `birth` say what the column holds instead.

    values : category by text, NO_ANSWER_TEXT for no answer; they win over everything else
    ignore_case : whether letters stand for their other case too
    prefix : leading characters of a text that count; 0 = all
    birth : the column says when someone was born
    otherwise : category of every other text, NO_ANSWER_TEXT for no answer; None = the row is rejected
    """

    values: Mapping[str, str] = field(default_factory=dict)
    ignore_case: bool = False
    prefix: int = 0
    birth: BirthRule | None = None
    otherwise: str | None = None

    @property
    def is_identity(self) -> bool:
        """Return whether categories stand for themselves."""
        return not self.prefix and self.birth is None

    def compiled(self, categories: Sequence[str]) -> ValueTable:
        """Every text with its code; the rule must be free of problems."""
        code_of = {name: code for code, name in enumerate(categories)} | {NO_ANSWER_TEXT: NO_ANSWER}
        codes: dict[bytes, int] = {}
        for text, category in self._pairs(categories):
            codes[text.encode()] = code_of[category]
        return ValueTable(
            codes=codes,
            prefix_bytes=self.prefix,  # texts of prefixes are ASCII
            otherwise=None if self.otherwise is None else code_of[self.otherwise],
        )

    def _pairs(self, categories: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Texts and their categories; a later pair wins over an earlier one."""
        if self.is_identity:
            yield from ((text, name) for name in categories for text in self._ways(name))
        if self.birth is not None:
            yield from self.birth.texts()
        yield from ((way, name) for text, name in self.values.items() for way in self._ways(text))

    def _ways(self, text: str) -> list[str]:
        return ways_of(text) if self.ignore_case else [text]


def ways_of(text: str) -> list[str]:
    """Return the same text with every letter in either case."""
    return ["".join(letters) for letters in product(*(_cases(letter) for letter in text))]


def case_problem(rule: ValueRule, categories: Sequence[str]) -> str | None:
    """Return why the rule cannot ignore the case of letters, or None."""
    if not rule.ignore_case:
        return None
    themselves = {name: name for name in categories} if rule.is_identity else {}
    for meanings in (themselves, rule.values):
        for text in meanings:
            if sum(len(_cases(letter)) > 1 for letter in text) > MAX_CASED_LETTERS:
                return (
                    f'must be false: "{text}" has more than {MAX_CASED_LETTERS} letters; list its '
                    "spellings under values"
                )
        if sum(prod(len(_cases(letter)) for letter in text) for text in meanings) > MAX_WAYS:
            return f"must be false: the values have more than {MAX_WAYS:,} possible spellings"
        problem = _same_but_for_case(meanings)
        if problem:
            return problem
    return None


def _same_but_for_case(meanings: Mapping[str, str]) -> str | None:
    seen: dict[str, str] = {}
    for text, meaning in meanings.items():
        for way in ways_of(text):
            other = seen.setdefault(way, text)
            if meanings[other] != meaning:
                return f'must be false: "{other}" and "{text}" differ only in case'
    return None


def _cases(letter: str) -> list[str]:
    """The letter and its other case, where that is one letter too."""
    return sorted({letter, *(other for other in (letter.lower(), letter.upper()) if len(other) == 1)})

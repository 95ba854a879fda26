"""One control of a form that is laid out here: its choices, why a value was proposed, and its errors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext

from mobility.extracts.profiles.proposals import BY_NAME, Proposal
from mobility.extracts.profiles.sample import Sample
from reports.studies.studyfile import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One control. `options` are (value, label); `note` is why a value was proposed."""

    name: str
    label: str
    value: str = ""
    kind: str = "text"
    key: str = ""
    options: Sequence[tuple[str, str]] = ()
    help: str = ""
    note: str = ""
    errors: Sequence[str] = ()

    @property
    def id(self) -> str:
        """Name of the control; several may have one name."""
        return f"id-{self.key or self.name}"

    @property
    def described_by(self) -> str:
        """Return the ids of the texts next to it."""
        parts = [("help", self.help), ("note", self.note), ("errors", self.errors)]
        return " ".join(f"{self.id}-{part}" for part, text in parts if text)


@dataclass(slots=True)
class Errors:
    """Problems by their key; what no field has asked for is left in the end."""

    problems: Iterable[Problem]
    taken: set[int] = field(default_factory=set)

    def of(self, *keys: str) -> list[str]:
        """Texts of the problems of a key and of everything below it that no one has asked for yet."""
        found = []
        for place, problem in enumerate(self.problems):
            if place not in self.taken and any(
                problem.key == key or problem.key.startswith(f"{key}.") for key in keys
            ):
                self.taken.add(place)
                found.append(_words(problem))
        return found

    def left(self) -> list[str]:
        return [
            f"{problem.key}: {_words(problem)}"
            for place, problem in enumerate(self.problems)
            if place not in self.taken
        ]


def _words(problem: Problem) -> str:
    where = problem.key.partition('"')[2]
    found = "" if problem.value is None else f" ({problem.value})"
    return (f'"{where} ' if where else "") + problem.rule + found


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a file, for the fields that choose one of them."""

    proposal: Proposal
    sample: Sample
    errors: Errors

    def field(self, name: str, label: str, value: str, *, key: str, none: str) -> Field:
        """The choice of a column; `none` says what it means to choose none."""
        all_names = self.sample.names
        names = [column for column in all_names if column and all_names.count(column) == 1]
        options = [("", none), *((column, column) for column in names)]
        if value and value not in names:  # keep the choice of a copy
            options.append((value, gettext("%(column)s (not in this file)") % {"column": value}))
        return Field(
            name=name,
            kind="select",
            label=label,
            value=value,
            options=options,
            note=self._reason(key),
            errors=self.errors.of(key),
        )

    def _reason(self, key: str) -> str:
        reason = self.proposal.reasons.get(key)
        if reason is None:
            return ""
        return (
            gettext("suggested from the column name")
            if reason == BY_NAME
            else gettext("suggested from the values")
        )

"""A profile as someone typed it: what is stored, shown and compiled for the readers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal
from typing import Any, Literal, Self

from mobility.extracts.profiles.ages import BirthRule
from mobility.extracts.profiles.definition import Profile, class_fields, own_table
from mobility.extracts.profiles.rules import ValueRule
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.formats import ISO, Delimiter

TypedKind = Literal["events", "subscribers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedProfile:
    """Names of columns, and rules by slug; an indicator without a column is not in the files."""

    name: str
    kind: TypedKind
    subscriber: str
    timestamp: str | None
    cell: str | None
    max_bad_share: Decimal
    timestamp_format: str = ISO
    delimiter: Delimiter | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, ValueRule] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)
    person: str | None = None

    def compiled(self, definition: StudyDefinition) -> Profile:
        """Return what the readers need; `definition` is that of the study the profile was checked against."""
        asked = {indicator.slug: indicator for indicator in definition.static_indicators}
        tables = {
            slug: own_table(asked[slug]) or self.rules[slug].compiled(asked[slug].categories)
            for slug in self.columns
        }
        of_class = class_fields(definition) if self.kind == "events" else {}
        return Profile(**self._facts(), tables=tables, **of_class)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        rules = {slug: _rule_to_json(rule) for slug, rule in self.rules.items()}
        facts = self._facts()
        for name in ("operators", "person"):  # as before there were any
            if not facts[name]:
                del facts[name]
        return facts | {"max_bad_share": format(self.max_bad_share, "f"), "rules": rules}

    def _facts(self) -> dict[str, Any]:
        """All but the rules."""
        names = (each.name for each in fields(self) if each.name != "rules")
        columns = {"columns": dict(self.columns), "operators": dict(self.operators)}
        return {name: getattr(self, name) for name in names} | columns

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild what `to_json` wrote."""
        exact = {
            "max_bad_share": Decimal(data["max_bad_share"]),
            "rules": {slug: _rule_from_json(rule) for slug, rule in data["rules"].items()},
        }
        return cls(**{**data, **exact})


def _rule_to_json(rule: ValueRule) -> dict[str, Any]:
    birth = rule.birth
    return {
        "values": dict(rule.values),
        "ignore_case": rule.ignore_case,
        "prefix": rule.prefix,
        "otherwise": rule.otherwise,
        "birth": birth
        and {
            "reference": birth.reference.isoformat(),
            "pattern": birth.pattern,
            "bands": {name: list(band) for name, band in birth.bands.items()},
        },
    }


def _rule_from_json(data: Mapping[str, Any]) -> ValueRule:
    birth = data["birth"]
    if birth is not None:
        birth = BirthRule(
            reference=date.fromisoformat(birth["reference"]),
            pattern=birth["pattern"],
            bands={name: (first, last) for name, (first, last) in birth["bands"].items()},
        )
    return ValueRule(**{**data, "birth": birth})

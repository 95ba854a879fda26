"""A class of subscribers as a study file has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from reports.studies.names import in_language


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassDefinition:
    """One class: everyone may know who is in it.

    value : its text in the column
    epsilon : of one answer of its people
    """

    slug: str
    name: str
    value: str
    epsilon: Decimal
    name_fr: str | None = None

    @property
    def shown_name(self) -> str:
        """Return the name in the active language."""
        return in_language(self.name, self.name_fr)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild what `plain_value` wrote."""
        return cls(**{**data, "epsilon": Decimal(data["epsilon"])})

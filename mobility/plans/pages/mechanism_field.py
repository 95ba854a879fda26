"""The choice of a mechanism: the recommended one, and what is left to experts."""

from dataclasses import dataclass
from typing import get_args

from ldp.privacy.plans import Mechanism
from mobility.extracts.form_fields import Field
from reports.simulator.model import Recommendation
from reports.simulator.texts import mechanism_words, purpose_words, recommendation_words


@dataclass(frozen=True, slots=True)
class Choice:
    """One mechanism; a text may name one that does not exist, which has no purpose."""

    value: str
    id: str
    words: str
    purpose: str
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismField(Field):
    """Radio buttons for the mechanism of a plan."""

    recommendation: Recommendation
    kind: str = "mechanism"

    @property
    def first(self) -> Choice:
        """Return the recommended mechanism."""
        return self._choice(self.recommendation.mechanism)

    @property
    def others(self) -> list[Choice]:
        """Return all others; also the value as it is, so that a browser sends the same."""
        known = get_args(Mechanism)
        unknown = [Choice(self.value, f"{self.id}-unknown", self.value, "", is_chosen=True)]
        found = [self._choice(each) for each in known if each != self.recommendation.mechanism]
        return found if self.value in ("", *known) else [*unknown, *found]

    @property
    def is_other_chosen(self) -> bool:
        """Return whether the others must not be folded away."""
        return any(each.is_chosen for each in self.others)

    @property
    def why(self) -> str:
        """Return the reason of the recommendation."""
        return recommendation_words(self.recommendation)

    def _choice(self, mechanism: str) -> Choice:
        return Choice(
            mechanism,
            f"{self.id}-{mechanism}",
            mechanism_words(mechanism),
            purpose_words(mechanism),
            is_chosen=self.value == mechanism,
        )

"""Classes of a plan: a public column says which epsilon a person's answers have."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self

from ldp.errors import PlanError
from ldp.protocols.channels import check_epsilon, exact_text

MIN_CLASSES: Final = 2
MAX_CLASSES: Final = 20
OF_CLASSES: Final = ("smp-grr", "smp-oue", "smp-adp")  # mechanisms


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSpec:
    """One class; everyone may know who is in it.

    Parameters
    ----------
    slug : str; not empty
    epsilon : Fraction; nominal, of one answer of its people to any indicator

    Raises
    ------
    InvalidBudgetError : epsilon is out of [0.000001, 64]
    PlanError : the slug is empty
    """

    slug: str
    epsilon: Fraction

    def __post_init__(self) -> None:
        if not self.slug:
            raise PlanError("slug of a class must not be empty")
        check_epsilon(self.epsilon)

    def to_json(self) -> dict[str, str]:
        """Plain values; epsilon as the exact string "a/b"."""
        return {"slug": self.slug, "epsilon": exact_text(self.epsilon)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build what `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
        return cls(slug=data["slug"], epsilon=Fraction(data["epsilon"]))


def check_classes(classes: tuple[ClassSpec, ...], *, epsilon: Fraction) -> None:
    """Raise PlanError unless number and slugs are allowed, and the largest epsilon is that of the plan."""
    if not MIN_CLASSES <= len(classes) <= MAX_CLASSES:
        raise PlanError(f"number of classes must be in [{MIN_CLASSES}, {MAX_CLASSES}], got {len(classes)}")
    slugs = [each.slug for each in classes]
    for slug in slugs:
        if slugs.count(slug) > 1:
            raise PlanError(f"slug of a class must be unique, got {slug!r} twice")
    largest = max(each.epsilon for each in classes)
    if largest != epsilon:
        raise PlanError(
            f"epsilon of the plan must be the largest of its classes, {float(largest):.6g}, got "
            f"{float(epsilon):.6g}"
        )

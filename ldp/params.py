"""Plans: what is asked, by which mechanism, at which epsilon. Validated once, here, and immutable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Self, get_args

from ldp.channels import Unit, check_domain_size, check_epsilon
from ldp.errors import InvalidBudgetError, LdpError, PlanError

Mechanism = Literal["smp-grr", "spl-grr"]
Kind = Literal["static", "daily"]

MAX_DAYS = 62
MAX_INDICATORS = 255  # the indicator is one byte of the keyed block
MAX_VERSION = 255  # so is the plan version


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorRequest:
    """One indicator as an administrator asks for it.

    Parameters
    ----------
    slug : str; unique in the plan
    kind : "static" (one value per person) or "daily" (one value per person and day)
    domain_size : int; number of categories, in [2, 65534]
    epsilon : Decimal or None; None takes the plan's
    max_values : int or None; daily only: number of days a person answers, None = all
    """

    slug: str
    kind: Kind
    domain_size: int
    epsilon: Decimal | None = None
    max_values: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorSpec:
    """One indicator of a plan; epsilon is the nominal one of one answer.

    Raises
    ------
    InvalidBudgetError : epsilon is out of [0.000001, 64]
    InvalidDomainError : domain_size is out of [2, 65534]
    PlanError : any other rule
    """

    slug: str
    kind: Kind
    domain_size: int
    epsilon: Fraction
    max_values: int | None = None

    def __post_init__(self) -> None:
        if not self.slug:
            raise PlanError("slug of an indicator must not be empty")
        if self.kind not in get_args(Kind):
            raise PlanError(f"kind of {self.slug} must be one of {get_args(Kind)}, got {self.kind!r}")
        check_domain_size(self.domain_size)
        check_epsilon(self.epsilon)
        if self.kind == "static" and self.max_values is not None:
            raise PlanError(
                f"max_values of {self.slug} must be absent for a static indicator, got {self.max_values}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSpec:
    """A frozen plan: the only thing a sanitiser, an estimator and an accountant read.

    Parameters
    ----------
    mechanism : "smp-grr" (each person answers one indicator) or "spl-grr" (each answers all)
    unit : "profile" or "attribute"; what the promise is about
    version : int; in [1, 255]
    days : int; days of the study, in [1, 62]
    indicators : tuple of IndicatorSpec; 1 to 255, slugs unique

    Raises
    ------
    PlanError
    """

    mechanism: Mechanism
    unit: Unit
    version: int
    days: int
    indicators: tuple[IndicatorSpec, ...]

    def __post_init__(self) -> None:
        if self.mechanism not in get_args(Mechanism):
            raise PlanError(f"mechanism must be one of {get_args(Mechanism)}, got {self.mechanism!r}")
        if self.unit not in get_args(Unit):
            raise PlanError(f"unit must be one of {get_args(Unit)}, got {self.unit!r}")
        _check_range("version", self.version, low=1, high=MAX_VERSION)
        _check_range("days", self.days, low=1, high=MAX_DAYS)
        _check_range("number of indicators", len(self.indicators), low=1, high=MAX_INDICATORS)
        slugs = [spec.slug for spec in self.indicators]
        for slug in slugs:
            if slugs.count(slug) > 1:
                raise PlanError(f"slug of an indicator must be unique, got {slug!r} twice")
        for spec in self.indicators:
            if spec.max_values is not None:
                _check_range(f"max_values of {spec.slug}", spec.max_values, low=1, high=self.days)

    @property
    def d(self) -> int:
        """Number of indicators."""
        return len(self.indicators)

    @property
    def is_sampled(self) -> bool:
        """Whether each person answers one indicator only."""
        return self.mechanism == "smp-grr"

    def index(self, slug: str) -> int:
        """Position of an indicator in the plan; PlanError if it has none."""
        for position, spec in enumerate(self.indicators):
            if spec.slug == slug:
                return position
        raise PlanError(f"indicator must be one of the plan's, got {slug!r}")

    def values_per_person(self, index: int) -> int:
        """Most answers that one person gives to an indicator: 1 if static, else its number of days."""
        spec = self.indicators[index]
        return 1 if spec.kind == "static" else spec.max_values or self.days

    def to_json(self) -> dict[str, Any]:
        """Plain values (str, int, None, list, dict); epsilon as the exact string "a/b"."""
        return {
            "mechanism": self.mechanism,
            "unit": self.unit,
            "version": self.version,
            "days": self.days,
            "indicators": [_indicator_to_json(spec) for spec in self.indicators],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build the plan that `to_json` wrote.

        Raises
        ------
        LdpError : a key is missing, of the wrong type, or breaks a rule
        """
        try:
            indicators = tuple(_indicator_from_json(entry) for entry in data["indicators"])
            return cls(
                mechanism=data["mechanism"],
                unit=data["unit"],
                version=data["version"],
                days=data["days"],
                indicators=indicators,
            )
        except LdpError:
            raise
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise PlanError(f"plan must be an object as to_json writes it, got {error!r}") from error


def build_plan(
    *,
    mechanism: Mechanism,
    unit: Unit,
    version: int,
    days: int,
    epsilon: Decimal,
    indicators: Sequence[IndicatorRequest],
) -> PlanSpec:
    """Plan from what an administrator typed; the one conversion of epsilon to an exact fraction.

    Parameters
    ----------
    epsilon : Decimal; of one answer under "smp-grr"; under "spl-grr" the total, shared equally

    Raises
    ------
    InvalidBudgetError, InvalidDomainError, PlanError
    """
    if mechanism == "spl-grr":
        for request in indicators:
            if request.epsilon is not None:
                raise PlanError(
                    f"epsilon of {request.slug} must be absent: spl-grr shares one, got {request.epsilon}"
                )
    share = len(indicators) if mechanism == "spl-grr" else 1
    specs = tuple(
        IndicatorSpec(
            slug=request.slug,
            kind=request.kind,
            domain_size=request.domain_size,
            epsilon=_exact(epsilon if request.epsilon is None else request.epsilon) / share,
            max_values=request.max_values,
        )
        for request in indicators
    )
    return PlanSpec(mechanism=mechanism, unit=unit, version=version, days=days, indicators=specs)


def _exact(epsilon: Decimal) -> Fraction:
    if not epsilon.is_finite():
        raise InvalidBudgetError(f"epsilon must be a finite number, got {epsilon}")
    return Fraction(epsilon)


def _check_range(name: str, value: int, *, low: int, high: int) -> None:
    if not low <= value <= high:
        raise PlanError(f"{name} must be in [{low}, {high}], got {value}")


def _indicator_to_json(spec: IndicatorSpec) -> dict[str, Any]:
    return {
        "slug": spec.slug,
        "kind": spec.kind,
        "domain_size": spec.domain_size,
        "epsilon": f"{spec.epsilon.numerator}/{spec.epsilon.denominator}",
        "max_values": spec.max_values,
    }


def _indicator_from_json(entry: Mapping[str, Any]) -> IndicatorSpec:
    return IndicatorSpec(
        slug=entry["slug"],
        kind=entry["kind"],
        domain_size=entry["domain_size"],
        epsilon=Fraction(entry["epsilon"]),
        max_values=entry["max_values"],
    )

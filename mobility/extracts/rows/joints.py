"""Values of joint indicators from the columns of their parts; of daily ones, those of the static parts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp import IndicatorSpec, PlanSpec
from ldp.privacy.joint import joint_codes

Values = NDArray[np.int32]
# From the place of a number in the plan and its levels to the sides of people's cuts.
Sides = Callable[[int, Values], Values]


class Joint(NamedTuple):
    """A joint indicator: its place in the plan, and the columns of its static parts with their sizes.

    numbers : places in the plan of the parts that are numbers, by column
    """

    place: int
    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    numbers: dict[int, int]

    def codes(self, values: Sequence[Values] | Values, *, sides: Sides) -> Values:
        """Code of each row, shape (n,), from the codes of all columns."""
        of_parts = [
            sides(self.numbers[column], values[column]) if column in self.numbers else values[column]
            for column in self.columns
        ]
        return joint_codes(of_parts, sizes=self.sizes)


def joints_of(plan: PlanSpec, places: Sequence[int]) -> list[Joint]:
    """Joint indicators of which files have all static parts, and that have any.

    Parameters
    ----------
    places : place in the plan of the indicator that each column is of

    Notes
    -----
    Files that have some of the parts say nothing: those of different kinds would give a person two values.
    The code of a daily one is of its static parts alone, in their order; `static_parts` reads it.
    """
    column_of = {place: column for column, place in enumerate(places)}
    found = []
    for place, spec in enumerate(plan.indicators):
        parts = static_parts(plan, spec)
        if parts and all(part in column_of for part in parts):
            sizes = tuple(plan.indicators[part].part_size for part in parts)
            numbers = {column_of[part]: part for part in parts if plan.indicators[part].scale is not None}
            found.append(Joint(place, tuple(column_of[part] for part in parts), sizes, numbers))
    return found


def static_parts(plan: PlanSpec, spec: IndicatorSpec) -> list[int]:
    """Places in the plan of the static parts of a joint indicator."""
    places = [plan.index(part) for part in spec.parts]
    return [place for place in places if plan.indicators[place].kind == "static"]

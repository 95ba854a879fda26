"""Links that show the same result in another way."""

from collections.abc import Mapping
from dataclasses import dataclass

from reports.estimates.options import Choices, DaysOptions, ReportOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One way to show a result differently: its choices as (label, part of an address, whether it is on)."""

    title: str
    links: tuple[tuple[str, str, bool], ...]


def switches(
    options: ReportOptions | DaysOptions,
    *,
    titles: Mapping[str, str],
    labels: Mapping[str, str],
    choices: Choices,
    kept: str,
) -> list[Switch]:
    """A switch for each option in `titles`.

    Parameters
    ----------
    labels : of every value
    kept : what every address keeps, such as the window
    """
    return [
        Switch(
            title=title,
            links=tuple(
                (labels[value], options.query(kept, **{name: value}), getattr(options, name) == value)
                for value in choices[name]
            ),
        )
        for name, title in titles.items()
    ]

"""Parameters of addresses of the API."""

from datetime import date
from typing import Annotated, Literal

from django.utils.translation import gettext
from ninja import Query
from pydantic import BeforeValidator

from reports.events.periods import PeriodKind

PAGE_MAX = 200
SQUARES_MAX = 10_000


def _strict_date(value: object) -> object:
    """Dates are written 2017-05-31: not as seconds, nor with a time."""
    if not isinstance(value, str):
        return value
    try:
        if len(value) == len("2017-05-31"):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError(gettext("a day must be a date such as 2017-05-31"))


Day = Annotated[date, BeforeValidator(_strict_date)]
From = Annotated[
    Day | None, Query(alias="from", description="first day of the window; default: of the study")
]
To = Annotated[Day | None, Query(alias="to", description="last day of the window; default: the same day")]
WithFrom = Annotated[Day | None, Query(alias="with_from", description="first day to compare with")]
WithTo = Annotated[
    Day | None, Query(alias="with_to", description="last day to compare with; default: the same day")
]
Format = Annotated[Literal["json", "csv"], Query(description="csv: one row per estimate")]
Group = Annotated[
    Literal["all", "groups"],
    Query(description="groups: totals of the study's groups of categories; default: all categories"),
]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="entries per page")]
SquareLimit = Annotated[int, Query(ge=1, le=SQUARES_MAX, description="entries per page")]
AllSquares = Annotated[bool, Query(alias="all", description="true: include empty squares")]
Days = Annotated[str, Query(description="dates, or day numbers such as 3 or 3-9, separated by commas")]
Number = Annotated[str, Query(description="number of days or nights, from 1")]
ZoneNames = Annotated[list[str], Query(alias="zone", description="names of zones; default: all zones")]
LevelName = Annotated[
    str | None,
    Query(description="name of a level of larger zones; empty: zones of the area; default: all levels"),
]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="entries to skip")]
PeriodName = Annotated[PeriodKind, Query(description="kind of period; weeks are ISO weeks")]

"""Indicators of the kind "number": cuts, and what they are read or derived from."""

from dataclasses import replace
from typing import Any, Literal

from django.utils.translation import gettext_noop as _

from ldp.errors import InvalidDomainError
from ldp.protocols.numbers.threshold import LARGEST, MAX_CUTS, MIN_CUTS, Scale
from reports.base.reasons import Reason
from reports.studies.studyfile.definition import EVENTS, HOME_DISTANCE, VISIT_DURATION
from reports.studies.studyfile.nights import read_night, refuse_night
from reports.studies.studyfile.table import Table

NUMBER = "number"
REPORTS = ("threshold", "wave")
# Derived numbers, and their units.
DERIVED_NUMBERS = {VISIT_DURATION: "min", EVENTS: "events", HOME_DISTANCE: "km"}
_ANY = Scale(cuts=(1, 2))  # for a file with problems, of which nothing is made


def read_number(table: Table, *, days: int) -> dict[str, Any]:
    """Return what is special to a number: static with a column, daily where it is derived."""
    for key in ("categories", "categories_fr", "parts"):
        table.refuse(key, _("must be absent: a number has cuts instead"))
    is_daily, limit = table.has("derive"), table.has("max_values")
    derive = table.choice("derive", tuple(DERIVED_NUMBERS)) if is_daily else None
    if is_daily:
        table.refuse("column", _("must be absent: the number is derived from the events of the day"))
    elif limit:
        table.refuse("max_values", _("must be absent: a number of a column has one value"))
    if not is_daily:
        refuse_night(table)
    scale = _read_scale(table)
    most = table.integer("max_values", low=1, high=days) if is_daily and limit else None
    scale = replace(scale, report=_read_report(table, n_days=(most or days) if is_daily else 1))
    if derive and scale.unit != DERIVED_NUMBERS[derive]:
        table.add(
            "unit",
            Reason(_('must be "%(unit)s", that of %(derive)s'), unit=DERIVED_NUMBERS[derive], derive=derive),
            scale.unit,
        )
    return {
        "kind": "daily" if is_daily else "static",
        "column": None if is_daily else table.text("column"),
        "derive": derive,
        "categories": tuple(f"{cut} {scale.unit} or more" for cut in scale.cuts),
        "categories_fr": tuple(f"{cut} {scale.unit} ou plus" for cut in scale.cuts),
        "max_values": most,
        "scale": scale,
        **read_night(table, known=tuple(DERIVED_NUMBERS)),
    }


def _read_report(table: Table, *, n_days: int) -> Literal["wave"] | None:
    """Return what people report; None = threshold reports, so that naming the default changes nothing."""
    if not table.has("report") or table.choice("report", REPORTS) != "wave":
        return None
    if n_days > 1:
        text = _(
            'must be "threshold" where a person may answer on %(days)s days: with "wave" each of these days '
            "loses the whole epsilon again, while threshold reports lose it twice at most; keep "
            '"threshold", or set max_values = 1'
        )
        table.add("report", Reason(text, days=n_days), "wave")
    return "wave"


def _read_scale(table: Table) -> Scale:
    unit = table.text("unit")
    minimum = table.integer("minimum", low=-LARGEST, high=LARGEST, default=0)
    cuts = table.raw("cuts")
    others = [cut for cut in cuts if type(cut) is not int] if isinstance(cuts, list) else [cuts]
    if not others and MIN_CUTS <= len(cuts) <= MAX_CUTS:
        try:
            return Scale(cuts=tuple(cuts), minimum=minimum, unit=unit)
        except InvalidDomainError:
            table.add(
                "cuts",
                Reason(
                    _("must rise, from above the minimum %(minimum)s to at most %(most)s"),
                    minimum=str(minimum),
                    most=str(LARGEST),
                ),
                cuts,
            )
    elif cuts is not None:
        found = others[0] if others else len(cuts)
        table.add(
            "cuts",
            Reason(
                _("must be a list of %(least)s to %(most)s whole numbers"), least=MIN_CUTS, most=str(MAX_CUTS)
            ),
            found,
        )
    return replace(_ANY, unit=unit)

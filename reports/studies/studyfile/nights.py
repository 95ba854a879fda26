"""Keys of the night, from which some values of a day are derived."""

from collections.abc import Sequence

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason
from reports.studies.studyfile.definition import OF_NIGHT, IndicatorDefinition
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.table import Table

NIGHT_KEYS = ("night_from", "night_to")
_ONLY_OF_NIGHT = Reason(
    _("must be absent: only %(one)s and %(other)s have a night"),
    **dict(zip(("one", "other"), OF_NIGHT, strict=True)),
)
NIGHT_FROM, NIGHT_TO = 22 * 60, 6 * 60  # where the study file does not say


def read_night(table: Table, *, known: Sequence[str]) -> dict[str, int | None]:
    """Return when the night begins and ends; it always holds midnight, or ends there.

    Parameters
    ----------
    known : values of `derive` of this kind; an unknown one says nothing about the other keys
    """
    if table.values.get("derive") not in OF_NIGHT:
        if table.values.get("derive") in known:
            refuse_night(table)
        for key in NIGHT_KEYS:
            table.has(key)
        return dict.fromkeys(NIGHT_KEYS)
    start = table.clock("night_from") if table.has("night_from") else NIGHT_FROM
    end = table.clock("night_to") if table.has("night_to") else NIGHT_TO
    if start is not None and end is not None and start <= end:
        rule = Reason(
            _("must be later than %(key)s: the night continues after midnight"), key=table.key("night_to")
        )
        table.add("night_from", rule, table.values.get("night_from"))
    return {"night_from": start, "night_to": end}


def refuse_night(table: Table) -> None:
    """Note keys of the night where nothing is derived from it."""
    for key in NIGHT_KEYS:
        table.refuse(key, _ONLY_OF_NIGHT)


def check_one_night(problems: Problems, indicators: tuple[IndicatorDefinition, ...]) -> None:
    """Note an indicator whose night is not that of the one before: a study has one."""
    of_night = [each for each in indicators if each.derive in OF_NIGHT]
    for each in of_night[1:]:
        first = of_night[0]
        for key in NIGHT_KEYS:
            mine, other = getattr(each, key), getattr(first, key)
            if None not in (mine, other) and mine != other:
                rule = Reason(
                    _("must be that of indicator[%(slug)s]: a study has one night"), slug=first.slug
                )
                problems.add(f"indicator[{each.slug}].{key}", rule)

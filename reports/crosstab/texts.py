"""Texts of cross-tabulations: a question and its answer in a sentence, and cells of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import floor, log10
from typing import Final

from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext

from ldp.estimation.joint.crosstab import Base
from reports.base import formats
from reports.base.status import Status
from reports.crosstab.joints import Joint, Part
from reports.crosstab.queries import Figure, Measured, Table
from reports.crosstab.query import View
from reports.estimates.picker import window_title
from reports.estimates.texts import beyond_words
from reports.studies.models import Study
from reports.studies.texts import status_reason

CLASSES: Final = 5  # of colours
_SHORT_RUN: Final = 2  # categories in a row that are named one by one
_ROUND: Final = (1, 2, 5, 10)
_LEAST_STEP: Final = 0.001  # of a class: shares have one decimal


def conditions(joint: Joint, choice: Mapping[int, Sequence[int]]) -> str:
    """A choice of categories in words: "Age: 25-34 or 35-44; Region: Alsace"."""
    either = pgettext("between two categories", " or ")
    found = [
        gettext("%(part)s: %(names)s") % {"part": part.name, "names": either.join(_runs(part, choice[place]))}
        for place, part in enumerate(joint.parts)
        if place in choice
    ]
    return reduce(_both, found) if found else ""


def _runs(part: Part, codes: Sequence[int]) -> list[str]:
    """Names of categories; a whole group has its name, three or more that follow one another are a range."""
    for name, members in part.groups:
        if set(members) <= set(codes):
            others = [code for code in codes if code not in members]
            return [name, *_runs(part, others)]
    runs: list[list[int]] = []
    for code in codes:
        is_next = bool(runs) and code == runs[-1][-1] + 1 < part.n_ordered
        if is_next:
            runs[-1].append(code)
        else:
            runs.append([code])
    names, found = part.names, []
    for run in runs:
        if len(run) > _SHORT_RUN:
            ends = {"first": names[run[0]], "last": names[run[-1]]}
            found.append(pgettext("range of categories", "%(first)s to %(last)s") % ends)
        else:
            found += [names[code] for code in run]
    return found


def _both(one: str, other: str) -> str:
    return gettext("%(one)s; %(other)s") % {"one": one, "other": other}


def file_conditions(joint: Joint, choice: Mapping[int, Sequence[int]]) -> str:
    """A choice of categories in the names of the study file, the same in each language."""
    parts = ((joint.parts[place], codes) for place, codes in choice.items())
    return "; ".join(
        f"{part.slug}: {' or '.join(part.file_names[code] for code in codes)}" for part, codes in parts
    )


def sentence(
    measured: Measured,
    figure: Figure,
    choice: Mapping[int, Sequence[int]],
    *,
    values: str = "unbiased",
) -> str:
    """The answer to a question, "consistent" or, as in files, "unbiased", whose interval it names."""
    shown = figure.shown(values)
    study, window = measured.report.study, measured.report.window
    facts = {
        "days": window_title(study, window),
        "conditions": conditions(measured.joint, choice),
        "share": formats.percent(shown.share),
        "unbiased": formats.percent(figure.share),
        "range": formats.percent_range(figure.ci_low, figure.ci_high),
        "people": formats.number(shown.visitors),
        "unbiased_people": formats.number(figure.visitors),
        "people_range": formats.number_range(figure.visitors_ci_low, figure.visitors_ci_high),
        "most": formats.percent(figure.ci_high),
        "most_people": formats.number(figure.visitors_ci_high),
    }
    if figure.status != Status.OK:
        return _blank(figure, study, facts)
    if not choice:
        return gettext(
            "All visitors are included, because no category is excluded. Select only some of the categories "
            "to see their share."
        )
    if figure.holds_zero:
        text = gettext(
            "%(days)s: the share of visitors who match “%(conditions)s” cannot be distinguished from "
            "zero. The upper end of the 95%% interval is %(most)s, or about %(most_people)s people."
        )
        return text % facts
    if facts["share"] != facts["unbiased"]:
        text = gettext(
            "%(days)s: an estimated %(share)s of visitors match “%(conditions)s”, or about %(people)s people "
            "(consistent values). The unbiased estimate is %(unbiased)s (95%% interval %(range)s), or about "
            "%(unbiased_people)s people (%(people_range)s)."
        )
    else:
        text = gettext(
            "%(days)s: an estimated %(share)s of visitors (95%% interval %(range)s) match “%(conditions)s”. "
            "This is about %(people)s people (%(people_range)s)."
        )
    return " ".join(filter(None, (text % facts, beyond_words(figure.share))))


def _blank(figure: Figure, study: Study, facts: Mapping[str, str]) -> str:
    """Why there is no answer, and its interval if that is all there is."""
    status = {"status": formats.status_word(figure.status), "reason": status_reason(figure.status, study)}
    asked = gettext("%(days)s, “%(conditions)s”: %(status)s. %(reason)s")
    if not facts["conditions"]:
        asked = gettext("%(days)s: %(status)s. %(reason)s")
    has_interval = figure.status == Status.NOT_RELIABLE and figure.ci_low is not None
    interval = gettext("The interval is %(range)s.") if has_interval else ""
    return " ".join(filter(None, (asked % {**facts, **status}, interval % facts)))


def base_titles() -> list[tuple[Base, str]]:
    """Names of what shares may be of."""
    return [
        ("all", pgettext("shares of", "all visitors")),
        ("row", pgettext("shares of", "each row")),
        ("column", pgettext("shares of", "each column")),
    ]


def table_title(view: View) -> str:
    """Title of the table: its parts, and what its shares are of."""
    values = {"rows": view.row_part.name, "columns": view.column_part.name}
    text = {
        "all": gettext("%(rows)s by %(columns)s: shares of all visitors"),
        "row": gettext("%(rows)s by %(columns)s: shares within each row (%(rows)s)"),
        "column": gettext("%(rows)s by %(columns)s: shares within each column (%(columns)s)"),
    }[view.base]
    return text % values


def hidden_words(table: Table) -> list[str]:
    """A sentence on each group of people without a value that the table leaves out."""
    view = table.view
    sides = (
        (view.row_part, table.rows, table.shown_rows),
        (view.column_part, table.columns, table.shown_columns),
    )
    above = gettext(
        "People without a value for %(part)s are not shown, because their share cannot be distinguished "
        "from zero (95%% interval %(range)s)."
    )
    below = gettext(
        "People without a value for %(part)s are not shown: because of the noise, the estimate of their "
        "share is below zero (95%% interval %(range)s)."
    )
    return [
        (below if (margin[-1].ci_high or 0) < 0 else above)
        % {
            "part": part.name,
            "range": formats.percent_range(margin[-1].ci_low, margin[-1].ci_high),
        }
        for part, margin, shown in sides
        if len(shown) < part.size
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Colours of cells: classes of equal width `step` from 0 on; 0 without a reliable share."""

    step: float

    @classmethod
    def of(cls, table: Table) -> "Scale":
        """Scale with a round step that reaches the largest reliable share that is shown."""
        shares = [
            each.share
            for row in table.shown_rows
            for each in (table.cells[row][column] for column in table.shown_columns)
            if each.status == Status.OK and each.share is not None and not each.holds_zero
        ]
        if not shares:
            return cls(step=0.0)
        least = max(max(shares) / CLASSES, _LEAST_STEP)
        power = 10.0 ** floor(log10(least))
        return cls(step=next(each * power for each in _ROUND if each * power >= least * (1 - 1e-9)))

    def place(self, share: float) -> int:
        """Class of a share, from 1."""
        return min(max(int(share / self.step), 0), CLASSES - 1) + 1

    @property
    def legend(self) -> list[tuple[int, str]]:
        """Classes, from the lowest, with their ends."""
        ends = [self.step * place for place in range(CLASSES + 1)] if self.step else []
        return [(place, formats.percent_range(*pair)) for place, pair in enumerate(pairwise(ends), start=1)]


def cell(figure: Figure, *, scale: Scale | None = None) -> SafeString:
    """Cell of the table; in Python, since there are hundreds. Without a scale it is one of a margin."""
    interval = escape(formats.percent_range(figure.ci_low, figure.ci_high))
    if figure.below is not None:
        return SafeString(f'<td class="number crosstab-0">{escape(formats.reason_words(figure))}</td>')
    if figure.status != Status.OK or figure.share is None:
        sign, word = formats.status_sign(figure.status), formats.status_word(figure.status)
        below = f'<br><span class="small">{interval}</span>' if figure.share is not None else ""
        return SafeString(
            '<td class="number crosstab-0"><span class="blank">'
            f'<span class="blank__sign" aria-hidden="true">{escape(sign)}</span>'
            f'<span class="visually-hidden">{escape(word)}</span></span>{below}</td>'
        )
    share = escape(formats.percent(figure.share))
    kind = ""
    if scale is not None:
        kind = " crosstab-0" if figure.holds_zero else f" crosstab-{scale.place(figure.share)}"
    below = f'<br><span class="small">{interval}</span>' if figure.std_error else ""  # known: all visitors
    return SafeString(f'<td class="number{kind}">{share}{below}</td>')

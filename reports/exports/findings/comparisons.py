"""A comparison as a table: both sides, the difference with its error, and what can be said of it."""

from typing import Any

from django.utils.translation import gettext

from ldp.estimation.joint.association import Association
from reports.base.status import Status
from reports.compare import texts
from reports.compare.queries import Comparison, Kind, Row, Value
from reports.exports.findings.tables import Findings, Record, head_of, interval_codes, tail_of
from reports.exports.formats.columns import Kind as Holds

_AMOUNTS = (
    "value", "value_ci_low", "value_ci_high", "reference", "reference_ci_low", "reference_ci_high",
    "difference", "std_error", "ci_low", "ci_high",
)  # fmt: skip


def comparison_findings(comparison: Comparison) -> Findings:
    """All that the page of a comparison says."""
    report, of = comparison.report, comparison.of
    holds = Holds.SHARE if of == "frequency" else Holds.PEOPLE
    return Findings(
        name=f"{report.study.slug}_{report.indicator.slug}_compare_{comparison.kind}",
        title=gettext("%(value)s compared with %(reference)s")
        % {
            "value": f"{report.indicator.shown_name} · {texts.value_title(comparison)}",
            "reference": texts.reference_title(comparison),
        },
        sheet="compare",
        reports=(report, comparison.reference) if comparison.kind == Kind.STUDIES else (report,),
        words=(
            texts.summary(comparison),
            texts.error_words(comparison),
            texts.correction(comparison),
            texts.overall_words(comparison.overall),
        ),
        before={"comparison": str(comparison.kind), "measure": of} | head_of(report) | _reference(comparison),
        rows=[_row(comparison, row) for row in comparison.rows],
        after=_method(comparison) | _overall(comparison) | tail_of(report),
        kinds=dict.fromkeys(_AMOUNTS, holds) | _KINDS,
        codes=_codes(),
    )


_KINDS = {
    "reference_first_day": Holds.DAY,
    "reference_last_day": Holds.DAY,
    "reference_plan_version": Holds.COUNT,
    "reference_epsilon": Holds.NUMBER,
    "reference_n_visitors": Holds.COUNT,
    "reference_n_reports": Holds.COUNT,
    "reference_market_share": Holds.NUMBER,
    "market_share": Holds.NUMBER,
    "n_rows": Holds.COUNT,
    "overall_p_value": Holds.NUMBER,
}


def _reference(comparison: Comparison) -> Record:
    """Reference of a comparison; a mean of several days has a list instead of days and counts."""
    found = {f"reference_{name}": value for name, value in head_of(comparison.reference).items()}
    days = {
        "baseline_days": _dates(comparison, comparison.baseline),
        "left_out_days": _dates(comparison, comparison.left_out),
    }
    if len(comparison.baseline) > 1:
        names = ("first_day", "last_day", "n_visitors", "n_reports")
        found |= {f"reference_{name}": None for name in names}
    return found | days


def _row(comparison: Comparison, row: Row) -> Record:
    is_judged = row.status == Status.OK
    return {
        "category": row.category,
        "reference_category": comparison.category or row.category,
        **_side(row.value, "value"),
        **_side(row.reference, "reference"),
        "difference": row.difference,
        "std_error": row.std_error,
        "ci_low": row.low,
        "ci_high": row.high,
        "verdict": str(row.alone) if is_judged else None,
        "adjusted_verdict": str(row.held) if is_judged else None,
        "status": str(row.status),
    }


def _side(value: Value, name: str) -> dict[str, Any]:
    return {
        name: value.value,
        f"{name}_ci_low": value.low,
        f"{name}_ci_high": value.high,
        f"{name}_status": str(value.status),
    }


def _method(comparison: Comparison) -> Record:
    reference = tail_of(comparison.reference)
    return {
        "interval": "exact" if comparison.is_exact else "at_least",
        "adjustment": "holm" if len(comparison.rows) > 1 else "none",
        "n_rows": len(comparison.rows),
        "reference_market_share": reference["market_share"],
        "reference_timezone": reference["timezone"],
    }


def _overall(comparison: Comparison) -> Record:
    """The test of all categories together, of two windows."""
    if comparison.overall is None:
        return {}
    overall = comparison.overall
    return {
        "overall_p_value": overall.p_value if isinstance(overall, Association) else None,
        "overall": texts.overall_words(overall),
    }


def _dates(comparison: Comparison, days: tuple[int, ...]) -> str | None:
    study = comparison.report.study
    return " ".join(study.date_of(day).isoformat() for day in days) or None


def _codes() -> dict[str, dict[str, str]]:
    verdicts = {
        "higher": gettext("the interval for the difference lies entirely above 0"),
        "lower": gettext("the interval for the difference lies entirely below 0"),
        "not_shown": gettext("no difference detected, but the noise may hide one"),
    }
    intervals = interval_codes()
    return {
        "verdict": verdicts,
        "adjusted_verdict": {
            "higher": gettext("significant after adjustment for the number of rows in the table"),
            "lower": gettext("significant after adjustment for the number of rows in the table"),
            "not_shown": gettext("not significant after adjustment for the number of rows in the table"),
        },
        "adjustment": {
            "holm": gettext(
                "Holm adjustment: at most 5 in 100 such tables contain even one false difference"
            ),
            "none": gettext("a single row needs no adjustment"),
        },
        "interval": {name: intervals[name] for name in ("exact", "at_least")},
    }

"""Coverage as plain values, for scripts."""

from typing import Any

from mobility.batches.quality.coverage import Coverage, DayCoverage


def coverage_record(coverage: Coverage, *, study: str, timezone: str) -> dict[str, Any]:
    """Every day of every source; hours are local, the second of a pair is no longer in it."""
    return {
        "study": study,
        "timezone": timezone,
        "sources": [
            {"source": each.source, "days": [_day(day) for day in each.days]} for each in coverage.sources
        ],
        "unattributed": [
            {"batch": str(each.batch)}
            | {name: getattr(each, name) for name in ("filename", "source", "failure")}
            for each in coverage.unattributed
        ],
    }


def _day(day: DayCoverage) -> dict[str, Any]:
    return {
        "date": day.date.isoformat(),
        "status": day.status.value,
        "rows_with_duplicates": day.rows,
        "files": len(day.files),
        "more_to_come": day.more_to_come,
        "silent_hours": [[silent.begin, silent.end] for silent in day.silent],
        "failure": day.failed.failure if day.failed else "",
        "failed_batch": str(day.failed.batch) if day.failed else None,
    }

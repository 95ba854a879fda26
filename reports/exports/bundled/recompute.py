"""Recompute every number of export.json from the tallies in this folder, and compare.

    python recompute.py              # needs Python 3.11 or newer and numpy, nothing else
    python recompute.py --out FILE   # also writes what was computed

Nothing is taken from export.json but the comparison; `ldp` and `status` are those of this folder. Exit
status: 0 = the same, byte for byte; 1 = a difference, or a file that is not as the manifest says.
"""

import argparse
import hashlib
import json
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from status import Status, estimates_status, window_status  # type: ignore[import-not-found]

from ldp.estimation.estimators import ENDLESS, pure_frequencies
from ldp.estimation.numbers.wave import wave_survival
from ldp.estimation.unions import union
from ldp.privacy.plans import PlanSpec
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.projective_space import value_counts, value_reports

HERE = Path(__file__).resolve().parent
Counts = NDArray[np.int64]


def main() -> int:
    """Check the files, compute, compare."""
    parser = argparse.ArgumentParser(description="Recompute export.json from the tallies.")
    parser.add_argument("--out", type=Path, help="write what was computed into this file")
    options = parser.parse_args()
    changed = changed_files()
    if changed:
        sys.stderr.write(f"not as in manifest.json: {', '.join(changed)}\n")
        return 1
    text = json.dumps(computed_reports(), ensure_ascii=False, allow_nan=False, indent=1)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    exported = (HERE / "export.json").read_text(encoding="utf-8")
    if text != exported:
        sys.stderr.write(f"different: {first_difference(text, exported)}\n")
        return 1
    n_estimates = sum(len(report["estimates"]) for report in json.loads(text))
    sys.stdout.write(f"the same, byte for byte: {n_estimates} estimates recomputed\n")
    return 0


def changed_files() -> list[str]:
    """Files whose SHA-256 is not that of the manifest, or that are missing."""
    manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    return [
        name
        for name, expected in manifest["sha256"].items()
        if not (HERE / name).is_file() or hashlib.sha256((HERE / name).read_bytes()).hexdigest() != expected
    ]


def first_difference(computed: str, exported: str) -> str:
    """First line that differs, of both."""
    pairs = zip(computed.splitlines(), exported.splitlines(), strict=False)
    for number, (ours, theirs) in enumerate(pairs, start=1):
        if ours != theirs:
            return f"line {number} of export.json: computed {ours.strip()!r}, exported {theirs.strip()!r}"
    return "one has more lines than the other"


def computed_reports() -> list[dict[str, Any]]:
    """Reports of all indicators and windows, in the form of the export."""
    study = json.loads((HERE / "study.json").read_text(encoding="utf-8"))
    plan = PlanSpec.from_json(json.loads((HERE / "plan.json").read_text(encoding="utf-8")))
    visitors = load("visitors")
    days = range(1, plan.days + 1)
    reports = []
    for indicator in study["indicators"]:
        codes, n_reports = load(f"{indicator['slug']}.counts"), load(f"{indicator['slug']}.n_reports")
        channel = plan.channel(plan.index(indicator["slug"]))
        counts = value_counts(codes, channel=channel)
        about = value_reports(codes, n_reports, channel=channel)
        for first, last in [(a, b) for a in days for b in days if a <= b]:
            if first == last or indicator["has_unions"]:
                window = {"first_day": first, "last_day": last}
                tallies = [union(tally, **window) for tally in (visitors, n_reports, counts, about, codes)]
                reports.append(report_of(study, plan, indicator, first=first, last=last, tallies=tallies))
    return reports


def load(name: str) -> Counts:
    """A tally: by (category,) previous present day and day, as ldp.estimation.unions reads it."""
    tally: Counts = np.load(HERE / "tallies" / f"{name}.npy", allow_pickle=False)
    return tally.astype(np.int64)


def report_of(
    study: dict[str, Any],
    plan: PlanSpec,
    indicator: dict[str, Any],
    *,
    first: int,
    last: int,
    tallies: list[Any],
) -> dict[str, Any]:
    """One report; `tallies` of the window: visitors, reports, counts and reports by category, codes."""
    n_visitors, n_reports = int(tallies[0]), int(tallies[1])
    index = plan.index(indicator["slug"])
    status = window_status(
        n_visitors=n_visitors,
        n_reports=n_reports,
        small_cell=study["small_cell"],
        is_outage=set(range(first, last + 1)) <= set(study["outages"]),
    )
    estimates = estimates_of(study, plan, indicator, tallies=tallies, status=status)
    found = {estimate["status"] for estimate in estimates}
    first_date = date.fromisoformat(study["first_day"])
    return {
        "study": study["slug"],
        "indicator": indicator["slug"],
        "first_day": (first_date + timedelta(days=first - 1)).isoformat(),
        "last_day": (first_date + timedelta(days=last - 1)).isoformat(),
        "plan_version": plan.version,
        "mechanism": plan.mechanism,
        "epsilon": float(plan.indicators[index].epsilon),
        "unit": plan.unit,
        "n_visitors": n_visitors,
        "n_reports": n_reports,
        "estimates": estimates,
        "status": str(Status.NOT_RELIABLE if found == {"not_reliable"} else status),
        "ci_level": study["ci_level"],
        "timezone": study["timezone"],
        "software_version": study["software_version"],
    }


def estimates_of(
    study: dict[str, Any], plan: PlanSpec, indicator: dict[str, Any], *, tallies: list[Any], status: Any
) -> list[dict[str, Any]]:
    """Estimates of all categories in one window."""
    n_visitors, counts, about, codes = int(tallies[0]), *tallies[2:]
    names = ("frequency", "std_error", "ci_low", "ci_high", "consistent")
    no_visitors = dict.fromkeys(("visitors", "visitors_ci_low", "visitors_ci_high"))
    if about.min() == 0:
        blanks = dict.fromkeys(names) | no_visitors
        if int(tallies[1]) and status == Status.OK:  # some cuts of a number have reports
            status = Status.NOT_RELIABLE
        return [
            {"category": category, "reports": int(n), **blanks, "status": str(status)}
            for category, n in zip(indicator["categories"], counts, strict=True)
        ]
    of_moves = plan.indicators[plan.index(indicator["slug"])].moves is not None
    channel = plan.channel(plan.index(indicator["slug"]))
    asked: dict[str, Any] = {"channel": channel, "level": study["ci_level"]}
    asked["n_population"] = ENDLESS if of_moves else n_visitors
    if isinstance(channel, WaveChannel):
        result = wave_survival(codes, **asked)
    else:
        result = pure_frequencies(counts, n_reports=about, **asked)
    scale = n_visitors / float(study["market_share"])
    columns = {name: getattr(result, name).tolist() for name in names}
    status = estimates_status(status, ci_low=columns["ci_low"], ci_high=columns["ci_high"])
    rows = []
    for code, category in enumerate(indicator["categories"]):
        row = {name: column[code] for name, column in columns.items()}
        row |= {
            "visitors": row["frequency"] * scale,
            "visitors_ci_low": row["ci_low"] * scale,
            "visitors_ci_high": row["ci_high"] * scale,
            **(no_visitors if of_moves else {}),
            "status": str(status),
        }
        rows.append({"category": category, "reports": int(counts[code]), **row})
    return rows


if __name__ == "__main__":
    sys.exit(main())

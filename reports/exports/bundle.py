"""The report bundle: tallies, plan, statement, code and a script that recomputes every number of a study.

Inside is what the main database has, sums of sanitised answers, and nothing else. No clock: the same data and
the same software give the same bytes.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.utils.translation import gettext

from reports.base import status
from reports.base.version import software
from reports.estimates.models import DayNote
from reports.estimates.queries import LEVEL, Counts, WindowReport, visitor_unions
from reports.exports.errors import ExportError
from reports.exports.records import to_json
from reports.exports.selection import select_study
from reports.privacy.statement.document import privacy_statement
from reports.studies.models import Study
from reports.studies.queries import current_plan, has_unions, stays_of
from reports.studies.tally_models import Tally

# Imports of `ldp.privacy.plans`, `ldp.protocols.projective_space`, and of `ldp.estimation` `estimators`,
# `numbers.wave` and `unions`: numpy and the standard library, no compiler.
LDP_MODULES: Final = (
    "codes.py",
    "errors.py",
    "estimation/__init__.py",
    "estimation/estimators.py",
    "estimation/numbers/__init__.py",
    "estimation/numbers/wave.py",
    "estimation/unions.py",
    "geo/__init__.py",
    "geo/grid.py",
    "geo/location.py",
    "geo/planar_laplace.py",
    "geo/precision.py",
    "privacy/__init__.py",
    "privacy/classes.py",
    "privacy/first_reports.py",
    "privacy/joint.py",
    "privacy/moves.py",
    "privacy/plans.py",
    "privacy/presence.py",
    "privacy/slots.py",
    "privacy/streams.py",
    "protocols/__init__.py",
    "protocols/adaptive.py",
    "protocols/channels.py",
    "protocols/fake_data.py",
    "protocols/faked_reports.py",
    "protocols/geometric.py",
    "protocols/histogram.py",
    "protocols/numbers/__init__.py",
    "protocols/numbers/threshold.py",
    "protocols/numbers/wave.py",
    "protocols/partial/__init__.py",
    "protocols/partial/regions.py",
    "protocols/partial/sensitive.py",
    "protocols/projective.py",
    "protocols/projective_space.py",
    "protocols/repeated/__init__.py",
    "protocols/repeated/hashed.py",
    "protocols/repeated/question.py",
    "protocols/repeated/renewed.py",
    "protocols/two_round.py",
    "protocols/two_round_unary.py",
    "protocols/unary.py",
)
Reports = tuple[WindowReport, ...]
_PACKAGE = '"""The parts of the library that read tallies; the package of the software has all of it."""\n'
_FIRST_MOMENT_OF_ZIP: Final = (1980, 1, 1, 0, 0, 0)
_ATTEMPTS: Final = 3


def bundle_of(study: Study, *, watched: Callable[[Reports], Reports] = tuple) -> bytes:
    """Zip file with everything that it takes to recompute the reports of a study.

    `watched` makes reports tell how many of them have been written. ExportError if the small-cell rule hides
    a window, which the tallies would show, or if answers keep coming in.
    """
    if refusal := bundle_refusal(study):
        raise ExportError(refusal)
    for _ in range(_ATTEMPTS):
        tallies = _tallies(study)
        exported = to_json(watched(select_study(study).reports))
        if _tallies(study) == tallies:  # else a publication came in between
            return _zipped(_files(study, tallies=tallies, exported=exported))
    raise ExportError(gettext("New answers are being added. Try again in a moment."))


def bundle_refusal(study: Study) -> str:
    """Say why a study has no bundle; empty if it has one."""
    if study.presence is not None:
        return gettext(
            "No bundle is available for this study. Its counts contain presence noise, but the script "
            "in a bundle can recompute reports only from exact counts. Choose another format."
        )
    if study.classes:
        return gettext(
            "No bundle is available for this study yet, because its classes answer with different "
            "epsilons. Choose another format."
        )
    if any(each.protect for each in study.indicators.all()):
        return gettext(
            "No bundle is available for this study yet, because answers to one of its indicators "
            "disclose groups or categories. Choose another format."
        )
    if study.small_category:
        return gettext(
            "No bundle is available for this study. The tallies in a bundle would show the "
            "categories that the study hides. Choose another format."
        )
    small_cell, unions = study.small_cell, visitor_unions(study) if study.small_cell else None
    if unions is not None and any(status.is_suppressed(int(n), small_cell=small_cell) for n in unions.flat):
        text = gettext(
            "No bundle is available for this study. Its small-cell rule suppresses date ranges with "
            "fewer than %(small_cell)d visitors, but the tallies in a bundle would reveal the "
            "suppressed figures. Choose another format."
        )
        return text % {"small_cell": small_cell}
    return ""


def _files(study: Study, *, tallies: dict[str, bytes], exported: str) -> dict[str, bytes]:
    """Contents by name, the manifest first."""
    here, library = Path(__file__).parent / "bundled", Path(settings.BASE_DIR) / "ldp"
    files = {
        "README.md": (here / "README.md").read_bytes(),
        "recompute.py": (here / "recompute.py").read_bytes(),
        "status.py": Path(status.__file__).read_bytes(),
        "study.json": _json(_study(study)),
        "plan.json": _json(current_plan(study).spec),
        "statement.json": _json(privacy_statement(study)),
        "export.json": exported.encode(),
        **{f"tallies/{name}.npy": content for name, content in tallies.items()},
        "ldp/__init__.py": _PACKAGE.encode(),
        **{f"ldp/{name}": (library / name).read_bytes() for name in LDP_MODULES},
    }
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return {"manifest.json": _json({"software": software(), "sha256": hashes}), **files}


def _study(study: Study) -> dict[str, Any]:
    outages = DayNote.objects.filter(study=study, kind=DayNote.Kind.OUTAGE)
    return {
        "slug": study.slug,
        "name": study.name,
        "timezone": study.timezone,
        "first_day": study.first_day.isoformat(),
        "days": study.days,
        "market_share": f"{study.market_share.normalize():f}",
        "small_cell": study.small_cell,
        "outages": sorted(outages.values_list("day", flat=True)),
        "ci_level": LEVEL,
        "software_version": software()["version"],
        "indicators": [
            {
                "slug": indicator.slug,
                "name": indicator.name,
                "kind": indicator.kind,
                "categories": indicator.categories,
                "has_unions": has_unions(indicator),
            }
            for indicator in study.indicators.all()
        ],
    }


def _tallies(study: Study) -> dict[str, bytes]:
    """Tallies of the plan in force as numpy files; one statement reads them, so that they belong together."""
    plan = current_plan(study)
    rows = Tally.objects.filter(plan=plan).select_related("indicator", "plan__study__visitor_tally")
    found = list(rows.order_by("indicator__position"))
    square = (study.days + 1, study.days + 1)
    visitors = found[0].plan.study.visitor_tally
    spec = plan.parsed
    arrays = {"visitors": _array(visitors.counts, square)}
    if not study.small_cell:  # else they would show numbers that no page shows
        arrays |= stays_of(visitors, plan)
    for tally in found:
        shape = (spec.tally_sizes[spec.index(tally.indicator.slug)], *square)
        arrays[f"{tally.indicator.slug}.counts"] = _array(tally.counts, shape)
        arrays[f"{tally.indicator.slug}.n_reports"] = _array(tally.n_reports, square)
    return {name: _npy(array) for name, array in arrays.items()}


def _array(stored: bytes | memoryview, shape: tuple[int, ...]) -> Counts:
    return np.frombuffer(stored, "<i8").reshape(shape)


def _npy(array: Counts) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _zipped(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date_time=_FIRST_MOMENT_OF_ZIP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, content)
    return archive.getvalue()

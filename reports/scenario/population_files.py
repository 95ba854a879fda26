"""Files of a synthetic population: persons, presence and errors, as CSV and Parquet, and a manifest.

No clock: the same figures, seed and software give the same bytes.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldp.privacy.accounting import certify_presence
from reports.base.csv_texts import csv_text
from reports.base.status import Status
from reports.base.version import software
from reports.privacy.statement.document import certified
from reports.scenario.population import Attribute, Population
from reports.scenario.population_errors import error_rates

MANIFEST: Final = "manifest.json"
NOTICE: Final = (
    "Synthetic: no row is a person. Rows are made of the published figures of the study and of nothing else. "
    "Attributes depend on the days of presence, not on each other."
)
ERROR_NAMES: Final = (
    "indicator", "category", "first_day", "last_day", "status",
    "published", "scaled", "synthetic", "absolute", "percent",
)  # fmt: skip
_FIRST_MOMENT_OF_ZIP: Final = (1980, 1, 1, 0, 0, 0)

Table = Mapping[str, Any]  # columns by name: pyarrow arrays


def population_files(population: Population) -> dict[str, bytes]:
    """Contents by name: manifest, then persons, presence and errors in both formats."""
    tables = {
        "persons": _persons(population),
        "presence": _presence(population),
        "errors": _errors(population),
    }
    files = {}
    for name, table in tables.items():
        files[f"{name}.csv"] = _csv(table)
        files[f"{name}.parquet"] = _parquet(table, population)
    return {MANIFEST: _json(_manifest(population, files)), **files}


def population_zip(population: Population) -> bytes:
    """All files of a population as one."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in population_files(population).items():
            entry = zipfile.ZipInfo(name, date_time=_FIRST_MOMENT_OF_ZIP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, content)
    return archive.getvalue()


def _persons(population: Population) -> Table:
    people = np.arange(population.presence.size)
    columns = {each.indicator.slug: _named(each, each.codes) for each in population.of_kind("static")}
    return {"person_id": _ids(population, people), **columns}


def _presence(population: Population) -> Table:
    """One row per person and present day, by person."""
    study = population.study
    days = np.arange(study.days, dtype=np.uint64)
    is_there = population.presence[:, np.newaxis] >> days & np.uint64(1)
    people, days_there = np.nonzero(is_there)
    dates = pa.array([study.first_day + timedelta(days=day) for day in range(study.days)], pa.date32())
    columns = {
        each.indicator.slug: _named(each, each.codes[people, days_there])
        for each in population.of_kind("daily")
    }
    return {"person_id": _ids(population, people), "date": dates.take(pa.array(days_there)), **columns}


def _errors(population: Population) -> Table:
    study, rows = population.study, population.errors
    absolute = [
        None if row.scaled is None or row.synthetic is None else abs(row.synthetic - row.scaled)
        for row in rows
    ]
    percent = [
        None if error is None or not row.scaled or row.scaled < 0 else 100 * error / row.scaled
        for row, error in zip(rows, absolute, strict=True)
    ]
    values = (
        pa.array([row.indicator for row in rows], pa.string()),
        pa.array([row.category for row in rows], pa.string()),
        pa.array([study.date_of(row.window.first_day) for row in rows], pa.date32()),
        pa.array([study.date_of(row.window.last_day) for row in rows], pa.date32()),
        pa.array([str(row.status) for row in rows], pa.string()),
        _rounded(row.published for row in rows),
        _rounded(row.scaled for row in rows),
        pa.array([row.synthetic for row in rows], pa.int64()),
        _rounded(absolute),
        _rounded(percent),
    )
    return dict(zip(ERROR_NAMES, values, strict=True))


def _rounded(values: Iterable[float | None]) -> Any:
    return pa.array([None if value is None else round(float(value), 3) for value in values], pa.float64())


def _ids(population: Population, people: NDArray[np.int64]) -> Any:
    """Names that cannot be taken for those of people: P000001 and so on."""
    size = population.presence.size
    width = max(6, len(str(size)))
    return pa.array([f"P{number:0{width}d}" for number in range(1, size + 1)]).take(pa.array(people))


def _named(attribute: Attribute, codes: NDArray[np.int32]) -> Any:
    return pa.array(attribute.indicator.categories, pa.string()).take(pa.array(codes))


def _csv(table: Table) -> bytes:
    return csv_text(table, zip(*(column.to_pylist() for column in table.values()), strict=True)).encode()


def _parquet(table: Table, population: Population) -> bytes:
    about = {"study": population.study.slug, "seed": str(population.seed), "notice": NOTICE}
    file = io.BytesIO()
    made = pa.table(dict(table)).replace_schema_metadata({"mobility_reports": json.dumps(about)})
    pq.write_table(made, file, compression="zstd")
    return file.getvalue()


def _manifest(population: Population, files: Mapping[str, bytes]) -> dict[str, Any]:
    study = population.study
    rates = error_rates(population.errors)
    return {
        "notice": NOTICE,
        "study": study.slug,
        "first_day": study.first_day.isoformat(),
        "last_day": study.last_day.isoformat(),
        "timezone": study.timezone,
        "seed": population.seed,
        "people": int(population.presence.size),
        "person_days": population.person_days,
        "people_are": _who(population),
        "scale": round(population.scale, 9),
        "inputs": _inputs(population),
        "plan": _plan(population),
        "further_epsilon": "0",
        "error_rates": {name: None if rate is None else round(rate, 6) for name, rate in rates.items()},
        "software": software(),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }


def _who(population: Population) -> str:
    if population.scale == 1:
        return "visitors that the network saw, not scaled by the market share"
    return (
        "as many as asked for, with the shares of the visitors that the network saw; errors compare with the "
        "published numbers times scale, and include the rounding to whole people"
    )


def _inputs(population: Population) -> dict[str, Any]:
    study, rows = population.study, population.errors
    n_hidden = sum(row.status == Status.SUPPRESSED and not row.indicator for row in rows)
    return {
        "visitors": "exact" if study.presence is None else "with presence noise",
        "windows": study.days * (study.days + 1) // 2,
        "hidden_windows": n_hidden,
        "small_cell": study.small_cell,
        "indicators": [each.indicator.slug for each in population.attributes],
        "left_out": population.left_out,
    }


def _plan(population: Population) -> dict[str, Any]:
    plan = population.plan
    spec, certificate = certified(plan)
    presence = certify_presence(spec)
    return {
        "version": plan.version,
        "sha256": plan.spec_hash,
        "mechanism": plan.mechanism,
        "unit": plan.unit,
        "epsilon_attribute": str(certificate.epsilon_attribute),
        "epsilon_profile": str(certificate.epsilon_profile),
        "epsilon_presence": None if presence is None else str(presence.epsilon),
        "statement": f"/studies/{population.study.slug}/statement.json",
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()

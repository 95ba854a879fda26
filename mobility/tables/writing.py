"""Reading, checking and writing a sanitised table. It loads GeoPandas: only the command imports it."""

import hashlib
import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from ldp.geo.location import LocationSpec
from mobility.tables import approvals
from mobility.tables.holding import Findings
from mobility.tables.models import TableRequest
from mobility.tables.options import TableError, TableOptions
from mobility.tables.placing import TableArea, area_of_file, spec_of
from mobility.tables.rows import MAX_BYTES, Rows, check_new, read_rows, write_rows
from mobility.tables.sanitising import (
    Positions,
    findings_of,
    positions_of,
    replaced_columns,
    sanitised,
)
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.unlocking import read_key
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.location import GRID_M, RADIUS_M, level_of
from reports.studies.studyfile.problems import Problems

_UP: Final = Context(prec=6, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A table that was read and checked, and holds nothing that it may not hold."""

    study: VaultStudy
    rows: Rows
    options: TableOptions
    positions: Positions
    findings: Findings
    area: TableArea
    spec: LocationSpec
    file_name: str
    file_sha256: str

    @property
    def facts(self) -> dict[str, Any]:
        """Return what the second person sees and the command prints: counts, columns and the promise."""
        gone = {*self.options.dropped, *replaced_columns(self.options, area=self.area)}
        return {
            "rows": self.rows.table.num_rows,
            "ids": self.positions.n_ids,
            "columns": [name for name in self.rows.table.column_names if name not in gone],
            "outside": self.positions.n_outside,
            "not_checked": list(self.findings.unjudged),
            "reordered": self.findings.by_order,
            "zones": len(self.area.area.zones) if self.area.has_zones else 0,
            "epsilon_per_m": f"{_UP.plus(self.spec.certified):f}",
            "mean_shift_m": round(self.spec.law.mean_m),
            "within_95_m": round(self.spec.law.quantile(0.95)),
        }

    def request(self, *, by: str) -> TableRequest:
        """Return a request for exactly this, not saved."""
        return TableRequest(
            study=self.study,
            file_name=self.file_name,
            file_sha256=self.file_sha256,
            options=self.options.to_json(),
            facts=self.facts,
            asked_by=by,
        )


def release(study: VaultStudy, file: Path, to: Path, *, asked: Mapping[str, Any], by: str) -> dict[str, Any]:
    """Do what a run of the command asks for; `asked` has its options by name.

    Returns, Raises : as `prepare` and `write`
    """
    check_new(to)  # before anyone is asked for an approval
    path: Path | None = asked["zones"]
    zones = None if path is None else path.read_bytes()
    area = _area(study, path, zones, zone_property=asked["zone_property"])
    options = _options(asked, area=area, zones=zones)
    return write(prepare(study, file, options, area=area), to, by=by)


def prepare(study: VaultStudy, file: Path, options: TableOptions, *, area: TableArea) -> Prepared:
    """Read a table and check that nothing in it would still hold the place.

    Raises
    ------
    TableError : it cannot be read, or a column that would stay holds the place
    OSError : there is no such file
    """
    if file.stat().st_size > MAX_BYTES:
        raise TableError(f"the file is larger than {MAX_BYTES // 1_000_000} MB: split it by id")
    data = file.read_bytes()  # once: what is hashed is what is read
    rows = read_rows(data)
    spec = spec_of(area, level=options.level, radius_m=options.radius_m, grid_m=options.grid_m)
    positions = positions_of(rows, options, area=area, spec=spec)
    findings = findings_of(rows, options, positions, area=area)
    _refuse(findings)
    return Prepared(
        study=study,
        rows=rows,
        options=options,
        positions=positions,
        findings=findings,
        area=area,
        spec=spec,
        file_name=file.name[:255],
        file_sha256=hashlib.sha256(data).hexdigest(),
    )


def write(table: Prepared, to: Path, *, by: str) -> dict[str, Any]:
    """Write a table whose file and options a second person approved, once; ask for the approval before.

    Returns
    -------
    facts : counts, the promise, and the number of the approved request (None where one person works)

    Raises
    ------
    TableWaitsError : no one has approved exactly this yet; from now on it waits for that
    TableError : the new file exists, or its name has another ending
    StudyClosedError, KeyMissingError : the study's key is gone
    """
    key = read_key(table.study)
    exactly, waits = table.request(by=by), None
    facts: dict[str, Any] = {}
    with ExitStack() as undo:
        with transaction.atomic(using="default"), transaction.atomic(using="vault"):
            VaultStudy.objects.select_for_update().get(pk=table.study.pk)
            if not settings.MOBILITY_SECOND_PERSON:
                facts = _write(table, to, exactly, key=key, by=by, undo=undo)
            elif (allowed := approvals.approved(exactly)) is not None:
                allowed.written_at = timezone.now()
                allowed.save(update_fields=["written_at"])
                facts = _write(table, to, allowed, key=key, by=by, undo=undo)
            else:
                waits = approvals.ask(exactly)
        undo.pop_all()
    if waits is not None:
        raise waits
    return facts


def _area(study: VaultStudy, path: Path | None, zones: bytes | None, *, zone_property: str) -> TableArea:
    if path is not None and zones is not None:
        return area_of_file(path.name, zones, zone_property=zone_property)
    area = StudyDefinition.from_json(study.definition).area
    if area is None:
        raise TableError(f"study {study.slug!r} has no area: give a file with zones (option --zones)")
    return TableArea(area)


def _options(asked: Mapping[str, Any], *, area: TableArea, zones: bytes | None) -> TableOptions:
    level = _level(asked["level"])
    for name, (low, high) in (("radius", RADIUS_M), ("grid", GRID_M)):
        if asked[name] is not None and not low <= asked[name] <= high:
            raise TableError(f"--{name} must be from {low} to {high} metres")
    spec = spec_of(area, level=level, radius_m=asked["radius"], grid_m=asked["grid"])
    return TableOptions(
        id=asked["id"],
        lat=asked["lat"],
        lon=asked["lon"],
        zone=asked["zone"],
        level=level,
        radius_m=asked["radius"],
        grid_m=spec.grid.step_m,
        dropped=tuple(sorted(set(asked["drop"]))),
        points=tuple(asked["distance_to"]),
        zones_sha256="" if zones is None else hashlib.sha256(zones).hexdigest(),
        zone_property="" if zones is None else asked["zone_property"],
    )


def _level(text: str) -> Decimal:
    """Level of a promise, written as in a study file."""
    problems = Problems("")
    try:
        value: Decimal | str = Decimal(text)
    except InvalidOperation:
        value = text
    level = level_of(value, problems)
    if problems.found:
        raise TableError(f"--level {problems.found[0].rule}")
    return level


def _refuse(findings: Findings) -> None:
    held = (*findings.by_name, *findings.by_data)
    if not held:
        return
    reasons = [f"{name!r} (its name is that of a place)" for name in findings.by_name]
    same = "rows close to each other have the same or nearly the same value"
    reasons += [f"{name!r} ({same})" for name in findings.by_data]
    drops = " ".join(f"--drop {shlex.quote(name)}" for name in held)
    raise TableError(
        f"these columns may still hold the place: {', '.join(reasons)}. Leave them out: {drops}. If a column "
        "has only the name of a place, rename it in the file"
    )


def _write(
    table: Prepared, to: Path, allowed: TableRequest, *, key: bytes, by: str, undo: ExitStack
) -> dict[str, Any]:
    """Write the file and record it; `undo` takes the file away again if the ledger does not know it."""
    made = sanitised(
        table.rows,
        table.options,
        table.positions,
        area=table.area,
        spec=table.spec,
        master_key=key,
        is_reordered=table.findings.by_order,
    )
    write_rows(made.table, to)
    undo.callback(to.unlink, missing_ok=True)
    approvals.tell(allowed, what="written", by=by)
    changed = None if made.zone_changed is None else round(made.zone_changed, 4)
    return {"request": allowed.pk, **table.facts, "zone_changed": changed}

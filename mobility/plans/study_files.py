"""A study, or a draft of one, as a file from which another installation makes the same: no data, and no keys.

The file has the definition with its area, and the plan's hash. Importing goes the way of every new study: the
readers of a study file check it, caps of budgets hold, the ledger notes it, and a new key is made.
"""

import json
from dataclasses import replace
from typing import Any, Final

from django.utils import timezone

from ldp.errors import LdpError
from mobility.base.errors import MobilityError
from mobility.plans.drafts import definition_hash, draft_new_study
from mobility.plans.models import PlanDraft
from mobility.plans.studies import create_study
from mobility.vault.models.subscribers import VaultStudy
from reports.base.version import software
from reports.studies.models import Area
from reports.studies.plan_models import Plan
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.definition import MapLayer
from reports.studies.studyfile.redraft import read_tables, tables_of
from reports.transfer.studies import FIRST_VERSION, plan_hash

FORMAT: Final = "mobility-study/1"
STUDY, DRAFT = "study", "draft"


class StudyImportError(MobilityError):
    """The file makes no study; nothing was created."""


def export_study(row: VaultStudy) -> dict[str, Any]:
    """Return the study as `import_study` reads it; its schema is docs/study_export.schema.json."""
    definition = _with_layers(StudyDefinition.from_json(row.definition))
    plans = [_plan(each) for each in Plan.objects.filter(study__slug=row.slug).order_by("version")]
    return _file(STUDY, definition, version=int(row.plan["version"]), plans=plans)


def export_draft(draft: PlanDraft) -> dict[str, Any]:
    """Return the same of a draft: importing it makes a draft."""
    return _file(DRAFT, StudyDefinition.from_json(draft.definition), version=draft.version, plans=[])


def import_study(text: bytes, *, by: str, slug: str = "", as_draft: bool = False) -> dict[str, Any]:
    """Make the study of an export, or a draft of it.

    Parameters
    ----------
    slug : another one than in the file; empty = that one
    as_draft : a second person approves the plan before anything is in force; always so with a draft

    Returns
    -------
    what was made, with its hashes: those of the file, unless the slug is another one

    Raises
    ------
    StudyImportError : the file is not such an export, damaged, or breaks a rule of study files
    StudyExistsError, StudyVaultError, BudgetExceededError, DraftOpenError, HandoverRefusedError
    """
    content = _read(text)
    definition = _definition(content)
    if slug and slug != definition.slug:
        definition = _checked(definition, slug=slug)
    if as_draft or content["kind"] == DRAFT:
        draft = draft_new_study(definition, by=by)
        return {"study": draft.slug, "draft": draft.pk, **_hashes(definition, version=draft.version)}
    version = content["plan"]["version"]
    created = create_study(definition, by=by, version=version)
    return {**created, **_hashes(definition, version=version)}


def _file(
    kind: str, definition: StudyDefinition, *, version: int, plans: list[dict[str, Any]]
) -> dict[str, Any]:
    spec = definition.plan_spec(version=version)
    return {
        "format": FORMAT,
        "kind": kind,
        "software": software(),
        "exported_at": timezone.now().isoformat(),
        "definition_sha256": definition_hash(definition),
        "plan": {"version": version, "sha256": plan_hash(spec), "spec": spec.to_json()},
        "plans": plans,
        "definition": definition.to_json(),
    }


def _with_layers(definition: StudyDefinition) -> StudyDefinition:
    """Give a definition the base layers of its maps, which may have been imported after it was created."""
    layers = Area.objects.filter(study__slug=definition.slug).values_list("layers", flat=True).first()
    if definition.area is None or layers is None:
        return definition
    shown = tuple(MapLayer(**layer) for layer in layers)
    return replace(definition, area=replace(definition.area, layers=shown))


def _plan(plan: Plan) -> dict[str, Any]:
    """A version of the plan, and who approved it; for people: importing does not copy an approval."""
    moments = ("published_at", "reviewed_at", "superseded_at")
    return {
        "version": plan.version,
        "sha256": plan.spec_hash,
        "review": plan.review,
        "published_by": plan.published_by,
        "reviewed_by": plan.reviewed_by,
        **{name: moment and moment.isoformat() for name in moments for moment in [getattr(plan, name)]},
    }


def _read(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise StudyImportError("the file must be JSON written by export_study") from None
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise StudyImportError(
            f'format must be "{FORMAT}", got {found!r}: the file comes from a newer version, or is '
            "not a study export"
        )
    plan = content.get("plan")
    is_whole = (
        content.get("kind") in (STUDY, DRAFT)
        and isinstance(content.get("definition"), dict)
        and isinstance(plan, dict)
        and type(plan.get("version")) is int  # true is one, too
        and plan["version"] >= FIRST_VERSION
    )
    if not is_whole:
        raise StudyImportError(
            "the file must contain kind, definition, and plan with its version, as written by export_study"
        )
    whole: dict[str, Any] = content
    return whole


def _definition(content: dict[str, Any]) -> StudyDefinition:
    """The definition of a file, with every rule checked and both hashes computed again."""
    try:
        definition = StudyDefinition.from_json(content["definition"])
        sha256 = definition_hash(definition)
        spec = definition.plan_spec(version=content["plan"]["version"])
    except (LdpError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        raise StudyImportError("the definition cannot be read: export the study again") from None
    if sha256 != content.get("definition_sha256"):
        raise StudyImportError("definition_sha256 must match the definition, but the file was changed")
    if plan_hash(spec) != content["plan"].get("sha256"):
        raise StudyImportError(
            "plan.sha256 must match the plan, but the file was changed, or this version computes "
            "different probabilities"
        )
    return _checked(definition, slug=definition.slug)


def _checked(definition: StudyDefinition, *, slug: str) -> StudyDefinition:
    """Return the same definition under `slug`, through the readers of a study file."""
    _check_cells(definition)
    tables = tables_of(definition)
    tables["study"]["slug"] = slug
    try:
        read = read_tables(tables, like=definition)
    except (ValueError, LdpError) as error:
        raise StudyImportError(str(error)) from None
    if read != replace(definition, slug=slug):
        raise StudyImportError("the definition must be one that a study file can express, got another")
    return read


def _check_cells(definition: StudyDefinition) -> None:
    area = definition.area
    if area is None:
        return
    if area.zones_fr is not None and len(area.zones_fr) != len(area.zones):
        raise StudyImportError("zones_fr must have a name for each zone")
    zones = {None, *area.zones}
    for cell in area.cells:
        if not (cell.cell_id and -180 <= cell.lon <= 180 and -90 <= cell.lat <= 90 and cell.zone in zones):
            raise StudyImportError("every cell must have a name, degrees in range and a zone of the area")


def _hashes(definition: StudyDefinition, *, version: int) -> dict[str, Any]:
    plan_sha256 = plan_hash(definition.plan_spec(version=version))
    sha256 = definition_hash(definition)
    return {"plan_version": version, "plan_sha256": plan_sha256, "definition_sha256": sha256}

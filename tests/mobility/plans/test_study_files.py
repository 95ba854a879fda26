"""Studies and drafts as files: what comes back is the same, and what is not sound makes nothing."""

import json
from dataclasses import replace
from errno import EPIPE
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.core.management import CommandError, call_command

from mobility.models import PlanDraft, VaultStudy
from mobility.plans.drafts import definition_hash, draft_new_study
from mobility.plans.studies import create_study
from mobility.plans.study_files import StudyImportError, export_draft, export_study, import_study
from reports.management.arguments import naming_files
from reports.models import LedgerEntry, Plan, Study
from reports.studies.studyfile import StudyDefinition
from reports.transfer.studies import StudyExistsError
from tests.mobility.commands import printed

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "study_export.schema.json").read_text())
pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]


@pytest.fixture
def exported(definition):
    create_study(definition, by="adam", version=3)
    content = export_study(VaultStudy.objects.get())
    for model in (VaultStudy, Plan, Study):
        model.objects.all().delete()
    return content


def as_text(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()


def test_the_same_study_comes_back(definition, exported):
    made = import_study(as_text(exported), by="adam")
    hashes = {"plan_sha256": exported["plan"]["sha256"], "definition_sha256": definition_hash(definition)}
    assert made == {"study": "fimu-2017", "indicators": 7, "windows": 28, "plan_version": 3} | hashes
    copy, plan = VaultStudy.objects.get(), Plan.objects.get()
    assert copy.plan_hash == plan.spec_hash == exported["plan"]["sha256"]
    assert copy.plan == plan.spec == exported["plan"]["spec"]
    again = export_study(copy)
    for name in ("definition", "definition_sha256", "plan", "kind", "format"):
        assert again[name] == exported[name]
    noted = LedgerEntry.objects.filter(kind="study.created").latest("number").facts
    assert (noted["plan_sha256"], noted["plan_version"]) == (plan.spec_hash, 3)


def test_an_export_keeps_its_schema_and_comes_back_under_another_name(exported, definition):
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(exported)
    assert [each["version"] for each in exported["plans"]] == [3]
    for name in ("key_id", "study-fimu-2017-"):  # as a key is called
        assert name not in json.dumps(exported)
    made = import_study(as_text(exported), by="adam", slug="fimu-copy")
    assert (made["study"], made["plan_sha256"]) == ("fimu-copy", exported["plan"]["sha256"])
    copy = VaultStudy.objects.get()
    assert StudyDefinition.from_json(copy.definition) == replace(definition, slug="fimu-copy")
    with pytest.raises(StudyExistsError):
        import_study(as_text(export_study(copy)), by="adam")


def test_a_draft_comes_back_as_a_draft(definition):
    content = export_draft(draft_new_study(definition, by="adam"))
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    PlanDraft.objects.all().delete()
    made = import_study(as_text(content), by="command line")
    draft = PlanDraft.objects.get()
    assert (made["draft"], draft.state) == (draft.pk, PlanDraft.State.DRAFT)
    assert (draft.definition_hash, Study.objects.exists()) == (content["definition_sha256"], False)


def test_a_study_can_wait_for_a_second_person(exported):
    import_study(as_text(exported), by="command line", as_draft=True)
    assert (PlanDraft.objects.get().editors, VaultStudy.objects.exists()) == (["command line"], False)


DAMAGE = {
    "later format": (lambda file: file.update(format="mobility-study/2"), "format must be"),
    "no number": (lambda file: file["plan"].update(version=True), "must contain kind, definition, and plan"),
    "no plan": (lambda file: file.pop("plan"), "must contain kind, definition, and plan"),
    "weaker plan": (lambda file: file["definition"]["plan"].update(epsilon="9"), "definition_sha256"),
    "another probability": (lambda file: file["plan"].update(sha256="0" * 64), "plan.sha256"),
    "missing part": (lambda file: file["definition"].pop("visitor"), "cannot be read"),
    "another version": (lambda file: file["plan"].update(version=4), "plan.sha256"),
}


@pytest.mark.parametrize(("change", "message"), DAMAGE.values(), ids=DAMAGE)
def test_what_was_changed_makes_nothing(exported, change, message):
    change(exported)
    with pytest.raises(StudyImportError, match=message):
        import_study(as_text(exported), by="adam")
    assert (Study.objects.count(), VaultStudy.objects.count()) == (0, 0)


def test_rules_of_study_files_hold_for_whoever_computes_hashes_again(exported):
    written = exported["definition"]
    for part, name, value, reason in (
        (written["area"]["cells"][0], "lon", 181.0, "degrees in range"),
        (written, "timezone", "Europe/Nowhere", "timezone"),
    ):
        before, part[name] = part[name], value
        exported["definition_sha256"] = definition_hash(StudyDefinition.from_json(written))
        with pytest.raises(StudyImportError, match=reason):
            import_study(as_text(exported), by="adam")
        part[name] = before


def test_commands(definition, tmp_path):
    create_study(definition, by="adam")
    file = str(tmp_path / "study.json")
    assert printed("export_study", "fimu-2017")["definition"] == definition.to_json()
    assert printed("export_study", "fimu-2017", "--out", file)["file"] == file
    with pytest.raises(CommandError, match="must be new"):
        call_command("import_study", file)
    assert printed("import_study", file, "--slug", "copy")["study"] == "copy"
    (tmp_path / "no.json").write_text("[]")
    for words, problem in {
        ("export_study", "fimu-2017", "--draft"): "no open draft",
        ("import_study", str(tmp_path / "absent.json")): "No such file",
        ("import_study", str(tmp_path / "no.json")): "format must be",
    }.items():
        with pytest.raises(CommandError, match=problem):
            call_command(*words)
    # Not every error is of a file: a program that reads the output may have ended.
    with pytest.raises(CommandError, match=r"^Broken pipe$"), naming_files():
        raise BrokenPipeError(EPIPE, "Broken pipe")


def test_download(definition, client, administrator):
    create_study(definition, by="adam")
    client.force_login(administrator)
    address = "/administrator/fimu-2017/study.json"
    assert f'href="{address}"' in client.get("/administrator/fimu-2017/").content.decode()
    file = client.get(address)
    assert file["Content-Disposition"] == 'attachment; filename="fimu-2017-study.json"'
    assert json.loads(file.content)["definition_sha256"] == definition_hash(definition)

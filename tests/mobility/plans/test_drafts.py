"""Drafts of plans: who may take which step, what an edit takes back; studies and drafts as files."""

import json
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from errno import EPIPE
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

from mobility.models import PlanDraft, VaultStudy
from mobility.plans import drafts
from mobility.plans.drafts import definition_hash, draft_new_study
from mobility.plans.publishing import NotReviewedError, publish_draft
from mobility.plans.studies import create_study
from mobility.plans.study_files import StudyImportError, export_draft, export_study, import_study
from reports.ledger.actions import record
from reports.management.arguments import naming_files
from reports.maps.base_layers import import_layers
from reports.models import Area, LedgerEntry, LedgerKind, Plan, Study
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.definition import MapLayer
from reports.transfer.studies import StudyExistsError
from tests.mobility.commands import printed
from tests.mobility.pipeline import fresh
from tests.reports import map_factory

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]


def with_epsilon(definition: StudyDefinition, epsilon: str) -> StudyDefinition:
    return replace(definition, plan=replace(definition.plan, epsilon=Decimal(epsilon)))


def kinds() -> list[str]:
    return list(LedgerEntry.objects.order_by("number").values_list("kind", flat=True))


def waiting(definition: StudyDefinition) -> PlanDraft:
    draft = drafts.draft_new_study(definition, by="adam")
    drafts.submit_draft(draft, revision=1, by="adam")
    return draft


def test_one_drafts_and_another_approves_exactly_that(definition):
    draft = waiting(definition)
    assert (draft.state, draft.revision, draft.submitted_by) == ("draft", 1, "adam")
    drafts.approve_draft(draft, revision=1, by="petra", remark="as we agreed")
    assert (draft.state, draft.reviewed_by, draft.remark) == ("reviewed", "petra", "as we agreed")
    assert (draft.reviewed_hash, kinds()) == (draft.definition_hash, ["plan.drafted", "plan.reviewed"])
    entry = LedgerEntry.objects.get(kind="plan.reviewed")
    assert (entry.actor, entry.study) == ("petra", "fimu-2017")
    hashes = {"plan_sha256": draft.plan_hash, "definition_sha256": draft.definition_hash}
    assert entry.facts == entry.facts | hashes


def test_an_edit_takes_the_approval_back_and_saving_what_is_there_does_not(definition):
    draft = waiting(definition)
    drafts.approve_draft(draft, revision=1, by="petra")
    assert not drafts.save_draft(draft, definition, revision=1, by="eve")
    assert (draft.state, draft.revision, draft.editors) == ("reviewed", 1, ["adam"])
    approved = draft.definition_hash
    assert drafts.save_draft(draft, with_epsilon(definition, "0.5"), revision=1, by="adam")
    assert (draft.state, draft.revision, draft.reviewed_by, draft.submitted_at) == ("draft", 2, "", None)
    assert draft.definition_hash != approved
    assert draft.plan_hash == drafts.plan_hash(with_epsilon(definition, "0.5").plan_spec())


def test_nobody_approves_what_they_wrote_any_of(definition):
    draft = drafts.draft_new_study(definition, by="adam")
    drafts.save_draft(draft, with_epsilon(definition, "2"), revision=1, by="bea")
    drafts.save_draft(draft, replace(with_epsilon(definition, "2"), name="Another"), revision=2, by="adam")
    drafts.submit_draft(draft, revision=3, by="adam")
    for author in ("adam", "bea"):
        with pytest.raises(drafts.DraftError, match=f"who did not edit it, got {author}"):
            drafts.approve_draft(draft, revision=3, by=author)
    assert (fresh(draft).state, draft.reviewed_by) == ("draft", "")
    drafts.approve_draft(draft, revision=3, by="petra")


def test_nor_does_an_account_that_any_of_its_authors_changed(definition):
    draft = drafts.draft_new_study(definition, by="adam")
    drafts.save_draft(draft, with_epsilon(definition, "2"), revision=1, by="bea")
    drafts.submit_draft(draft, revision=2, by="bea")
    record(LedgerKind.ACCESS_CHANGED, actor="adam", facts={"account": "petra", "change": "password replaced"})
    with pytest.raises(drafts.DraftError, match="adam reset the password of petra"):
        drafts.approve_draft(draft, revision=2, by="petra")
    drafts.send_back(draft, revision=2, by="petra", remark="smaller")  # that weakens nothing
    drafts.submit_draft(draft, revision=2, by="bea")
    given = {"reviewed_by": "petra", "reviewed_at": timezone.now(), "reviewed_hash": draft.definition_hash}
    PlanDraft.objects.update(state="reviewed", **given)
    with pytest.raises(NotReviewedError, match="adam reset the password of petra"):
        publish_draft(draft, revision=2, by="bea")


@pytest.mark.database
def test_the_database_refuses_such_an_approval_too(definition):
    draft = waiting(definition)
    own = {"state": "reviewed", "reviewed_by": "adam", "reviewed_at": draft.submitted_at}
    other = {**own, "reviewed_by": "petra"}
    for values in (
        {**own, "reviewed_hash": draft.definition_hash},  # by the author
        {**other, "reviewed_hash": "0" * 64},  # of another text
        {"state": "reviewed"},  # by no one
    ):
        with pytest.raises(IntegrityError), transaction.atomic(using="vault"):
            PlanDraft.objects.filter(pk=draft.pk).update(**values)
    assert PlanDraft.objects.filter(pk=draft.pk).update(**other, reviewed_hash=draft.definition_hash)


def test_a_reviewer_approves_what_waits_as_they_saw_it(definition):
    draft = drafts.draft_new_study(definition, by="adam")
    with pytest.raises(drafts.DraftError, match="must be in review"):
        drafts.approve_draft(draft, revision=1, by="petra")
    drafts.submit_draft(draft, revision=1, by="adam")
    drafts.save_draft(draft, with_epsilon(definition, "20"), revision=1, by="adam")
    drafts.submit_draft(draft, revision=2, by="adam")
    with pytest.raises(drafts.DraftConflictError, match="changed by adam since you opened it"):
        drafts.approve_draft(draft, revision=1, by="petra")


def test_a_withdrawn_draft_stays_as_it_was(definition):
    draft = drafts.draft_new_study(definition, by="adam")
    drafts.withdraw_draft(draft, revision=1, by="bea")
    assert (draft.state, draft.ended_by) == ("withdrawn", "bea")
    for step in (
        lambda: drafts.save_draft(draft, with_epsilon(definition, "3"), revision=1, by="adam"),
        lambda: drafts.submit_draft(draft, revision=1, by="adam"),
        lambda: drafts.withdraw_draft(draft, revision=1, by="adam"),
    ):
        with pytest.raises(drafts.DraftError, match="must be open to be changed, but it is withdrawn"):
            step()
    assert kinds() == ["plan.drafted", "plan.withdrawn"]


def test_a_study_has_one_open_draft(definition):
    first = drafts.draft_new_study(definition, by="adam")
    with pytest.raises(drafts.DraftOpenError, match="edited by adam") as caught:
        drafts.draft_new_study(definition, by="bea")
    assert caught.value.draft_id == first.pk
    other = drafts.draft_new_study(replace(definition, slug="other"), by="bea")
    with pytest.raises(drafts.DraftOpenError):
        drafts.save_draft(other, definition, revision=1, by="bea")
    drafts.withdraw_draft(first, revision=1, by="adam")
    assert drafts.save_draft(other, definition, revision=1, by="bea")
    assert other.slug == "fimu-2017"


class TestOfAStudy:
    @pytest.fixture(autouse=True)
    def _study(self, data_dir, definition):
        create_study(definition, by="adam")

    def test_the_next_version_starts_as_what_is_in_force_and_keeps_its_slug(self, definition):
        draft = drafts.draft_of_study("fimu-2017", by="adam")
        assert StudyDefinition.from_json(draft.definition) == definition
        assert (draft.version, draft.is_new_study) == (2, False)
        assert draft.base_plan_hash == VaultStudy.objects.get().plan_hash != draft.plan_hash
        assert drafts.reasons_of(draft) == []
        with pytest.raises(drafts.DraftError, match=r'study\.slug must stay "fimu-2017", got "fimu-2018"'):
            drafts.save_draft(draft, replace(definition, slug="fimu-2018"), revision=1, by="adam")
        drafts.save_draft(draft, with_epsilon(definition, "1.5"), revision=1, by="adam")
        assert any("rises from 1 to 1.5" in reason for reason in drafts.reasons_of(draft))

    def test_a_copy_is_a_new_study(self, definition):
        draft = drafts.copy_of_study("fimu-2017", to="fimu-2018", by="adam")
        assert StudyDefinition.from_json(draft.definition) == replace(definition, slug="fimu-2018")
        assert (draft.version, draft.is_new_study, draft.base_slug) == (1, True, "fimu-2017")
        assert len(drafts.reasons_of(draft)) == 1
        with pytest.raises(StudyExistsError):
            drafts.copy_of_study("fimu-2017", to="fimu-2017", by="adam")


ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "study_export.schema.json").read_text())


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


@pytest.mark.parametrize("names", [["river.geojson"], []], ids=["imported", "removed"])
def test_base_layers_of_now_travel_with_a_study(definition, names):
    drawn_before = MapLayer(name="roads", kind="lines", paths=[[[0.0, 0.0], [100.0, 50.0]]])
    definition = replace(definition, area=replace(map_factory.area(), layers=(drawn_before,)))
    create_study(definition, by="adam")
    line = {"type": "LineString", "coordinates": [[6.79, 47.6], [6.81, 47.61], [6.82, 47.6]]}
    feature = {"type": "Feature", "properties": {}, "geometry": line}
    river = json.dumps({"type": "FeatureCollection", "features": [feature]}).encode()
    import_layers(Study.objects.get(), names, files={"river.geojson": river}, by="adam")
    drawn = Area.objects.get().layers
    assert [(layer["name"], layer["kind"]) for layer in drawn] == [("river", "lines")] * len(names)
    content = export_study(VaultStudy.objects.get())
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    for model in (VaultStudy, Plan, Study):
        model.objects.all().delete()
    import_study(as_text(content), by="adam")
    assert Area.objects.get().layers == drawn
    assert StudyDefinition.from_json(VaultStudy.objects.get().definition) == definition


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


def test_what_was_changed_makes_nothing(exported):
    for name, (change, message) in DAMAGE.items():
        changed = deepcopy(exported)
        change(changed)
        with pytest.raises(StudyImportError, match=message):
            import_study(as_text(changed), by="adam")
        assert (Study.objects.count(), VaultStudy.objects.count()) == (0, 0), name


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

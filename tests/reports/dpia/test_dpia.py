"""The data protection pack: what runs stands in it, and what a machine cannot know is left open."""

import io
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pypdf
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client, override_settings

from ldp.attacker import guess_success
from reports import wording
from reports.dpia import dpia_pack
from reports.dpia.markdown import to_markdown
from reports.dpia.parts import Section
from reports.dpia.pdf import to_pdf
from reports.models import Study
from reports.policies import Role
from reports.retention import retention
from reports.statement import certified, not_protected
from tests.reports import map_factory
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def study() -> Study:
    return factory.create(factory.GENDER)


def section(study: Study, title: str) -> Section:
    (found,) = [each for each in dpia_pack(study).sections if each.title == title]
    return found


def rows(found: Section) -> dict[str, tuple[str, ...]]:
    assert found.table is not None
    return {row[0]: row[1:] for row in found.table.rows}


def test_every_letter_of_both_articles_has_its_section(study: Study) -> None:
    articles = " ".join(each.article for each in dpia_pack(study).sections)
    for letter in ("30 (1) a", "30 (1) b", "30 (1) c", "30 (1) d", "30 (1) e", "30 (1) f"):
        assert letter in articles
    for letter in ("35 (7) a", "35 (7) b", "35 (7) c", "35 (7) d", "35 (9)"):
        assert letter in articles


def test_recipients_are_the_accounts_that_reach_the_study_now(
    study: Study, person: Callable[..., User]
) -> None:
    assert set(rows(section(study, "Recipients")).values()) == {("0",)}
    person("vera", Role.VIEWER)
    person("adam", Role.ADMINISTRATOR)
    person("olga", Role.OPERATOR, Role.ANALYST)
    gone = person("anna", Role.ANALYST)
    gone.is_active = False
    gone.save()
    found = {name: n for name, (n,) in rows(section(study, "Recipients")).items()}
    assert found == {
        "operator": "1",
        "analyst": "1",
        "administrator": "1",
        "privacy officer": "0",
        "viewer": "1",
    }


def test_time_limits_are_those_of_the_statement(study: Study) -> None:
    assert rows(section(study, "Time limits for erasure")) == {
        row["text"]: (row["until"],) for row in retention(study)
    }
    assert section(study, "Time limits for erasure").to_fill
    Study.objects.update(key_until=date(2030, 1, 1))
    later = Study.objects.get()
    assert not section(later, "Time limits for erasure").to_fill
    assert "2030-01-01" in " ".join(
        until for (until,) in rows(section(later, "Time limits for erasure")).values()
    )


@pytest.mark.parametrize(
    ("expires_s", "told"), [(86_400, "after 24 hours."), (5400, "after 2 hours."), (600, "after an hour.")]
)
def test_an_upload_that_rests_is_gone_when_the_pack_says_so(study: Study, expires_s: int, told: str) -> None:
    with override_settings(MOBILITY_UPLOAD_EXPIRES_S=expires_s):
        (staged,) = section(study, "Time limits for erasure").paragraphs
    assert staged.endswith(told)


def test_one_indicator_is_one(study: Study) -> None:
    points = section(study, "Necessity and proportionality").points
    assert "Data minimisation: only the columns that one indicator needs are read." in points


def test_the_risk_of_a_value_is_computed_from_the_probabilities_in_use(study: Study) -> None:
    spec, certificate = certified(study.plans.get())
    k = spec.indicators[0].domain_size
    found = rows(section(study, "Risk: somebody learns a person's value"))[study.indicators.get().name]
    ratio = float(certificate.indicators[0].ratio)
    assert found == (
        wording.percent(1 / k),
        wording.percent(guess_success(spec.channel(0), prior=[1 / k] * k)),
        wording.percent(ratio / (1 + ratio)),
    )


def test_what_is_not_protected_is_a_risk(study: Study) -> None:
    spec, _ = certified(study.plans.get())
    found = section(study, "Risks that the guarantee does not cover")
    assert found.points == tuple(limit["text"] for limit in not_protected(spec))
    located = map_factory.create_located(slug="places-2024", n=300)
    assert len(section(located, found.title).points) > len(found.points)
    assert "Main place of a day, with noise" in rows(section(located, "Data subjects and data"))
    assert "Main place of a day, with noise" not in rows(section(study, "Data subjects and data"))


@pytest.mark.parametrize(
    ("changed", "label"),
    [
        ({"MOBILITY_ZONE": "analyst"}, "Operator zone and analyst zone run apart"),
        ({"HTTPS": True}, "Encrypted connections only (HTTPS)"),
        (
            {"MOBILITY_SECOND_FACTOR": "required"},
            "Second factor required of administrators and privacy officers",
        ),
    ],
)
def test_measures_are_those_in_force(study: Study, changed: dict[str, Any], label: str) -> None:
    assert rows(section(study, "Measures"))[label] == ("no",)
    with override_settings(**changed):
        assert rows(section(study, "Measures"))[label] == ("yes",)
    with override_settings(MOBILITY_SECOND_PERSON=False):
        assert rows(section(study, "Measures"))["A second person for what weakens a plan"] == ("no",)


def test_markdown_has_everything_and_a_box_for_each_open_point(study: Study) -> None:
    Study.objects.update(name="Fair *2024* | <b>")
    pack = dpia_pack(Study.objects.get())
    text = to_markdown(pack)
    assert text.count("- [ ] **") == pack.n_open > 10
    assert "# Data protection pack: Fair \\*2024\\* | \\<b\\>" in text
    for each in pack.sections:
        assert f". {each.title}".replace("*", "\\*") in text
        if each.table is not None:
            assert len(re.findall(r"^\| ", text, re.MULTILINE)) >= len(each.table.rows) + 2


def test_the_document_can_be_read_and_printed(study: Study) -> None:
    reader = pypdf.PdfReader(io.BytesIO(to_pdf(dpia_pack(study))))
    text = " ".join(" ".join(page.extract_text() for page in reader.pages).split())
    for each in dpia_pack(study).sections:
        assert each.title in text
    assert text.count("To complete:") == dpia_pack(study).n_open


def test_page_and_files(study: Study, client: Client, administrator: User) -> None:
    client.force_login(administrator)
    page = client.get(f"/studies/{study.slug}/dpia/")
    assert page.content.decode().count("To complete:") == dpia_pack(study).n_open
    written = client.get(f"/studies/{study.slug}/dpia.md")
    assert written["Content-Disposition"] == f'attachment; filename="{study.slug}_dpia.md"'
    assert written.content.decode() == to_markdown(dpia_pack(study))
    assert client.get(f"/studies/{study.slug}/dpia.pdf").content.startswith(b"%PDF-")
    assert client.get(f"/studies/{study.slug}/dpia.html").status_code == 404


def test_command(study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("dpia", study.slug)
    assert capsys.readouterr().out.strip() == to_markdown(dpia_pack(study)).strip()
    call_command("dpia", study.slug, out=tmp_path / "pack.md")
    assert (tmp_path / "pack.md").read_text() == to_markdown(dpia_pack(study))
    call_command("dpia", study.slug, out=tmp_path / "pack.pdf")
    assert (tmp_path / "pack.pdf").read_bytes().startswith(b"%PDF-")
    with pytest.raises(CommandError, match=r"--out must end in .md or .pdf, got pack.doc"):
        call_command("dpia", study.slug, out=tmp_path / "pack.doc")
    with pytest.raises(CommandError, match=r"STUDY must be the slug of a study \(.+\), got nowhere"):
        call_command("dpia", "nowhere")

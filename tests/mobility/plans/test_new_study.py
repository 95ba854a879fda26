"""The text of a new study, edited by its form: nothing that the form does not know is lost."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from mobility.plans.new_study.text import (
    FormTextError,
    blank_text,
    merged,
    tables_of_text,
    text_of,
    typed_of_text,
    with_names,
    without_field,
)
from mobility.plans.pages.draft_typed import Typed
from reports.studies.studyfile import StudyFileError
from reports.studies.studyfile.redraft import read_tables, tables_of
from tests.demo_study import parsed_study
from tests.mobility.class_study import class_text
from tests.mobility.pages.small_study import STUDY, definition_of
from tests.study_text import origin

EXAMPLE = Path(__file__).parents[3] / "templates" / "plans" / "_example.toml"
BLANK = blank_text(timezone="Europe/Paris", first_day=date(2027, 1, 1))


def edited(text, *, in_text=None, remove=(), add=(), **fields):
    """The text after the form was changed; `in_text` is what someone made of the text meanwhile."""
    base = tables_of_text(text, filename="")
    typed = typed_of_text(base)
    for kind in add:
        typed.add(kind)
    for row in remove:
        typed.remove(row)
    typed.values |= {name.replace("__", "."): value for name, value in fields.items()}
    return merged(in_text or text, with_names(typed), base=base, filename="")


def changed_lines(before, after):
    return [line for line in after.splitlines() if line not in before.splitlines()]


def test_only_changed_lines_change_and_comments_stay():
    text = EXAMPLE.read_text()
    assert edited(text) == text
    after = edited(text, study__name="Été", plan__epsilon="0,5", **{"indicator-0__column": "age_band"})
    lines = ['name = "Été"', "epsilon = 0.5                 # smaller protects more", 'column = "age_band"']
    assert changed_lines(text, after) == lines
    assert "small_cell" not in edited(text, study__small_cell="")


def test_changes_of_the_form_and_of_the_text_are_both_kept():
    in_text = BLANK.replace("days = 7", "days = 3") + "# mine\n[location]\nlevel = 1\n"
    after = edited(BLANK, in_text=in_text, study__name="Fair")
    tables = tables_of_text(after, filename="")
    assert (tables["study"]["days"], tables["study"]["slug"], tables["location"]) == (3, "fair", {"level": 1})
    assert without_field(tables) == ["location"]
    assert "# mine" in after


def test_indicators_come_and_go_and_a_joint_one_is_as_daily_as_its_parts():
    one = edited(
        BLANK, add=["static", "daily", "joint"], **{"indicator-0__slug": "age", "indicator-1__slug": "stay"}
    )
    joint = edited(one, **{"indicator-2__parts": "age\nstay"})
    kinds = [each["kind"] for each in tables_of_text(joint, filename="")["indicator"]]
    assert kinds == ["static", "daily", "daily"]
    assert tables_of_text(
        edited(joint, remove=["indicator-0", "indicator-1", "indicator-2"]), filename=""
    ) == (tables_of_text(BLANK, filename=""))


def test_a_visitor_category_is_a_kind_of_the_form_alone():
    fields = {
        "slug": "who",
        "column": "home",
        "operator_column": "mcc",
        "home": "93048",
        "countries": "RE\nYT",
    }
    text = edited(
        BLANK, add=["visitor_category"], **{f"indicator-0__{key}": each for key, each in fields.items()}
    )
    (made,) = tables_of_text(text, filename="")["indicator"]
    listed = {"home": ["93048"], "countries": ["RE", "YT"]}
    assert made == {"kind": "static", "derive": "visitor_category", **fields, **listed}
    assert without_field(tables_of_text(text, filename="")) == []
    assert edited(text) == text
    other = tables_of_text(edited(text, **{"indicator-0__countries": "FR"}), filename="")
    assert other["indicator"] == [{**made, "countries": ["FR"]}]


def test_classes_come_and_go_and_keep_what_the_text_says_of_them():
    text = class_text().replace('slug = "panel"\n', 'slug = "panel" # mine\nunknown = 1\n')
    assert edited(text) == text
    assert without_field(tables_of_text(text, filename="")) == ["class[panel].unknown"]
    changed = edited(
        text, add=["class"], remove=["class-1"], plan__class_column="tariff",
        **{"class-0.epsilon": "4,5", "class-3.name": "Fleet", "class-3.epsilon": "1"},
    )  # fmt: skip
    assert 'slug = "panel" # mine' in changed
    tables = tables_of_text(changed, filename="")
    assert [each["slug"] for each in tables["class"]] == ["panel", "minor", "fleet"]
    assert (tables["class"][0]["epsilon"], tables["plan"]["class_column"]) == (Decimal("4.5"), "tariff")
    assert tables["class"][2] == {"name": "Fleet", "slug": "fleet", "epsilon": 1}
    gone = edited(changed, remove=["class-0", "class-1", "class-2"], plan__class_column="")
    assert "class" not in tables_of_text(gone, filename="")
    assert "class_column" not in gone
    again = {"class-0.slug": "panel", "class-0.epsilon": "4", "class-1.slug": "new", "class-1.epsilon": "1"}
    both = edited(BLANK, in_text=text, add=["class", "class"], **again)
    epsilons = [(each["slug"], each["epsilon"]) for each in tables_of_text(both, filename="")["class"]]
    assert epsilons == [("panel", 4), ("standard", 19), ("minor", 18), ("new", 1)]
    assert 'slug = "panel"' in both and "unknown = 1" in both
    with pytest.raises(FormTextError):
        edited(text, in_text=text + '[[class]]\nslug = "new"\n', **{"class-0.epsilon": "4"})


def test_a_draft_keeps_its_classes_and_loses_those_that_the_form_removes():
    study = parsed_study(class_text())
    typed = Typed.of(study)
    assert read_tables(typed.tables(study), like=study) == study
    typed.remove("class-1")
    assert [each.slug for each in read_tables(typed.tables(study), like=study).classes] == ["panel", "minor"]
    for row in ("class-0", "class-2"):
        typed.remove(row)
    typed.values["plan.class_column"] = ""
    assert read_tables(typed.tables(study), like=study).classes == ()


def test_a_draft_keeps_a_visitor_category():
    text = STUDY + origin("who", column="home", home=("93048",), countries=("RE", "YT"))
    study = definition_of(text)
    typed = Typed.of(study)
    assert typed.kind_of(typed.rows[-1]) == "visitor_category"
    assert read_tables(typed.tables(study), like=study) == study
    typed.values[f"{typed.rows[-1]}.home"] = "93100"
    assert read_tables(typed.tables(study), like=study).indicators[-1].origin.home == ("93100",)


def test_a_draft_keeps_a_lookup_unless_it_loses_a_category():
    text = STUDY.replace('column = "age"', 'column = "age"\nlookup = "life.csv"')
    assert text != STUDY
    study = definition_of(text, cells=b"code,category\n1,young\n2,old\n")
    typed = Typed.of(study)
    assert read_tables(typed.tables(study), like=study) == study
    typed.values["indicator-0.name"] = "Age"
    assert read_tables(typed.tables(study), like=study).indicators[0].lookup == study.indicators[0].lookup
    typed.values["indicator-0.categories"] = "young\nmiddle"
    with pytest.raises(StudyFileError, match="must have all categories of the lookup file"):
        read_tables(typed.tables(study), like=study)
    tables = tables_of(study)
    tables["indicator"][0]["lookup"] = "other.csv"
    with pytest.raises(StudyFileError, match="lookup: must be as in the study file"):
        read_tables(tables, like=study)


@pytest.mark.parametrize(
    "odd",
    ['study = {name = "a"}\nindicator = [{slug = "a"}]\n', '[study]\nname = "a"\n[indicator.x]\ny = 1\n'],
)
def test_a_text_that_cannot_be_edited_is_left_alone(odd):
    with pytest.raises(FormTextError):
        edited(odd, add=["daily"])


def test_the_text_of_a_copied_study_says_the_same():
    tables = tables_of(definition_of())
    assert tables_of_text(text_of(tables), filename="") == tables

"""A plan that discloses values: published only with the approval of a second person, on every site."""

import pytest

from mobility.plans.drafts import approve_draft, draft_new_study, submit_draft
from mobility.plans.pages.draft_state import Next, state_of
from mobility.plans.pages.draft_typed import Typed
from mobility.plans.publishing import NotReviewedError, publish_draft
from mobility.plans.studies import NotApprovedError, create_study
from reports.studies.models import Study
from reports.studies.studyfile.redraft import read_tables
from tests.demo_study import parsed_study
from tests.study_text import columns, static, study_text

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
OPEN = 'protect = "sensitive"\nsensitive = ["clinic"]\n'


def definition(*, is_open: bool = True):
    text = study_text(
        static("place", "clinic", "shop", "park") + (OPEN if is_open else ""),
        slug="open",
        name="Open",
        first_day="2024-03-01",
        extract=columns(),
    )
    return parsed_study(text.replace("[plan]\n", "[plan]\ndiscloses_values = true\n") if is_open else text)


def test_no_command_creates_such_a_study(data_dir):
    with pytest.raises(NotApprovedError, match="must be approved by a second person"):
        create_study(definition(), by="command line")
    assert not Study.objects.exists()
    create_study(definition(is_open=False), by="command line")
    assert Study.objects.get().slug == "open"


@pytest.mark.parametrize("asks_second", [True, False])
def test_a_draft_waits_for_a_second_person_even_where_no_one_else_has_to(data_dir, settings, asks_second):
    settings.MOBILITY_SECOND_PERSON = asks_second
    draft = draft_new_study(definition(), by="adam")
    state = state_of(draft, by="adam", is_administrator=True, asks_second=asks_second)
    assert (state.next, state.asks_second) == (Next.SUBMIT, True)
    assert any("must always approve this" in each for each in state.reasons)
    with pytest.raises(NotReviewedError, match="discloses_values"):
        publish_draft(draft, revision=draft.revision, by="adam")
    submit_draft(draft, revision=draft.revision, by="adam")
    with pytest.raises(NotReviewedError):
        publish_draft(draft, revision=draft.revision, by="adam")
    approve_draft(draft, revision=draft.revision, by="eve")
    publish_draft(draft, revision=draft.revision, by="adam")
    assert Study.objects.get().plans.get().review == "approved"


def test_the_form_keeps_what_the_plan_discloses():
    made = definition()
    again = read_tables(Typed.of(made).tables(made), like=made)
    assert (again.plan, again.indicators) == (made.plan, made.indicators)

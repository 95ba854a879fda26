"""A small study whose batches run when the test says so; and two studies with the same things in both."""

from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from mobility.batches import dispatching, running
from mobility.extracts.profiles.typed import TypedProfile
from mobility.models import Batch, DayUndo, FeedToken, TableRequest, VaultStudy
from mobility.plans.drafts import draft_of_study
from mobility.plans.studies import create_study
from mobility.tables.options import NamedPoint, TableOptions
from mobility.uploads.profiles import create_profile
from reports.models import Board, BudgetCap, BudgetPopulation, DayNote, SavedView, Study, StudyGrant
from reports.studies.policies import Role
from tests.mobility.pages.access_rules import RULES
from tests.mobility.pages.small_study import definition_of
from tests.reports import map_factory, slot_factory
from tests.reports import report_factory as factory

OWN, OTHER = "fair", "market"
ZONES_FR = ("Nord-Ouest", "Nord-Est", "Sud-Ouest", "Sud-Est")  # the last one is also that of the answer "NR"
YESTERDAY = timedelta(days=-1)
UNKNOWN: dict[str, Any] = {
    "slug": "nothing", "indicator": "age", "batch": uuid4(), "profile": "operator-x", "feed": 10**6,
    "note": 10**6, "token": 10**6, "link": 10**6, "view": 10**6, "cap": 10**6, "account": 10**6,
    "board": 10**6, "grant": 10**6, "draft": 10**6, "undo": 10**6, "table": 10**6,
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """`of` names the things of the own study and of the other one; `user` owns what a person can own of the
    own study, and has no role yet."""

    studies: dict[str, Study]
    of: dict[str, dict[str, Any]]
    user: User

    def ask(self, client, name, *, which=OWN):
        rule, found = RULES[name], UNKNOWN if which == "nothing" else self.of[which]
        about = {key: found[part] for key, part in rule.about.items()}
        address = reverse(name, kwargs={**rule.kwargs, **about})
        return getattr(client, rule.method)(address + rule.query)

    def somebody(self, role, *, until=None) -> User:
        return give(self.user, role, studies=[self.studies[OWN]], until=until)

    def client(self, role, **changes) -> Client:
        browser = Client()
        browser.force_login(self.somebody(role, **changes))
        return browser


TABLE_OPTIONS = TableOptions(
    id="call", lat="lat", lon="lon", zone="zone", level=Decimal("1.0986"), radius_m=200, grid_m=100,
    dropped=("city",), points=(NamedPoint(name="centre", lat=47.64, lon=6.86),),
).to_json()  # fmt: skip
TABLE_FACTS = {
    "rows": 1200, "ids": 1100, "columns": ["minutes", "note"], "not_checked": ["note"],
    "reordered": False, "zones": 3, "epsilon_per_m": "0.005493", "mean_shift_m": 364, "within_95_m": 864,
}  # fmt: skip


def give(user, role, *, studies, until=None) -> User:
    user.groups.set([Group.objects.get_or_create(name=role)[0]] if role else [])
    user.study_grants.all().delete()
    for study in studies if role else ():
        StudyGrant.objects.create(user=user, study=study, granted_by="test", until=until)
    return user


def make_world() -> World:
    studies = {slug: located_study(slug) for slug in (OWN, OTHER)}
    user, another = (User.objects.create_user(name, password="x") for name in ("somebody", "somebody-else"))
    makers = {OWN: user, OTHER: another}
    return World(studies, {slug: things_of(studies[slug], maker=makers[slug]) for slug in studies}, user)


def things_of(study: Study, *, maker: User) -> dict[str, Any]:
    """One of everything that an address can name, in this study; tokens, links and views are the maker's."""
    slug, row, age = study.slug, VaultStudy.objects.get(slug=study.slug), study.indicators.get(slug="age")
    batch = Batch.objects.create(study=row, state=Batch.State.DONE, filename="day.csv")
    feed = FeedToken.objects.create(study=row, name="nightly", digest=slug, expires_at=timezone.now())
    population = BudgetPopulation.objects.create(name=f"people-{slug}")
    cap = BudgetCap.objects.create(population=population, unit="profile", period="ever", needs_second=True)
    note = DayNote.objects.create(study=study, day=1, kind=DayNote.Kind.EVENT, text="Rain", by="olga")
    view = SavedView.objects.create(owner=maker, name=slug, address=f"/studies/{slug}/")
    board = Board.objects.create(study=study, owner=maker, name="Week")
    target = give(User.objects.create_user(f"target-{slug}"), Role.VIEWER, studies=[study])
    # An account may still have what it may no longer make: rows, not services.
    end, days = timezone.now() + timedelta(days=1), dict.fromkeys(("first_day", "last_day"), study.first_day)
    token = maker.api_tokens.create(name="nightly", digest=f"token-{slug}", expires_at=end)
    link = maker.share_links.create(indicator=age, digest=f"link-{slug}", expires_at=end, **days)
    undo = DayUndo.objects.create(study=row, day=1, voided_days=1, asked_by="olga")
    table = TableRequest.objects.create(
        study=row, file_name="calls.csv", file_sha256="0" * 64, options=TABLE_OPTIONS, facts=TABLE_FACTS,
        asked_by="olga",
    )  # fmt: skip
    return {
        "slug": slug, "indicator": "home", "batch": batch.pk, "feed": feed.pk, "profile": "operator-x",
        "note": note.pk, "token": token.pk, "link": link.pk, "view": view.pk, "cap": cap.pk,
        "board": board.pk, "account": target.pk, "grant": target.study_grants.get().pk,
        "draft": draft_of_study(slug, by="adam").pk, "undo": undo.pk, "table": table.pk,
    }  # fmt: skip


def located_study(slug: str) -> Study:
    age = factory.indicator("age", "young", "old", name_fr="Tranche", categories_fr=("jeunes", "vieux"))
    home = replace(map_factory.HOME, name_fr="Domicile", categories_fr=ZONES_FR)
    definition = factory.definition(
        age, home, factory.joint("age_home", age, home, name="Both", name_fr="Les deux"), slug=slug,
        name=f"The {slug}", name_fr=f"Foire {slug}", epsilon="6",
        area=replace(map_factory.area(), zones_fr=ZONES_FR), location=map_factory.LOCATION,
        slots=replace(slot_factory.DEFINITION, levels=()),
    )  # fmt: skip
    create_study(definition, by="adam")
    study, row = Study.objects.get(slug=slug), VaultStudy.objects.get(slug=slug)
    people = factory.crowd(study, n=300)
    map_factory.publish_located(study, people, places=map_factory.true_places(study, people))
    slot_factory.publish(study, np.full((48, len(ZONES_FR)), 100))
    columns = {"subscriber": "id", "timestamp": "t", "cell": "c"}
    typed = TypedProfile(name="operator-x", kind="events", **columns, max_bad_share=Decimal(0))
    create_profile(typed, study=row, by="olga")
    return study


@pytest.fixture(scope="session")
def definition():
    return definition_of()


@pytest.fixture
def study(data_dir, definition) -> VaultStudy:
    create_study(definition, by="adam")
    return VaultStudy.objects.get(slug="fair")


@pytest.fixture(autouse=True)
def run_batches(monkeypatch):
    asked = []
    monkeypatch.setattr(dispatching, "send", lambda task, *ids, **_: asked.append((task, *ids)))

    def run() -> None:
        while asked:
            task, *ids = asked.pop(0)
            getattr(running, task)(*ids)

    return run


@pytest.fixture
def as_operator(client, operator):
    client.force_login(operator)


@pytest.fixture
def as_administrator(client, administrator, data_dir):
    client.force_login(administrator)


@pytest.fixture(scope="module")
def world(kept):
    return make_world()

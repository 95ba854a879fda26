"""Two studies with the same things in both: what an account has a grant for, and the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from mobility.models import Batch, FeedToken, VaultStudy
from mobility.profiles.typed import TypedProfile
from mobility.services.drafts import draft_of_study
from mobility.services.profiles import create_profile
from mobility.services.studies import create_study
from reports.models import BudgetCap, BudgetPopulation, DayNote, SavedView, Study
from reports.policies import Role
from tests.mobility.views.access_rules import RULES
from tests.reports import map_factory
from tests.reports import report_factory as factory

Person = Callable[..., User]
OWN, OTHER = "fair", "market"
YESTERDAY = timedelta(days=-1)
UNKNOWN: dict[str, Any] = {
    "slug": "nothing", "indicator": "age", "batch": uuid4(), "profile": "operator-x", "feed": 10**6,
    "note": 10**6, "token": 10**6, "link": 10**6, "view": 10**6, "cap": 10**6, "account": 10**6,
    "grant": 10**6, "draft": 10**6,
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """Two studies with the same things in both; `of` names those of the own study and of the other one."""

    of: dict[str, dict[str, Any]]

    def ask(self, client: Client, name: str, *, which: str = OWN) -> HttpResponse:
        rule, found = RULES[name], UNKNOWN if which == "nothing" else self.of[which]
        address = reverse(
            name, kwargs={**rule.kwargs, **{key: found[part] for key, part in rule.about.items()}}
        )
        response: HttpResponse = getattr(client, rule.method)(address + rule.query)
        return response


def somebody(person: Person, role: Role | None, study: Study, **changes: Any) -> User:
    """An account with this role in one study."""
    return person("somebody", *([role] if role else []), studies=[study] if role else [], **changes)


def things_of(slug: str, *, maker: User, person: Person) -> dict[str, Any]:
    """One of everything that an address can name, in this study; tokens, links and views are the maker's."""
    study = Study.objects.get(slug=slug)
    row = VaultStudy.objects.get(slug=slug)
    age = study.indicators.get(slug="age")
    batch = Batch.objects.create(study=row, state=Batch.State.DONE, filename="day.csv")
    feed = FeedToken.objects.create(study=row, name="nightly", digest=slug, expires_at=timezone.now())
    population, _ = BudgetPopulation.objects.get_or_create(name=f"people-{slug}")
    cap = BudgetCap.objects.create(population=population, unit="profile", period="ever", needs_second=True)
    note = DayNote.objects.create(study=study, day=1, kind=DayNote.Kind.EVENT, text="Rain", by="olga")
    view = SavedView.objects.create(owner=maker, name=slug, address=f"/studies/{slug}/")
    target = person(f"target-{slug}", Role.VIEWER, studies=[study])
    # What an account may no longer make it may still have: rows, not services.
    end = timezone.now() + timedelta(days=1)
    token = maker.api_tokens.create(name="nightly", digest=f"token-{slug}", expires_at=end)
    link = maker.share_links.create(
        indicator=age,
        digest=f"link-{slug}",
        expires_at=end,
        first_day=study.first_day,
        last_day=study.first_day,
    )
    return {
        "slug": slug, "indicator": "home", "batch": batch.pk, "feed": feed.pk, "profile": "operator-x",
        "note": note.pk, "token": token.pk, "link": link.pk, "view": view.pk, "cap": cap.pk,
        "account": target.pk, "grant": target.study_grants.get().pk,
        "draft": draft_of_study(slug, by="adam").pk,
    }  # fmt: skip


def located_study(slug: str) -> Study:
    """A study in both zones: with people, reported places and zones on a map."""
    age = factory.indicator("age", "young", "old")
    definition = factory.definition(
        age, map_factory.HOME, slug=slug, name=f"The {slug}", epsilon="6", area=map_factory.area(),
        location=map_factory.LOCATION,
    )  # fmt: skip
    create_study(definition, by="adam")
    study, row = Study.objects.get(slug=slug), VaultStudy.objects.get(slug=slug)
    people = factory.crowd(study, n=300)
    map_factory.publish_located(study, people, places=map_factory.true_places(study, people))
    typed = TypedProfile(
        name="operator-x", kind="events", subscriber="id", timestamp="t", cell="c", max_bad_share=Decimal(0)
    )
    create_profile(typed, study=row, by="olga")
    return study

"""Share links: one report for whoever has the address, for a while, and nothing else."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.forms.models import model_to_dict
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from reports.models import ShareLink, ShareView, Study
from reports.policies import Role
from reports.selectors import Window
from reports.services import access
from tests.reports import report_factory as factory
from tests.reports.views.test_tokens import signed_in, words

pytestmark = pytest.mark.django_db
URL = "/access/shares/"
NEW = f"{URL}new/fair-2024/gender/"
WINDOW = "from=2024-05-31&to=2024-06-01"
FORM = {"note": "the mayor", "days": "30", "password": ""}
PASSWORD = "open-sesame"


@pytest.fixture
def share(fair: Study, analyst: User) -> Callable[..., str]:
    """Address of a new link to the gender of days 2 and 3: `share(password="...")`."""

    def make(**options: Any) -> str:
        given = {"query": WINDOW, "days": 30, "note": "", "password": "", "by": analyst} | options
        _, text = access.create_link(fair.indicators.get(slug="gender"), Window(2, 3), **given)
        return f"/shared/{text}/"

    return make


class TestMaking:
    def test_the_link_is_shown_once_and_opens_without_an_account(self, reader: Client, fair: Study) -> None:
        assert "Gender, Fri 31 May 2024 to Sat 1 Jun 2024" in words(reader.get(f"{NEW}?{WINDOW}"))
        made = reader.post(f"{NEW}?{WINDOW}", FORM)
        found = re.search(r"http://testserver(/shared/[\w-]{43}/)", made.content.decode())
        assert found is not None
        assert "no-store" in made["Cache-Control"]
        link = ShareLink.objects.get()
        assert link.days == (fair.date_of(2), fair.date_of(3))
        assert found[1] not in words(reader.get(URL))
        assert found[1].split("/")[2] not in str(model_to_dict(link))
        page = words(Client().get(found[1]))
        assert "Gender" in page
        assert "The fair, Fri 31 May 2024 to Sat 1 Jun 2024" in page

    def test_a_default_window_does_not_move_later(self, reader: Client, fair: Study) -> None:
        reader.post(NEW, FORM)
        assert ShareLink.objects.get().query == "from=2024-05-30&to=2024-06-02"

    def test_the_way_it_is_shown_goes_along_and_nothing_else(self, reader: Client, fair: Study) -> None:
        reader.post(f"{NEW}?{WINDOW}&order=sorted&next=//evil.example", FORM)
        assert ShareLink.objects.get().query == f"{WINDOW}&order=sorted"

    @pytest.mark.parametrize(
        "given", [{"days": "0"}, {"days": "367"}, {"password": "short"}, {"note": "x" * 81}]
    )
    def test_a_form_that_is_wrong_makes_nothing(
        self, reader: Client, fair: Study, given: dict[str, str]
    ) -> None:
        assert "errorlist" in reader.post(f"{NEW}?{WINDOW}", FORM | given).content.decode()
        assert not ShareLink.objects.exists()

    def test_days_that_the_study_does_not_have(self, reader: Client, fair: Study) -> None:
        response = reader.get(f"{NEW}?from=2030-01-01", follow=True)
        assert response.redirect_chain[0][0] == "/studies/fair-2024/gender/"
        assert "window must lie within" in words(response)

    def test_only_readers_make_one(self, fair: Study, operator: User, stranger: User) -> None:
        for user in (operator, stranger):
            with pytest.raises(access.AccessError):
                access.create_link(
                    fair.indicators.get(slug="gender"),
                    Window(1, 1), query="", days=1, note="", password="", by=user,
                )  # fmt: skip


class TestPublicPage:
    def test_it_shows_the_report_and_leads_nowhere(self, share: Callable[..., str], reader: Client) -> None:
        response = Client().get(share())
        html = response.content.decode()
        assert re.findall(r'href="(/[^"]*)"', html.split("<main")[1]) == []
        assert set(re.findall(r'(?:action|href)="(/(?!static)[^"]*)"', html)) == {"/language/"}
        inside = words(reader.get(f"/studies/fair-2024/gender/?{WINDOW}"))
        shares = re.findall(r"\d+\.\d %", words(response))
        assert len(shares) > 6
        assert set(shares) <= set(re.findall(r"\d+\.\d %", inside))

    def test_search_engines_and_caches_leave_it_alone(self, share: Callable[..., str]) -> None:
        response = Client().get(share())
        assert response["X-Robots-Tag"] == "noindex, nofollow, noarchive"
        assert "no-store" in response["Cache-Control"]
        assert '<meta name="robots" content="noindex, nofollow">' in response.content.decode()

    def test_it_is_shown_as_it_was_when_the_link_was_made(self, share: Callable[..., str]) -> None:
        assert "data-figure" in Client().get(share()).content.decode()
        table = Client().get(share(query=f"{WINDOW}&view=table")).content.decode()
        assert "data-figure" not in table
        assert "The same numbers" in table

    def test_an_account_that_may_not_read_sees_no_more_than_others(
        self, share: Callable[..., str], operator: User
    ) -> None:
        html = signed_in(operator).get(share()).content.decode()
        assert "olga" not in html
        assert "/operator/" not in html

    def test_a_study_without_data_says_so(self, analyst: User) -> None:
        study = factory.create()
        _, text = access.create_link(
            study.indicators.get(slug="gender"),
            Window(1, 1), query="", days=1, note="", password="", by=analyst,
        )  # fmt: skip
        response = Client().get(f"/shared/{text}/")
        assert response.status_code == 200
        assert "nothing to show for these days" in words(response)

    def test_suppressed_days_stay_so(self, share: Callable[..., str], fair: Study) -> None:
        address = share()
        Study.objects.update(small_cell=10_000_000)
        page = words(Client().get(address))
        assert "nothing to show" in page
        assert "%" not in page.split("Method and caveats")[0]


class TestEnding:
    def test_wrong_expired_and_revoked_links_look_the_same(
        self, share: Callable[..., str], analyst: User
    ) -> None:
        expired, revoked, orphaned = share(), share(), share()
        links = list(ShareLink.objects.order_by("pk"))
        ShareLink.objects.filter(pk=links[0].pk).update(expires_at=timezone.now())
        access.revoke(links[1], by=analyst)
        wrong = Client().get("/shared/nothing/")
        assert wrong.status_code == 404
        assert "expired, was revoked, or is not complete" in words(wrong)
        assert wrong["X-Robots-Tag"]
        plain = re.sub(r'value="[^"]*"', "", wrong.content.decode())
        analyst.groups.clear()
        for address in (expired, revoked, orphaned):
            answer = Client().get(address)
            assert answer.status_code == 404
            assert re.sub(r'value="[^"]*"', "", answer.content.decode()) == plain
        assert not ShareView.objects.exists()

    def test_it_ends_with_the_role_of_its_maker(self, share: Callable[..., str], analyst: User) -> None:
        address = share()
        assert Client().get(address).status_code == 200
        analyst.groups.clear()
        assert Client().get(address).status_code == 404

    def test_people_revoke_their_own_and_administrators_all(
        self, share: Callable[..., str], reader: Client, administrator: User, person: Callable[..., User]
    ) -> None:
        address = share(note="the mayor")
        link = ShareLink.objects.get()
        other = signed_in(person("otto", Role.ANALYST))
        assert "the mayor" in words(reader.get(URL))
        assert "the mayor" not in words(other.get(URL))
        assert other.post(f"{URL}{link.pk}/revoke/").status_code == 404
        assert reader.get(f"{URL}{link.pk}/revoke/").status_code == 405
        assert Client().get(address).status_code == 200
        assert "the mayor anna valid" in words(signed_in(administrator).get(URL))
        signed_in(administrator).post(f"{URL}{link.pk}/revoke/")
        assert Client().get(address).status_code == 404
        assert "the mayor revoked" in words(reader.get(URL))


class TestPassword:
    def test_it_is_asked_for_before_anything_is_shown(self, share: Callable[..., str]) -> None:
        address = share(password=PASSWORD)
        client = Client()
        asked = client.get(address)
        assert "has a password" in words(asked)
        assert "Gender" not in asked.content.decode()
        assert not ShareView.objects.exists()
        wrong = client.post(address, {"password": PASSWORD + "x"})
        assert wrong.status_code == 403
        assert "This is not the password" in words(wrong)
        right = client.post(address, {"password": PASSWORD}, follow=True)
        assert "Gender" in words(right)
        assert "Gender" in words(client.get(address))
        assert "Gender" not in words(Client().get(address))

    def test_it_is_kept_hashed_and_opens_one_link_only(self, share: Callable[..., str]) -> None:
        one, other = share(password=PASSWORD), share(password=PASSWORD)
        assert all(PASSWORD not in link.password and link.password for link in ShareLink.objects.all())
        client = Client()
        client.post(one, {"password": PASSWORD})
        cookie = client.cookies["shared_report"]
        assert cookie["httponly"]
        assert (cookie["samesite"], cookie["path"]) == ("Lax", one)
        forged = Client()
        forged.cookies.load({"shared_report": cookie.value})
        assert "has a password" in words(forged.get(other))
        assert "Gender" in words(forged.get(one))

    def test_the_browser_forgets_after_an_hour(
        self, share: Callable[..., str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        address = share(password=PASSWORD)
        client = Client()
        client.post(address, {"password": PASSWORD})
        from django.core import signing

        now = signing.time.time()
        monkeypatch.setattr(signing.time, "time", lambda: now + 3601)
        assert "has a password" in words(client.get(address))

    def test_guessing_comes_to_an_end(self, share: Callable[..., str]) -> None:
        address = share(password=PASSWORD)
        for n in range(10):
            status = Client().post(address, {"password": f"guess-{n}"}).status_code
        assert status == 429
        locked = Client().post(address, {"password": PASSWORD})
        assert locked.status_code == 429
        assert "Too many wrong passwords" in words(locked)
        assert ShareView.objects.count() == 10
        ShareView.objects.update(at=timezone.now() - timedelta(minutes=61))
        assert Client().post(address, {"password": PASSWORD}).status_code == 302

    def test_forged_forms_are_refused(self, share: Callable[..., str]) -> None:
        strict = Client(enforce_csrf_checks=True)
        assert strict.post(share(password=PASSWORD), {"password": PASSWORD}).status_code == 403


class TestReport:
    def test_it_says_what_to_mind_as_the_page_of_readers_does(self, reader: Client, analyst: User) -> None:
        """Days without data, imprecision, how to read the table: whoever has the link has no other page."""
        study = factory.create(slug="few")
        factory.publish(study, factory.absent_on(factory.crowd(study, n=500), day=3))
        _, text = access.create_link(
            study.indicators.get(slug="gender"),
            Window(1, 4),
            query="",
            days=3,
            note="",
            password="",
            by=analyst,
        )
        shown = words(Client().get(f"/shared/{text}/"))
        page = words(reader.get("/studies/few/gender/"))
        for caveat in ("not collected Sat 1 Jun 2024", "Imprecise:", "A report is one protected answer"):
            assert caveat in shown
            assert caveat in page


class TestLog:
    def test_views_are_counted_and_nothing_of_the_visitor_is_kept(
        self, share: Callable[..., str], reader: Client
    ) -> None:
        address = share()
        Client().get(address, REMOTE_ADDR="203.0.113.9", headers={"User-Agent": "curious"})
        Client().get(address)
        assert "2 times" in words(reader.get(URL))
        assert {field.name for field in ShareView._meta.concrete_fields} == {"id", "link", "at", "is_granted"}

    def test_old_views_are_forgotten_and_links_stay(
        self, share: Callable[..., str], reader: Client, settings: Settings
    ) -> None:
        settings.MOBILITY_SHARE_LOG_DAYS = 30
        for days in (0, 29, 31, 400):
            Client().get(share())
            newest = ShareView.objects.order_by("-pk")[0]
            ShareView.objects.filter(pk=newest.pk).update(at=timezone.now() - timedelta(days=days))
        ShareLink.objects.update(expires_at=timezone.now() - timedelta(days=500))
        assert access.forget_old_views() == 2
        assert (ShareView.objects.count(), ShareLink.objects.count()) == (2, 4)
        assert access.forget_old_views() == 0
        assert "for 30 days" in words(reader.get(URL))

    def test_wrong_passwords_show_in_the_list(self, share: Callable[..., str], reader: Client) -> None:
        Client().post(share(password=PASSWORD), {"password": "x"})
        assert "0 times 1 wrong password" in words(reader.get(URL))

    def test_rows_cost_no_queries_of_their_own(
        self, share: Callable[..., str], administrator: User, django_assert_max_num_queries: Any
    ) -> None:
        for _ in range(12):
            share()
        client = signed_in(administrator)
        with django_assert_max_num_queries(9):
            client.get(URL)

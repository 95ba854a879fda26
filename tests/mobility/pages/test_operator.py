"""Pages of operators: studies, the page of a batch, and closing and undoing days."""

import re
from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from mobility.batches import outcomes, requests, texts
from mobility.batches.publication import handover
from mobility.batches.publication.analyst_server import HandoverRefusedError, HandoverWaitsError
from mobility.extracts.rows.counts import IGNORED, REJECTED
from mobility.models import Batch, DayUndo, Handover, VaultDay, VaultPublication, VaultStudy
from mobility.plans.studies import create_study
from mobility.vault.keystore import keystore
from reports.ledger.actions import record
from reports.ledger.models import LedgerEntry, LedgerKind
from reports.studies.policies import Role
from tests.mobility.extracts.rows.night_study import night_study
from tests.mobility.pages.pages import AS_OPERATOR, check_markup, html_of, lacks, page, said, says, text_of
from tests.mobility.pages.small_study import GOOD, STUDY, STUDY_URL, definition_of, extract, put, rows
from tests.mobility.slot_study import with_slots
from tests.reports.page_texts import signed_in

pytestmark = AS_OPERATOR
SERVER = "https://reports.example.org"
NOISY = STUDY.replace("epsilon = 1.0\n", "epsilon = 1.0\npresence_epsilon = 1.0\npresence_days = 2\n")


@pytest.fixture
def uploaded(client, study, run_batches) -> Batch:
    batch = put(client)
    run_batches()
    return batch


def url_of(batch):
    return reverse("operator:batch", args=[batch.pk])


def show(client, batch):
    return page(client, url_of(batch))


def fragment(client, batch):
    return html_of(client, url_of(batch), **{"HX-Request": "true"})


def test_a_file_that_failed_says_what_was_expected_and_leads_to_a_new_profile(client, study, uploaded):
    link = f'href="{reverse("operator:new_profile", args=["fair"])}"'
    assert link not in html_of(client, url_of(uploaded))
    Batch.objects.update(state=Batch.State.FAILED, failure="no column", rows_read=0)
    assert link in html_of(client, url_of(uploaded))
    expected = "Columns that the profile default expects"
    says(show(client, uploaded), expected, "Subscriber msisdn", "Event time time")
    entry_of(client, uploaded, "Other reasons")
    Batch.objects.update(rows_read=9)  # its columns are there
    says(show(client, uploaded), "Time format ISO 8601", "Values of Age young, old", "Copy this profile")
    Batch.objects.update(profile="gone")  # with the attributes that a later plan does not ask for
    assert link not in html_of(client, url_of(uploaded))


def test_in_french_a_space_stands_before_a_colon(client, study, uploaded):
    shown = html_of(client, STUDY_URL, **{"accept-language": "fr"})
    assert "default\u00a0: " in shown and "default:" not in shown


def entry_of(client, batch, title):
    """Check that the page of a failed batch links to the entry of its reason in the served help."""
    found = re.search(r'href="(/help/runbook/[^"#]+)#([^"]+)"', html_of(client, url_of(batch)))
    address, anchor = found.groups()
    assert f'<h4 id="{anchor}">{title}' in html_of(client, address)


@override("en")  # requests change the language
def test_a_file_with_other_columns_shows_them_next_to_those_expected(client, study, run_batches):
    batch = put(client, "Numéro;Horodatage;Sexe\n1;2;3\n".encode())
    run_batches()
    says(
        show(client, batch),
        "Columns that the profile default expects",
        "Columns in the file Numéro Horodatage Sexe",
    )
    entry_of(client, batch, "Columns differ")
    french = html_of(client, url_of(batch), **{"Accept-Language": "fr"})
    says(french, "colonnes trouvées, au nombre de 3", "«\u00a0Numéro\u00a0», «\u00a0Horodatage\u00a0»")
    lacks(french, "'Num", "&#x27;Num")


@override("en")
def test_a_file_refused_for_its_values_offers_a_copy_of_its_profile(client, study, run_batches):
    batch = put(client, extract(rows("a", "b", "c").replace("2024-05-0", "never")))
    run_batches()
    link = f"{reverse('operator:new_profile', args=['fair'])}?copy=default"
    says(
        html_of(client, url_of(batch)),
        link,
        "100% of rows were rejected",
        "reason: Unreadable timestamp in column “time”",
    )
    french = html_of(client, url_of(batch), **{"Accept-Language": "fr"})
    entry_of(client, batch, "Rows rejected")
    says(french, "100\u202f% des lignes", "50\u202f%)", "Horodatage illisible")
    lacks(french, "bad_timestamp dans")
    says(html_of(client, link), "Copy of the profile default", 'value="default-2"')


def test_a_day_of_a_file_that_is_being_merged_is_said_to_be_processed(client, study, uploaded):
    VaultDay.objects.update(pending=True)
    assert "being processed" not in page(client, STUDY_URL)
    Batch.objects.update(state=Batch.State.MERGING)
    shown = page(client, STUDY_URL)
    says(shown, "Wed 1 May 2024 being processed")
    lacks(shown, "unpublished rows")


def test_a_file_in_whose_dates_day_and_month_are_swapped_is_not_done(client, study, run_batches):
    for is_check, hint in ((True, "This was only a check"), (False, "The reports have not changed.")):
        batch = put(client, extract(rows("a", "b", "c").replace("2024-05-0", "2024-01-0")), is_check=is_check)
        run_batches()
        shown = show(client, batch)
        says(
            shown, "No rows counted No rows were counted, because the dates in the file are outside",
            "The file covers Mon 1 Jan 2024, and the study covers Wed 1 May 2024 to Fri 3 May 2024",
            hint, "Columns that the profile default expects", "Copy this profile",
        )  # fmt: skip
        lacks(shown, "Done", "Checked", "value is unusual", "Choose the file again to publish it")
        lacks(html_of(client, url_of(batch)), "message--success")
        says(page(client, STUDY_URL), "day.csv No rows counted")
        batch.refresh_from_db()
        assert (batch.rows_accepted, batch.subscriber_days) == (0, 0)
        Batch.objects.all().delete()


def test_a_check_is_never_said_to_be_merged_or_published(client, study, uploaded):
    running = Batch.State.MERGING, Batch.State.PUBLISHING
    for is_check, words in (
        (False, "Merging into the study Publishing"),
        (True, "Counting answers Finishing the check"),
    ):
        titles = []
        for state in running:
            Batch.objects.filter(pk=uploaded.pk).update(state=state, validate_only=is_check)
            titles.append(re.search(r'id="state-title">(.*?)</h2>', html_of(client, url_of(uploaded)))[1])
            assert ("only a check" in show(client, uploaded)) == is_check
        assert text_of(" ".join(titles)).strip() == words
    for is_check, words in ((False, "has not been merged yet"), (True, "Whether or not you cancel it")):
        Batch.objects.filter(pk=uploaded.pk).update(state=Batch.State.QUEUED, validate_only=is_check)
        says(show(client, uploaded), words)


class TestStudies:
    def test_a_study_says_what_to_send_and_is_listed_with_its_batches(self, client, study, run_batches):
        assert "none yet" in page(client, "/operator/")
        shown = page(client, STUDY_URL)
        says(
            shown,
            "with this profile: default . Its columns, in any order: msisdn, time, age",
            "manage.py ingest fair FILE",
        )
        assert shown.count("May 2024 no data") == 3
        put(client, more=True)
        put(client, extract(rows("d", "e", day=2)), filename="second.csv")
        run_batches()
        shown = page(client, STUDY_URL)
        days = re.findall(r"\w{3} \d May 2024 (open|published|closed|no data)", shown.split("Batches")[0])
        assert days == ["open", "published", "no data"]
        assert "second.csv Done 2 May default 4 4 olga" in shown
        listed = page(client, "/operator/")
        says(listed, "Fair &amp; market", "1 published 1 open of 3 days", "second.csv Done")
        assert "for the days that these rows cover" in show(client, Batch.objects.get(filename="day.csv"))

    def test_a_check_looks_like_no_publication(self, client, study, run_batches):
        put(client, is_check=True)
        run_batches()
        says(page(client, STUDY_URL), "day.csv Checked check only 1 May default")
        says(show(client, Batch.objects.get()), "Profile default Days 1 May")

    def test_batches_add_no_queries_nor_scripts(self, client, uploaded, study, django_assert_max_num_queries):
        for _ in range(30):
            Batch.objects.create(study=study, state=Batch.State.DONE, filename="x.csv")
        for address, most in ((STUDY_URL, 13), ("/operator/", 4), (url_of(uploaded), 12)):
            with django_assert_max_num_queries(most, using="vault"):
                check_markup(html_of(client, address))


class TestBatch:
    def test_it_asks_for_itself_until_the_end_and_says_what_holds_it_up(self, client, study, run_batches):
        batch = put(client)
        waiting = fragment(client, batch)
        assert f'hx-get="{url_of(batch)}" hx-trigger="every 1s"' in waiting and "<html" not in waiting
        missing = "check that MOBILITY_STAGING_DIR is mounted"
        for state in ("reading", "merging", "queued"):
            row = {"state": state, "waits_since": timezone.now(), "waits_for": missing}
            Batch.objects.filter(pk=batch.pk).update(**row)
            says(show(client, batch), "The worker tries again every minute, and no data is lost", missing)
        run_batches()
        assert "hx-" not in fragment(client, batch)

    def test_a_published_batch_shows_its_numbers_and_the_way_on(self, client, study, run_batches, person):
        batch = put(client, extract(rows("a", "b", "c"), "x,never,old\n", "y,2024-05-01T10:00:00,ancient\n",
                                    "z,2024-06-01T10:00:00,old\n"))  # fmt: skip
        run_batches()
        says(
            show(client, batch), "Done Published. The reports now include the data from this file.",
            "Detected format CSV, commas, UTF-8 Time zone Europe/Paris",
            "Unreadable timestamp bad_timestamp 1 8",
            "Rows read 9 Rows accepted 6 Subscriber-days 3 New subscribers 3", "categories unknown_value 1 9",
            "Event outside the study period outside_period 1", "Upload another file",
        )  # fmt: skip
        lacks(show(client, batch), "never", "ancient", "Open the report")
        client.force_login(person("both", Role.OPERATOR, Role.ANALYST))
        assert "Open the report" in show(client, batch)

    def test_a_small_batch_waits_and_says_how_many_of_how_many(self, client, study, run_batches):
        alone = put(client, extract(rows("a")))
        run_batches()
        waits = "the pending changes cover 1 subscriber, but a publication must cover at least 2"
        published = "Published. The reports now include the data from this file."
        assert (waits in show(client, alone), "Published" in show(client, alone)) == (True, False)
        put(client, extract(rows("b", day=2)), filename="next.csv")
        run_batches()
        assert published in show(client, alone)
        later = put(client, extract(rows("d", day=2)), filename="later.csv")
        run_batches()
        assert (published in show(client, alone), waits in show(client, later)) == (True, True)

    def test_what_was_known_brings_nothing_new(self, client, uploaded, run_batches):
        same, known = put(client), put(client, GOOD + rows("a").encode())
        run_batches()
        html = html_of(client, url_of(same))
        assert "This file has already been processed" in text_of(html) and url_of(uploaded) in html
        assert "The file contains no new data. The reports have not changed." in show(client, known)
        assert "The reports now include the data from this file" not in show(client, known)

    def test_progress_is_of_bytes_then_rows_then_shards(self, client, study):
        batch = put(client)
        steps = [
            ({"state": "receiving", "bytes_received": 40, "bytes_total": 160}, "25", "Receiving the file"),
            ({"state": "reading", "bytes_read": 80, "rows_read": 1234}, "50", "Rows read 1,234"),
            ({"state": "merging", "shards_done": 3, "shards": [0, 1, 2, 3]}, "75", "Merging into the study"),
        ]
        for fields, percent, words in steps:
            Batch.objects.filter(pk=batch.pk).update(**fields)
            html = fragment(client, batch)
            assert f'value="{percent}"' in html and words in text_of(html)

    def test_a_queue_that_nobody_serves_a_batch_ahead_and_a_silent_worker_are_noticed(self, client, study):
        batch, ahead, minute = put(client), put(client, extract(rows("d"))), timedelta(minutes=1)

        def shown(**fields):
            Batch.objects.filter(pk=batch.pk).update(**fields)
            return show(client, batch)

        assert "No worker has started this batch yet" not in shown()
        assert "No worker has started this batch yet" in shown(created_at=timezone.now() - minute)
        VaultStudy.objects.update(active_batch=ahead)
        assert "Another batch for this study is being processed" in shown()
        assert "Another batch for this study is being processed" not in show(client, ahead)
        assert "has not responded" not in shown(state="reading", alive_until=timezone.now() + minute)
        assert "has not responded" in shown(alive_until=timezone.now() - minute)


def undo_url(name: str) -> str:
    return reverse(name, args=["fair", DayUndo.objects.latest("pk").pk])


class TestDays:
    def change(self, client, name, **data):
        return said(client.post(f"/operator/fair/{name}/", data, follow=True))

    def test_closing_is_a_batch_and_days_become_final(self, client, uploaded, run_batches):
        assert "Close days through 2 May" in self.change(client, "close-days", day=2, confirm="on")
        run_batches()
        batch = Batch.objects.get(kind=Batch.Kind.CLOSE_DAYS)
        assert batch.created_by == "olga"
        shown = show(client, batch)
        assert "The figures for these days are final." in shown and "Rows read" not in shown
        assert list(VaultDay.objects.values_list("day", "state")) == [(1, "closed"), (2, "closed")]
        self.change(client, "close-days", day=3, confirm="on")
        run_batches()
        says(page(client, STUDY_URL), "All days are closed.", "No uploads can be undone at the moment.")
        assert "presence noise" not in page(client, STUDY_URL)  # other studies do not speak of it
        assert "Nothing was changed" in self.change(client, "void-day", day=1, confirm="on")

    def test_another_person_sees_what_undoing_costs_and_approves(self, client, person, uploaded, run_batches):
        rises = "For all of a person&#x27;s values (profile), epsilon rises from 1.5 to 2."
        says(page(client, STUDY_URL), rises, "approval from a second person: an administrator or a")
        says(page(client, STUDY_URL), "Wed 1 May 2024: default (1 file)")
        asked = self.change(client, "void-day", day=1, confirm="on")
        says(
            asked, "The uploads for Wed 1 May 2024 have not been undone yet.", rises,
            "waiting for approval by a second person",
        )  # fmt: skip
        withdraw = undo_url("operator:withdraw_undo")
        assert "The request was withdrawn" in said(client.post(withdraw, follow=True))
        self.change(client, "void-day", day=1, confirm="on")
        officer, both = signed_in(person("petra", Role.PRIVACY_OFFICER)), Client()
        for address in ("/administrator/", "/administrator/fair/"):
            cannot = "the account cannot approve requests that the same person made or edited"
            says(page(officer, address), "Requested by olga at", rises, cannot)
            says(page(officer, address), "Files to be removed: default (1 file).")
        olga = User.objects.get(username="olga")
        olga.groups.add(Group.objects.get_or_create(name=Role.ADMINISTRATOR)[0])
        both.force_login(olga)
        own = page(both, "/administrator/fair/")
        assert "olga made this request, so another person must approve it" in own
        assert "Approve and undo this day's uploads" not in own
        url, sent = undo_url("administrator:decide_undo"), {"answer": "approve", "voided_days": "1"}
        for who, given, words in (
            (both, sent, "olga made this request, so another person"),
            (officer, sent | {"voided_days": "x"}, "Read the request again before you decide"),
            (officer, sent, "You approved the request. The data uploaded for that day is being removed."),
            (officer, {"answer": "refuse"}, "petra has already approved or refused this request"),
        ):
            assert words in said(who.post(url, given, follow=True))
        run_batches()
        assert VaultDay.objects.count() == 0

    def test_undoing_is_confirmed_and_frees_the_day(self, client, study, uploaded, run_batches, settings):
        for name in ("close-days", "void-day"):
            assert client.get(f"/operator/fair/{name}/").status_code == 405
            for data in ({"day": 1}, {"confirm": "on"}, *({"day": day, "confirm": "on"} for day in (9, "x"))):
                nothing = "Nothing was changed. Choose a day and tick the confirmation box."
                assert nothing in self.change(client, name, **data)
        assert Batch.objects.count() == 1
        settings.MOBILITY_SECOND_PERSON = False
        says(page(client, STUDY_URL), "epsilon rises from 1.5 to 2.")
        lacks(page(client, STUDY_URL), "need approval from")
        assert "Undo 1 May" in self.change(client, "void-day", day=1, confirm="on")
        run_batches()
        batch = Batch.objects.get(kind=Batch.Kind.EXTRACT)
        assert "no longer include the data from this file for them: Wed 1 May 2024." in show(client, batch)
        assert VaultDay.objects.count() == 0
        says(page(client, STUDY_URL), "Done undone: 1 May")
        entry = LedgerEntry.objects.get(kind=LedgerKind.BATCH_ENDED, facts__kind="void_day")
        assert entry.facts["day"] == "2024-05-01"
        assert "removed from the vault" in show(client, Batch.objects.get(kind=Batch.Kind.VOID_DAY))
        keystore().destroy(study.key_id)
        assert "destroyed" in self.change(client, "close-days", day=1, confirm="on")

    def test_a_day_that_is_being_published_cannot_be_undone_and_others_say_if_they_are(
        self, client, uploaded
    ):
        option = "Wed 1 May 2024: default (1 file)"
        says(page(client, STUDY_URL), option)
        VaultDay.objects.filter(day=1).update(state=VaultDay.State.OPEN, pending=True)
        says(page(client, STUDY_URL), option.replace(":", " (not published):"))
        Batch.objects.filter(kind=Batch.Kind.EXTRACT).update(state=Batch.State.PUBLISHING)
        lacks(page(client, STUDY_URL), "(not published):", option)

    def test_under_presence_noise_nothing_crosses_before_days_are_closed(self, client, data_dir, run_batches):
        assert "You do not have access to any study yet" in page(client, "/operator/")
        create_study(definition_of(NOISY), by="adam")
        batch = put(client)
        run_batches()
        shown, study, listed = show(client, batch), page(client, STUDY_URL), page(client, "/operator/")
        says(shown, "the reports do not include them yet", "after you close that day and all earlier days")
        assert "Open the report" not in shown
        says(study, "waiting to be closed", "cannot see a day until you have closed it and all earlier days")
        says(
            study,
            "all days up to and including the chosen date are published",
            "Presence noise is added first",
        )
        assert "waiting to be closed" in listed and " published" not in listed
        closed = requests.request_close_days(VaultStudy.objects.get(), through=2, by="olga")
        run_batches()
        assert "The figures for these days are final. They have been published with noise." in show(
            client, closed
        )
        assert "waiting to be closed" not in page(client, STUDY_URL)

    def test_slots_are_closed_through_a_time_and_say_so(self, client, data_dir, run_batches):
        definition = with_slots(night_study(first_day="2024-05-01", days=2))
        create_study(replace(definition, slug="fair"), by="adam")
        shown = page(client, STUDY_URL)
        says(
            shown, "Close time slots", "No time slot is closed yet.",
            "is published with noise. Slots without data are also published.",
        )  # fmt: skip
        assert 'value="2024-05-03T00:00"' in html_of(client, STUDY_URL)
        for data in ({"through": "2024-05-01T18:00"}, {"through": "noon", "confirm": "on"}):
            assert "Choose a time and tick the confirmation box." in self.change(
                client, "close-slots", **data
            )
        asked = self.change(client, "close-slots", through="2024-05-01T18:10", confirm="on")
        assert "Close time slots through Wed 1 May 2024 18:00" in asked
        run_batches()
        batch = Batch.objects.get(kind=Batch.Kind.CLOSE_SLOTS)
        assert batch.created_by == "olga"
        assert "are final. They have been published with noise." in show(client, batch)
        assert "All time slots up to Wed 1 May 2024 18:00 are closed." in page(client, STUDY_URL)
        self.change(client, "close-days", day=2, confirm="on")
        run_batches()
        assert "There are currently no time slots to close." in page(client, STUDY_URL)


def test_every_outcome_of_a_row_and_every_state_has_words():
    assert set(texts.ROW_REASONS) == {*REJECTED, *IGNORED}
    assert set(texts.BATCH_STATES) == set(Batch.State.values)
    assert set(texts.DAY_STATES) == set(VaultDay.State.values)


def test_sizes_are_in_megabytes():
    for done, total, words in (
        (3_300_000, 11_600_000, "3.3 of 11.6 MB"), (12, 12, "0.001 MB"), (0, 5_000, "0.0 of 0.005 MB"),
        (7_000_000, None, "7.0 MB"),
    ):  # fmt: skip
        assert texts.size_of(done, total) == words


class TestWaiting:  # while an analyst server that runs apart does not have everything
    @pytest.fixture(autouse=True)
    def batch(self, study, settings) -> Batch:
        settings.HANDS_OVER, settings.MOBILITY_ANALYST_URL = True, SERVER
        VaultPublication.objects.create(study=study, number=1, subscribers=200, delta=b"")
        problem = "the analyst server cannot be reached"
        Handover.objects.create(study=study, tried_at=timezone.now(), problem=problem, plan_hash="x")
        return Batch.objects.create(study=study, state=Batch.State.DONE, filename="day.csv", reports=5)

    def test_pages_say_what_waits_and_why(self, client, batch, administrator):
        text = show(client, batch)
        assert "The analyst server has not received the totals yet" in text
        assert "The reports now include the data from this file" not in text
        assert not outcomes.is_published(batch)
        assert "the analyst server does not have all totals yet" in " ".join(outcomes.notes_for_reader(batch))
        pages = [page(client, "/operator/fair/")]
        client.force_login(administrator)
        for text in (*pages, page(client, "/administrator/fair/")):
            assert f"1 publication of this study has not reached {SERVER} yet." in text
            says(text, "The analyst server cannot be reached.", "No data is lost")
        Handover.objects.update(problem="")  # it was tried, and what was published since was not
        assert "the handover is about to start" in " ".join(outcomes.notes_for_reader(batch))

    def test_nothing_is_said_once_all_is_there(self, client, batch):
        VaultPublication.objects.update(handed_over_at=timezone.now())
        Handover.objects.update(problem="")
        text = show(client, batch)
        lacks(page(client, "/operator/fair/") + text, SERVER)
        assert "The reports now include the data from this file" in text
        assert outcomes.is_published(batch)

    @pytest.mark.parametrize(("error", "asked"), [(HandoverWaitsError, 1), (HandoverRefusedError, 2)])
    def test_a_refusal_stops_no_other_study_and_silence_all(self, study, monkeypatch, error, asked):
        study.pk, study.slug, study.key_id = None, "another", "another"
        study.save()
        deliver = Mock(side_effect=error("it is so"))
        monkeypatch.setattr(handover, "deliver", deliver)
        handover.deliver_what_waits()
        assert deliver.call_count == asked

    def test_a_study_is_tried_again_until_the_server_knows_all_of_it(self, client, study):
        def waits():
            return study in handover._waiting()

        Handover.objects.update(problem="", plan_hash=study.plan_hash)
        assert waits()  # with a publication that is not there
        VaultPublication.objects.update(handed_over_at=timezone.now())
        assert not waits()
        for is_short_of in ({"problem": "it failed"}, {"plan_hash": "of another plan"}):
            Handover.objects.update(**is_short_of)
            assert waits(), is_short_of
            Handover.objects.update(problem="", plan_hash=study.plan_hash)
        record(LedgerKind.BATCH_ENDED, study=study.slug)
        Handover.objects.update(tried_at=timezone.now())
        assert waits()  # its receipt may have been on its way while the last try began
        Handover.objects.update(tried_at=timezone.now() + handover.SEEN_WITHIN)
        assert not waits()
        VaultStudy.objects.update(certificate={"erased_at": None})
        assert waits()  # its end is not known there
        Handover.objects.update(is_closed=True)
        assert not waits()
        Handover.objects.all().delete()
        assert waits()  # no one told the server of it
        VaultPublication.objects.all().delete()
        unknown = f"{SERVER} has not received the current state of this study yet."
        assert unknown in page(client, "/operator/fair/")

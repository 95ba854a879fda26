"""Files that a worker makes: who waits for what, how long one is kept, and when it is given up."""

import json
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from itertools import product
from unittest.mock import Mock
from zipfile import ZipFile

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from reports import tasks
from reports.accounts.actions import create_account
from reports.accounts.grants import give_grant
from reports.estimates import notes
from reports.exports import actions as files
from reports.exports import file_views as views
from reports.exports import recipes
from reports.exports.formats.choosing import FORMATS
from reports.exports.recipes import Recipe
from reports.exports.records import to_json
from reports.exports.selection import Scope
from reports.models import ExportFile, Study
from reports.privacy.composition import composition_facts
from reports.studies.policies import Role
from tests.reports import report_factory as factory
from tests.reports.page_texts import signed_in

pytestmark = pytest.mark.django_db
PICTURE = "/studies/fair-2024/age/export.svg?from=2024-05-30&to=2024-05-31"
OTHER = "/studies/fair-2024/bundle.zip"
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PART = {"HX-Request": "true"}
State = ExportFile.State


@pytest.fixture
def sent(monkeypatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(files, "_send", lambda row: found.append(row.pk))
    monkeypatch.setattr(views, "WAIT_S", {"browser": 0.0, "script": 0.0})
    return found


@pytest.fixture(autouse=True)
def _drawings_are_quick(monkeypatch) -> None:
    for ending in ("svg", "png", "pdf"):
        found = FORMATS[Scope.WINDOW][ending]
        write = lambda selection: b"<svg" + to_json(selection.reports).encode()  # noqa: E731
        monkeypatch.setitem(FORMATS[Scope.WINDOW], ending, replace(found, write=write))


@pytest.fixture
def second(fair: Study) -> Client:
    account, _ = create_account("second", roles=[Role.ANALYST])
    give_grant(account, study=None)
    return signed_in(account)


def ago(seconds: float):
    return timezone.now() - timedelta(seconds=seconds)


class TestWhatIsMadeByAWorker:
    @pytest.mark.parametrize(
        ("most", "tables"), [(25, ["xlsx"]), (250, ["csv", "json", "sdmx.csv", "parquet"])]
    )
    def test_only_small_tables_are_made_at_once(self, most, tables):
        for n_categories in (most, most + 1):
            names = [f"c{n}" for n in range(n_categories)]
            # of 20 windows, four are of the days 1 to 2
            study = factory.create(factory.indicator("age", *names), slug=f"of-{n_categories}", days=20)
            for scope, ending in product(Scope, [*tables, "svg", "png", "pdf", "geojson", "geoparquet"]):
                window = {"first_day": 1, "last_day": 2} if scope == Scope.WINDOW else {}
                indicator = "" if scope == Scope.STUDY else "age"
                recipe = Recipe(scope=scope, ending=ending, indicator=indicator, **window)
                is_small = {Scope.DAYS: n_categories == most, Scope.WINDOW: True, Scope.STUDY: False}[scope]
                assert recipe.is_made_at_once(study) == (ending in tables and is_small), (scope, ending)

    def test_a_worker_makes_large_movements_bundles_and_places(self, reader, fair, sent, monkeypatch):
        assert not Recipe(scope="bundle", ending="zip").is_made_at_once(fair)
        assert not Recipe(scope="zones", ending="csv", first_day=1, last_day=1).is_made_at_once(fair)
        address = "/studies/fair-2024/age/movement.xlsx?show=arrivals"
        at_once = reader.get(address)
        assert (at_once.status_code, len(sent)) == (200, 0)
        monkeypatch.setitem(recipes.AT_ONCE_ROWS, "xlsx", 11)  # four days of three categories are twelve rows
        assert reader.get(address).status_code == 302
        tasks.make_export(sent[0])
        assert reader.get(address).getvalue() == at_once.content

    def test_a_web_server_makes_nothing_large_and_head_starts_nothing(self, reader, fair, sent, monkeypatch):
        monkeypatch.setattr(views, "write", None)
        assert reader.head(PICTURE).status_code == 200
        assert not ExportFile.objects.exists()
        page = reader.get(PICTURE, headers=BROWSER)
        assert (page.status_code, len(sent)) == (202, 1)
        for words in ('hx-get="/studies/fair-2024/age/export.svg?', "hx-trigger"):
            assert words in page.content.decode()

    def test_the_page_tells_how_far_it_is_and_then_fetches_the_file(self, reader, fair, sent):
        def part():
            return reader.get(PICTURE, headers=BROWSER | PART).content.decode()

        reader.get(PICTURE, headers=BROWSER)
        assert "The file is waiting for a worker" in part()
        ExportFile.objects.update(state=State.RUNNING, stage=42)
        assert ("Creating the file: 42% done." in part(), 'value="42"' in part()) == (True, True)
        ExportFile.objects.update(state=State.WAITING)
        tasks.make_export(sent[0])
        assert ("is ready" in part(), "data-download" in part()) == (True, True)
        assert "hx-trigger" not in part()  # and asks no more
        answer = reader.get(PICTURE, headers=BROWSER)
        assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")
        assert b"<svg" in answer.getvalue()
        assert len(sent) == 1

    def test_a_large_file_is_sent_in_pieces_and_is_the_same(self, reader, fair, monkeypatch):
        whole = reader.get(PICTURE).getvalue()
        monkeypatch.setattr(views, "AT_ONCE_BYTES", 10)
        answer = reader.get(PICTURE)
        assert answer.streaming
        assert (int(answer["Content-Length"]), answer.getvalue()) == (len(whole), whole)
        row = ExportFile().set_content(bytes(3_000_000))
        assert max(map(len, row.pieces())) <= 256 << 10
        assert b"".join(row.pieces()) == bytes(3_000_000)


class TestScripts:
    def test_a_script_waits_and_gets_its_file_from_the_same_address(self, reader, fair, sent, monkeypatch):
        monkeypatch.setattr(views, "WAIT_S", {"script": 60.0, "browser": 0.0})
        monkeypatch.setattr(views.time, "sleep", lambda _: tasks.make_export(sent[0]))
        answer = reader.get(PICTURE)
        assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")

    def test_later_it_is_sent_to_the_same_address_and_then_told_when_to_come(self, reader, fair, sent):
        address, turns = PICTURE, 0
        while (answer := reader.get(address)).status_code == 302:
            address, turns = answer["Location"], turns + 1
        assert (turns, answer.status_code, answer["Retry-After"]) == (views.MAX_TURNS, 503, "5")
        tasks.make_export(sent[0])
        assert reader.get(address).status_code == 200  # the turn is no part of what is asked for
        assert len(sent) == 1

    def test_few_requests_of_a_process_wait_and_others_come_again(self, reader, fair, sent, monkeypatch):
        monkeypatch.setattr(views, "WAIT_S", {"script": 60.0, "browser": 60.0})
        monkeypatch.setattr(views.time, "sleep", None)  # waiting would fail
        for _ in range(views.PLACES):
            views._places.acquire()
        try:
            answer = reader.get(PICTURE)
            assert (answer.status_code, answer["Retry-After"]) == (503, "5")
        finally:
            for _ in range(views.PLACES):
                views._places.release()


class TestKept:
    def test_a_file_is_kept_for_all_until_the_tally_changes(self, reader, second, fair, sent):
        reader.get(PICTURE)
        tasks.make_export(sent[0])
        before = reader.get(PICTURE).getvalue()
        assert second.get(PICTURE).getvalue() == before
        assert len(sent) == 1
        factory.publish(fair, factory.crowd(fair, n=500, seed=9))
        assert reader.get(PICTURE).status_code == 302
        assert len(sent) == 2
        tasks.make_export(sent[1])
        assert reader.get(PICTURE).getvalue() != before
        assert ExportFile.objects.count() == 1

    def test_what_a_note_or_a_language_changes_is_another_file(self, reader, fair, sent):
        reader.get(PICTURE)
        tasks.make_export(sent[0])
        reader.get(PICTURE, headers={"Accept-Language": "fr"})
        assert len(sent) == 2
        tasks.make_export(sent[1])
        notes.note_day(fair, day=fair.first_day, kind="outage", text="mast", by="anna")
        assert reader.get(PICTURE).status_code == 302

    def test_what_another_study_of_its_people_reveals_is_another_bundle(self, reader, fair, sent):

        def composition(answer):
            with ZipFile(BytesIO(answer.getvalue())) as bundle:
                return json.loads(bundle.read("statement.json"))["composition"]

        reader.get(OTHER)
        tasks.make_export(sent[0])
        before = composition(reader.get(OTHER))
        factory.create(slug="next-fair")
        assert reader.get(OTHER).status_code == 302
        tasks.make_export(sent[1])
        after = composition(reader.get(OTHER))
        assert after == composition_facts(fair, with_names=False) != before
        assert {each["study"] for each in after["studies"]} == {"fair-2024", None}

    def test_the_newest_of_a_study_are_kept(self, reader, fair, monkeypatch):
        monkeypatch.setattr(files, "KEPT_PER_STUDY", 2)
        for ending in ("svg", "png", "pdf", "geojson"):
            reader.get(PICTURE.replace("svg", ending))
        reader.get(OTHER)
        assert set(ExportFile.objects.values_list("recipe__ending", flat=True)) == {"pdf", "geojson", "zip"}


class TestOneAtATime:
    def test_an_account_has_one_at_a_time_and_the_next_follows(self, reader, second, fair, sent):
        reader.get(PICTURE, headers=BROWSER)
        assert "Another of your files is being created" in reader.get(OTHER, headers=BROWSER).content.decode()
        assert len(sent) == 1
        second.get(OTHER, headers=BROWSER)  # another account does not wait
        assert len(sent) == 2
        tasks.make_export(sent[0])
        reader.get(PICTURE.replace("svg", "png"), headers=BROWSER | PART)
        assert len(sent) == 3

    def test_a_file_that_nobody_asks_for_any_more_gives_way_to_the_next(self, reader, fair, sent):
        reader.get(PICTURE, headers=BROWSER)
        ExportFile.objects.update(asked_at=ago(11))
        reader.get(OTHER, headers=BROWSER)
        assert [row.recipe["ending"] for row in ExportFile.objects.all()] == ["zip"]
        tasks.make_export(sent[0])  # the first one is gone: its worker stops
        assert ExportFile.objects.get().state == State.WAITING

    def test_the_next_waits_until_the_worker_of_the_last_has_stopped(self, reader, fair, sent, monkeypatch):

        def ask_for_another_and_write(*_, tick):
            ExportFile.objects.update(asked_at=ago(11))
            assert reader.get(OTHER).status_code == 302
            assert len(sent) == 1
            tick(50)

        monkeypatch.setattr(files, "write", ask_for_another_and_write)
        reader.get(PICTURE)
        tasks.make_export(sent[0])
        assert not ExportFile.objects.exists()
        reader.get(OTHER)
        assert len(sent) == 2

    def test_who_asks_again_or_comes_back_to_a_file_that_was_to_give_way_keeps_it(self, reader, fair, sent):
        reader.get(PICTURE)
        ExportFile.objects.update(state=State.RUNNING, asked_at=ago(11))
        for address in (OTHER, PICTURE):
            assert reader.get(address).status_code == 302
        assert ExportFile.objects.get().asked_at > ago(5)
        ExportFile.objects.update(state=State.WAITING, asked_at=ago(80))
        reader.get(PICTURE, headers=BROWSER | PART)
        assert ExportFile.objects.get().asked_at > ago(5)


class TestGivenUp:
    def test_nobody_waits_any_more_so_that_a_worker_does_not_begin(self, reader, fair, sent, monkeypatch):
        monkeypatch.setattr(recipes, "_selected", None)
        reader.get(PICTURE)
        ExportFile.objects.update(asked_at=ago(91))
        tasks.make_export(sent[0])
        assert not ExportFile.objects.exists()

    def test_the_page_was_closed_so_that_a_worker_stops_in_the_middle(self, reader, fair, sent, monkeypatch):
        written, each = [], FORMATS[Scope.STUDY]["sdmx.csv"].write

        def close_page_and_write(selection):
            ExportFile.objects.update(asked_at=ago(91))
            written.append(each(selection))

        monkeypatch.setattr(files, "_TOLD_S", 0.0)
        monkeypatch.setitem(recipes.AT_ONCE_ROWS, "sdmx.csv", 0)
        object.__setattr__(found := FORMATS[Scope.STUDY]["sdmx.csv"], "write", close_page_and_write)
        try:
            reader.get("/studies/fair-2024/export.sdmx.csv")
            tasks.make_export(sent[0])
        finally:
            object.__setattr__(found, "write", each)
        assert not written
        assert not ExportFile.objects.exists()

    def test_a_lost_message_is_sent_again_and_a_dead_worker_replaced(self, reader, fair, sent):
        reader.get(PICTURE)
        ExportFile.objects.update(changed_at=ago(31))
        reader.get(PICTURE)
        assert len(sent) == 2
        ExportFile.objects.update(state=State.RUNNING, changed_at=ago(60))
        tasks.make_export(sent[0])  # twice the same message: one worker is at it
        assert ExportFile.objects.get().state == State.RUNNING
        ExportFile.objects.update(changed_at=ago(121))
        reader.get(PICTURE)
        tasks.make_export(sent[-1])
        assert reader.get(PICTURE).status_code == 200


class TestFailures:
    def test_why_there_is_no_file_is_told_in_words_for_a_while_and_then_tried_again(self, reader, fair, sent):
        Study.objects.update(small_cell=10**6)
        reader.get(OTHER)
        tasks.make_export(sent[0])
        answer = reader.get(OTHER)
        assert (answer.status_code, answer["Content-Type"]) == (400, "text/plain; charset=utf-8")
        for again in (answer, reader.get(OTHER, headers=BROWSER)):
            assert "Its small-cell rule suppresses date ranges" in again.content.decode()
        assert len(sent) == 1
        ExportFile.objects.update(changed_at=ago(31))
        reader.get(OTHER)
        assert len(sent) == 2

    def test_a_database_that_goes_away_for_a_moment_costs_no_file(self, reader, fair, sent, monkeypatch):
        reader.get(PICTURE)
        with monkeypatch.context() as patch:
            patch.setattr(recipes, "_selected", Mock(side_effect=OperationalError))
            with pytest.raises(OperationalError):
                files.make_file(sent[0])
        files.make_file(sent[0])  # another message about it
        assert ExportFile.objects.get().state == State.RUNNING
        files.make_file(sent[0], is_again=True)
        assert ExportFile.objects.get().state == State.DONE

    def test_a_file_that_cannot_be_made_is_not_waited_for(self, reader, fair, sent, monkeypatch):
        reader.get(PICTURE)
        monkeypatch.setattr(recipes, "_selected", None)
        with pytest.raises(TypeError):
            tasks.make_export(sent[0])
        answer = reader.get(PICTURE)
        assert (answer.status_code, answer["Retry-After"]) == (503, "5")
        assert "could not be created" in reader.get(PICTURE, headers=BROWSER | PART).content.decode()
        assert len(sent) == 1


def test_progress_only_grows_with_what_is_written(fair):
    told: list[int] = []
    made = recipes.write(fair, Recipe(scope=Scope.STUDY, ending="csv"), tick=told.append)
    assert made.content.startswith(b"study,")
    assert told == sorted(told)
    assert set(told) <= set(range(100))

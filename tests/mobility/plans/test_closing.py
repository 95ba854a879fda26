"""A study is closed once and for all: only its reports stay, and the certificate counts what was."""

from datetime import timedelta
from typing import Any

import jsonschema
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections
from django.utils import timezone

from ldp.estimation.tallies import Delta
from mobility import models
from mobility.base.errors import StagingUnavailableError, StudyClosedError
from mobility.batches import staging
from mobility.batches.pages.progress import batch_progress
from mobility.batches.queries import study_head
from mobility.demo import files as demo
from mobility.demo import loading
from mobility.demo import removal as demo_removal
from mobility.demo.accounts import ensure_demo_accounts
from mobility.demo.removal import NoDemoError, remove_demo
from mobility.extracts.profiles.definition import OPT_OUT
from mobility.models import Batch, DayState, FeedToken, PresenceShard, VaultPublication, VaultStudy
from mobility.plans import closing
from mobility.plans.closing import Leave, StudyNotClosedError, close_study
from mobility.plans.studies import StudyVaultError, create_study
from mobility.uploads import actions as uploads
from mobility.uploads import admission
from mobility.uploads.feeds import actions as feeds
from mobility.vault import compaction
from mobility.vault.keystore import Keystore, keystore
from mobility.vault.studies import open_study
from reports.models import PlanIndicator, SavedView, Study, Tally
from reports.sharing.actions import save_view
from tests.mobility.batches.killing import ON_POSTGRES, Killed, dies, spread, statements_of
from tests.mobility.batches.test_publishing import with_more
from tests.mobility.batches.test_subscribers import list_of, opted_out
from tests.mobility.commands import printed
from tests.mobility.pipeline import SCHEMA, SMALL, Pipeline, fresh, raising, some_people

# Real transactions: old pages are given back outside of any, and a death inside one rolls back nothing else.
pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
OF_STUDY = (PresenceShard, DayState, models.AnswerShard, models.OptOutShard, VaultPublication)
OF_BATCHES = (models.OutboxDelta, models.Chunk, models.ShardRun, models.Applied)
State = Batch.State


def close(pipeline: Pipeline, **leave: bool) -> dict[str, Any]:
    certificate = close_study(pipeline.study, by="olga", leave=Leave(**leave))
    jsonschema.Draft202012Validator(SCHEMA).validate(certificate)
    return certificate


def rows_left(pipeline: Pipeline) -> dict[str, int]:
    study = pipeline.study
    counts = {each.__name__: each.objects.filter(study=study).count() for each in OF_STUDY}
    counts |= {each.__name__: each.objects.filter(batch__study=study).count() for each in OF_BATCHES}
    return {name: n for name, n in counts.items() if n}


@pytest.fixture
def filled(make_pipeline, few, tmp_path):
    pipeline = make_pipeline(**SMALL)
    both = tmp_path / "both.csv"
    both.write_text(few[0].read_text() + few[1].read_text().partition("\n")[2])
    pipeline.upload(both)
    pipeline.upload(few[2], more_to_come=True)
    tomorrow = timezone.now() + timedelta(days=1)
    FeedToken.objects.create(study=pipeline.study, name="night", digest="0" * 64, expires_at=tomorrow)
    return pipeline


@pytest.mark.database
def test_nothing_stays_but_the_reports(filled):
    before, held = filled.tallies(), rows_left(filled)
    presence = PresenceShard.objects.filter(study=filled.study)
    people = sum(len(open_study(filled.study).unseal_presence(row)) for row in presence)
    assert {"PresenceShard", "DayState", "VaultPublication", "Chunk", "ShardRun", "Applied"} <= held.keys()
    certificate = close(filled, drop_unpublished=True)
    assert (rows_left(filled), staging.staged_batches(), filled.tallies()) == ({}, set(), before)
    assert not keystore().exists(filled.study.key_id)
    assert not Batch.objects.exclude(content_hash="").exists()
    assert not FeedToken.objects.get().is_valid
    assert people == sum(Batch.objects.values_list("subscribers_new", flat=True)) > 0
    counted = {"presence_shards": held["PresenceShard"], "day_states": held["DayState"], "pseudonyms": people}
    nothing = dict.fromkeys(("damaged_shards", "staged_uploads", "waiting_deltas"), 0)
    erased = certificate["erased"]
    assert (erased, held["VaultPublication"]) == (erased | counted | nothing | {"publications": 1}, 1)
    told = {"batches": {"done": 2}, "revoked": {"feed_tokens": 1}, "closed_by": "olga"}
    dropped = {"waiting_subscribers": 0, "unpublished_days": ["2017-06-02"]}
    assert certificate == certificate | told | {"dropped": dropped}
    assert [key["id"] for key in certificate["keys"]] == [filled.study.key_id]
    study = Study.objects.get()
    assert (study.state, study.closed_at) == (Study.State.CLOSED, VaultStudy.objects.get().closed_at)
    assert close_study(filled.study, by="someone else", leave=Leave()) == certificate
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    lacking = [{name: certificate[name] for name in certificate if name != key} for key in SCHEMA["required"]]
    for wrong in (*lacking, {**certificate, "erased_at": None}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, SCHEMA)


def test_day_state_dies_with_its_day_and_opt_outs_with_the_study(filled, few, tmp_path):
    days = DayState.objects.values_list("day", flat=True)
    assert set(days.all()) == {1, 2, 3}
    filled.close_days(through=1)
    assert set(days.all()) == {2, 3}
    (left,) = filled.upload(some_people(few[0], tmp_path), profile="opt-out")
    assert left.subscriber_days < 0
    filled.upload(few[0])
    assert set(days.all()) == {2, 3}
    held = models.OptOutShard.objects.count()
    assert close(filled, drop_unpublished=True)["erased"]["opt_out_shards"] == held > 0
    assert rows_left(filled) == {}


def test_closed_study_takes_nothing_and_keeps_its_slug(filled, few, definition):
    stale = VaultStudy.objects.get()
    close(filled, drop_unpublished=True)
    day = timezone.now().date().isoformat()
    for study in (filled.study, stale):  # a server may hold a row from before
        filled.study = study
        token = {"name": "nightly", "days": 1, "by": "olga"}
        for change, given in (
            (filled.receive, {"path": few[0]}), (filled.close_days, {"through": 1}),
            (filled.void_day, {"day": 1}), (feeds.create_token, {"study": study} | token),
        ):  # fmt: skip
            with pytest.raises(StudyClosedError, match=f"the study was closed on {day}"):
                change(**given)
    with pytest.raises(CommandError, match="was closed on"):
        call_command("close_days", filled.study.slug, through="2017-06-01")
    assert Batch.objects.count() == 2
    PlanIndicator.objects.all().delete()
    Study.objects.all().delete()  # the main database is restored from before the study
    with pytest.raises(StudyVaultError, match="a study with this name was closed on"):
        create_study(definition, by="test")
    assert not keystore().exists(filled.study.key_id)


def test_upload_that_begins_while_the_study_is_closed_leaves_no_key(filled, few, monkeypatch):
    monkeypatch.setattr(admission, "check_size", lambda *_, **__: close(filled, drop_unpublished=True))
    with pytest.raises(StudyClosedError):
        uploads.begin(filled.study, filename=few[0].name, by="olga")
    assert (keystore().names(prefix=""), Batch.objects.latest("created_at").state) == ([], State.FAILED)


def test_batch_that_slipped_in_while_the_study_was_closed_ends(filled, few):
    slipped = filled.receive(few[0])
    Batch.objects.filter(pk=slipped.pk).update(state=State.DONE)
    close(filled, drop_unpublished=True)
    Batch.objects.filter(pk=slipped.pk).update(state=State.QUEUED)
    assert filled.finished(slipped).state == State.FAILED
    assert "the study was closed on" in slipped.failure


class TestStandsAgainstIt:
    def test_a_batch_that_has_not_ended(self, filled, few):
        waiting = filled.receive(few[0], more_to_come=True)
        held = rows_left(filled)
        with pytest.raises(StudyNotClosedError, match=r"have not ended \(1 queued\).*--cancel-batches"):
            close(filled, drop_unpublished=True)
        assert rows_left(filled) == held
        assert open_study(filled.study)
        certificate = close(filled, drop_unpublished=True, cancel_batches=True)
        assert fresh(waiting).state == State.CANCELLED
        assert certificate["batches"] == {"cancelled": 1, "done": 2}
        assert (staging.staged_batches(), keystore().names(prefix="")) == (set(), [])

    def another_batch(self, pipeline, path):
        pipeline.receive(path, more_to_come=True)

    def a_publication(self, pipeline, path):
        sent = {"number": 99, "subscribers": 10, "voided_days": 0, "delta": b""}
        VaultPublication.objects.create(study=pipeline.study, **sent)

    def changes_that_have_become_enough(self, pipeline, path):
        batch = Batch.objects.create(study=pipeline.study, state=State.DONE)
        number, study = VaultStudy.objects.get().publication_number, open_study(pipeline.study)
        delta = study.seal_delta(Delta.zero(study.plan), batch=batch.pk, shard=0)
        models.OutboxDelta.objects.create(batch=batch, shard=0, number=number, subscribers=10, delta=delta)

    CHANGED = "changed while it was being closed: close it again"

    LAST = [(another_batch, "1 queued"), (a_publication, CHANGED), (changes_that_have_become_enough, CHANGED)]

    @pytest.mark.parametrize(("comes", "reason"), LAST)
    def test_what_comes_at_the_last_moment(self, filled, few, monkeypatch, comes, reason):
        real = closing.publish

        def meanwhile(study):
            waiting = real(study)
            comes(self, filled, few[0])
            return waiting

        monkeypatch.setattr(closing, "publish", meanwhile)
        with pytest.raises(StudyNotClosedError, match=reason):
            close(filled, drop_unpublished=True)
        assert open_study(filled.study)

    def test_a_batch_that_is_being_merged_which_is_never_cancelled(self, filled):
        Batch.objects.filter(more_to_come=True).update(state=State.MERGING)
        reason = r"\(1 merging\): wait until they end; if one waits for"
        with pytest.raises(StudyNotClosedError, match=reason):
            close(filled, drop_unpublished=True, cancel_batches=True)
        assert open_study(filled.study)

    def test_a_day_that_was_never_published(self, filled):
        with pytest.raises(StudyNotClosedError, match=r"never published \(2017-06-02\).*close_days"):
            close(filled)
        filled.close_days(through=3)
        assert close(filled)["dropped"]["unpublished_days"] == []
        assert filled.visitors(3, 3) > 0

    def test_an_analyst_zone_that_does_not_answer(self, filled):
        held, away = rows_left(filled), raising(OperationalError)
        refused = pytest.raises(StudyNotClosedError, match="databases")
        with connections["default"].execute_wrapper(away), refused:
            close(filled, drop_unpublished=True)
        assert rows_left(filled) == held
        assert open_study(filled.study)

    def test_a_key_that_is_not_there_until_it_is_called_lost(self, filled):
        key_id = filled.study.key_id
        (keystore().folder / f"{key_id}.key").unlink()
        with pytest.raises(StudyNotClosedError, match="--key-is-lost"):
            close(filled, drop_unpublished=True)
        assert rows_left(filled)
        told = close(filled, drop_unpublished=True, lost_key=True)
        assert rows_left(filled) == {}
        assert (told["key_was_lost"], told["keys"], told["erased"]["pseudonyms"]) == (True, [], None)
        assert "lost_key" in [row["name"] for row in told["not_reached"]]
        # That it was lost is remembered.
        assert (keystore().is_destroyed(key_id), keystore().destroyed_at(key_id)) == (True, None)


@pytest.mark.parametrize("may_cross", [True, False])
def test_what_may_cross_crosses_first_and_the_rest_is_dropped_and_counted(make_pipeline, few, may_cross):
    pipeline = make_pipeline(min_publication=1000)
    (batch,) = pipeline.upload(few[0])
    assert pipeline.visitors(1, 1) == 0 < batch.waiting_subscribers
    if may_cross:
        row = VaultStudy.objects.get()
        row.definition["min_publication"] = 10
        row.save()
    certificate = close(pipeline)
    assert certificate["dropped"]["waiting_subscribers"] == (0 if may_cross else batch.waiting_subscribers)
    assert (certificate["erased"]["waiting_deltas"] == 0) == may_cross
    assert pipeline.visitors(1, 1) == (batch.subscriber_days if may_cross else 0)


@pytest.mark.parametrize(("least", "remain"), [(100, True), (2, False)])
def test_opt_outs_that_are_too_few_at_the_end_remain_in_the_totals_and_the_certificate_says_so(
    make_pipeline, few, tmp_path, least, remain
):
    pipeline = make_pipeline(min_publication=10)
    pipeline.upload(few[0])
    before = pipeline.visitors(1, 1)
    (batch,) = pipeline.upload(list_of(opted_out(few[0], n=8), tmp_path), profile=OPT_OUT)
    n = batch.waiting_subscribers
    assert 2 < n < 10
    VaultStudy.objects.update(definition={**pipeline.study.definition, "min_publication": least})
    certificate = close(pipeline)
    assert pipeline.visitors(1, 1) == before - (0 if remain else n)
    assert certificate["opted_out_in_totals"] == certificate["dropped"]["waiting_subscribers"] == n * remain
    words = f"{n} subscribers who opted out remain in the published totals"
    told = [row["text"][: len(words)] for row in certificate["kept"] if row["name"] == "opted_out"]
    assert told == [words] * remain
    progress = batch_progress(fresh(batch), study_head(batch.study_id))
    assert (progress.is_published, "remain in the reports" in progress.hint) == (not remain, remain)


@pytest.mark.parametrize("others", [0, 1])
def test_opt_outs_wait_if_reports_before_those_people_came_would_differ_by_one(
    make_pipeline, few, tmp_path, others
):
    pipeline = make_pipeline(min_publication=10)
    pipeline.upload(few[0], with_more(few[0], tmp_path / "more", n=14))
    people = opted_out(few[0], n=14)
    leave = {f"4{who}" for who in people} | set(sorted(people)[:others])
    (batch,) = pipeline.upload(list_of(leave, tmp_path), profile=OPT_OUT)
    n = others * -batch.subscribers_new
    assert (batch.waiting_subscribers, close(pipeline)["opted_out_in_totals"]) == (n, n)
    sentence = batch_progress(fresh(batch), study_head(batch.study_id)).sentence
    assert ("by fewer than 10 subscribers" in sentence) == (n > 10) == bool(others)


def test_certificate_counts_those_who_opted_out_after_their_only_day_was_undone(make_pipeline, few, tmp_path):
    pipeline = make_pipeline(min_publication=1)
    pipeline.upload(few[0])
    VaultStudy.objects.update(definition={**pipeline.study.definition, "min_publication": 1000})
    published = pipeline.void_day(1).waiting_subscribers
    pipeline.upload(list_of(opted_out(few[0], n=8), tmp_path), profile=OPT_OUT)
    certificate = close(pipeline)
    assert certificate["dropped"]["waiting_subscribers"] == pipeline.visitors(1, 1) == published
    assert 2 < certificate["opted_out_in_totals"] <= 8


def test_opt_outs_that_an_earlier_release_left_uncounted_keep_no_study_open(make_pipeline, few, tmp_path):
    pipeline = make_pipeline(min_publication=10)
    pipeline.upload(few[0])
    pipeline.upload(list_of(opted_out(few[0], n=8), tmp_path), profile=OPT_OUT)
    models.OutboxDelta.objects.update(subscribers=3, opted_out=12)
    assert close(pipeline)["opted_out_in_totals"] == 12


def test_key_that_was_destroyed_before_was_not_lost(filled):
    key_id = filled.study.key_id
    keystore().destroy(key_id)
    keys = [{"id": key_id, "destroyed_at": keystore().destroyed_at(key_id)}]
    told = close(filled, came_back=True)
    assert (told["key_was_lost"], told["keys"], told["erased"]["pseudonyms"]) == (False, keys, None)
    assert "lost_key" not in [row["name"] for row in told["not_reached"]]


def test_shard_that_cannot_be_read_is_erased_and_not_counted(filled):
    damaged = PresenceShard.objects.first()
    people = len(open_study(filled.study).unseal_presence(damaged))
    total = sum(Batch.objects.values_list("subscribers_new", flat=True))
    PresenceShard.objects.filter(pk=damaged.pk).update(blob=b"0" * 100)
    erased = close(filled, drop_unpublished=True)["erased"]
    assert (erased["damaged_shards"], erased["pseudonyms"], rows_left(filled)) == (1, total - people, {})


@pytest.mark.parametrize(
    "n_deaths",
    [pytest.param(4, marks=[pytest.mark.database, ON_POSTGRES]), pytest.param(None, marks=pytest.mark.long)],
)
def test_death_at_any_statement_ends_in_the_same_certificate(make_pipeline, few, n_deaths):
    def prepared(slug: str) -> Pipeline:
        pipeline = make_pipeline(slug=slug, **SMALL)
        pipeline.upload(few[0])
        pipeline.receive(few[1])
        return pipeline

    def same(certificate: dict[str, Any]) -> dict[str, Any]:
        erased = {**certificate["erased"], "staged_uploads": None}
        keys = [key["id"].partition("-")[0] for key in certificate["keys"]][:1]
        times = {"closed_at": None, "erased_at": None}
        return {**certificate, **times, "study": None, "keys": keys, "erased": erased}

    # The first closing of a process may take a statement more than others: something is cached.
    close(prepared("before"), cancel_batches=True)
    undisturbed = prepared("undisturbed")
    n_statements = statements_of(lambda: close(undisturbed, cancel_batches=True))
    expected = same(close(undisturbed))
    assert n_statements > 30
    for n in spread(n_deaths or n_statements, over=n_statements):
        pipeline = prepared(f"killed-at-{n}")
        assert dies(lambda pipeline=pipeline: close(pipeline, cancel_batches=True), at=n)
        found = same(close(pipeline, cancel_batches=True)), rows_left(pipeline)
        assert found == (expected, {}), f"killed at statement {n}"
        assert not keystore().exists(pipeline.study.key_id)
        assert Study.objects.get(slug=pipeline.study.slug).state == Study.State.CLOSED


@pytest.mark.parametrize(
    ("owner", "name"), [(Keystore, "destroy"), (closing, "compact"), (closing, "mark_closed")]
)
def test_death_before_and_after_each_step_outside_of_the_vault(filled, monkeypatch, owner, name):
    real, held = getattr(owner, name), rows_left(filled)

    def dying(*args, **options):
        if is_late:
            real(*args, **options)
        raise Killed

    for is_late in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dying)
            with pytest.raises(Killed):
                close(filled, drop_unpublished=True)
        has_key = keystore().exists(filled.study.key_id)
        assert has_key == (owner is Keystore and not is_late)
        assert not has_key or rows_left(filled) == held
        with pytest.raises(StudyClosedError):
            open_study(VaultStudy.objects.get())
    assert (close(filled)["erased"]["publications"], rows_left(filled)) == (1, {})


def test_staging_that_does_not_answer_is_no_erasure(filled, few, monkeypatch):
    left = filled.receive(few[0], more_to_come=True)
    Batch.objects.filter(pk=left.pk).update(state=State.FAILED, failure="its worker died while ending it")
    with monkeypatch.context() as patch:
        patch.setattr(staging, "discard", lambda _: None)
        with pytest.raises(StagingUnavailableError, match="close the study again"):
            close(filled, drop_unpublished=True)
    assert not keystore().names(prefix="")
    certificate = close(filled)
    assert certificate["erased"]["staged_uploads"] == 1
    assert {key["id"] for key in certificate["keys"]} == {filled.study.key_id, left.key_id}
    assert not staging.staged_batches()


@pytest.mark.database
def test_old_pages_are_given_back(filled, monkeypatch):
    is_postgres, left = connection.vendor == "postgresql", []
    how = "SELECT pg_relation_size('mobility_presenceshard')" if is_postgres else "PRAGMA freelist_count"

    def looking(**_):
        with connections["vault"].cursor() as cursor:
            cursor.execute(how)
            left.append(cursor.fetchone())

    monkeypatch.setattr(closing, "mark_closed", looking)
    close(filled, drop_unpublished=True)
    assert left == [(0,)]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's log")
def test_log_that_stays_in_use_is_named(monkeypatch):
    monkeypatch.setattr(compaction, "PATIENCE_S", 0.0)
    monkeypatch.setattr(compaction, "_log_is_in_use", lambda _: True)
    with pytest.raises(compaction.VaultBusyError, match="try again"):
        compaction.compact(PresenceShard)


WRITES = "SELECT pg_current_xact_id()"
# Readers of the main database see nothing of the vault.
OTHERS = [("vault", "SELECT count(*) FROM pg_class"), ("vault", WRITES), ("default", WRITES)]


@pytest.mark.database
@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's old snapshots")
@pytest.mark.parametrize(("alias", "what"), OTHERS)
def test_transaction_of_before_is_waited_for(monkeypatch, alias, what):
    other = connections[alias].copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute(what)
            with connections["vault"].cursor() as ours:
                ours.execute(WRITES)  # as a deletion would
            with monkeypatch.context() as hurried, pytest.raises(compaction.VaultBusyError):
                hurried.setattr(compaction, "PATIENCE_S", 0.3)
                compaction.compact(VaultStudy)
            cursor.execute("ROLLBACK")
        compaction.compact(VaultStudy)  # patiently: other tests write in the same server
    finally:
        other.close()


def test_command_prints_the_certificate_or_says_why_not(filled):
    with pytest.raises(CommandError, match="never published"):
        call_command("close_study", filled.study.slug)
    with pytest.raises(CommandError, match="no study 'nope'"):
        call_command("close_study", "nope")
    told = printed("close_study", filled.study.slug, "--drop-unpublished")
    assert (told, told["closed_by"]) == (VaultStudy.objects.get().certificate, "command line")


# Removing the demo erases its study by closing it: nothing of it stays in either zone, and nothing else goes.

DEMO_PAGE = "/administrator/demo/remove/"


@pytest.fixture
def two(make_pipeline, few):
    pair = make_pipeline(**SMALL), make_pipeline(**SMALL, slug="real-2017")
    Study.objects.filter(slug="fimu-2017").update(is_demo=True)
    for pipeline in pair:
        pipeline.upload(few[0])
    (demo.folder() / "extract").mkdir(parents=True)
    (demo.folder() / "extract.json").write_text("{}")
    ensure_demo_accounts(demo.accounts_file())
    return pair


class TestDemo:
    @pytest.mark.database
    def test_nothing_of_the_demo_stays_and_nothing_else_goes(self, two):
        gone, stays = two
        before, held = stays.tallies(), rows_left(stays)
        assert PresenceShard.objects.filter(study=gone.study).exists()
        remove_demo(by="adam")
        assert Study.objects.get().slug == VaultStudy.objects.get().slug == "real-2017"
        assert (rows_left(stays), Batch.objects.exclude(study=stays.study).exists()) == (held, False)
        assert [keystore().exists(each.study.key_id) for each in two] == [False, True]
        assert [path for path in (demo.folder(), demo.accounts_file()) if path.exists()] == []
        assert (stays.tallies(), staging.staged_batches()) == (before, set())
        with pytest.raises(NoDemoError):
            remove_demo(by="adam")

    def test_kept_views_and_links_of_the_demo_go_and_those_of_others_stay(self, two, analyst, administrator):
        for person in (analyst, administrator):
            for name, address in (
                ("demo", "/studies/fimu-2017/gender/?from=2017-05-31"),
                ("start", "/studies/fimu-2017/"),
                ("real", "/studies/real-2017/gender/"),
                ("compared", "/studies/real-2017/gender/compare/?kind=studies&with=fimu-2017/gender"),
            ):
                save_view(name=name, address=address, by=person)
        remove_demo(by="adam")
        for person in (analyst, administrator):
            assert [view.name for view in SavedView.objects.filter(owner=person)] == ["compared", "real"]
        assert "analyst" in User.objects.values_list("username", flat=True)  # the account, not its file

    def test_interrupted_removal_is_done_again(self, two, monkeypatch):
        with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="power cut"):
            patch.setattr(demo_removal, "compact", raising(RuntimeError("power cut")))
            remove_demo(by="adam")
        assert Study.objects.filter(slug="fimu-2017").exists()
        remove_demo(by="adam")
        assert not Study.objects.filter(slug="fimu-2017").exists()

    def test_study_of_a_person_under_that_name_is_no_demo(self, two):
        Study.objects.update(is_demo=False, created_by="demo")
        with pytest.raises(NoDemoError, match="there is no demo"):
            remove_demo(by="adam")
        with pytest.raises(loading.DemoError, match="not the demo"):
            loading.ensure_study()  # its people would mix with real ones
        assert Study.objects.count() == 2
        assert Tally.objects.exists()

    def test_one_click_and_a_confirmation_of_an_administrator(
        self, two, administrator, analyst, operator, client
    ):
        assert client.post(DEMO_PAGE).status_code == 302
        for person in (analyst, operator):
            client.force_login(person)
            assert client.post(DEMO_PAGE).status_code == 404
            assert DEMO_PAGE not in client.get("/").content.decode()
        client.force_login(administrator)
        home = client.get("/").content.decode()
        assert (DEMO_PAGE in home, home.count("demo: fictional people")) == (True, 1)
        assert "No other study is affected" in client.get(DEMO_PAGE).content.decode()
        assert Study.objects.count() == 2  # neither others nor looking remove anything
        page = client.post(DEMO_PAGE, follow=True).content.decode()
        assert ("The demo has been removed" in page, DEMO_PAGE in page) == (True, False)
        assert (Study.objects.count(), client.get(DEMO_PAGE).status_code) == (1, 404)

"""Promise of `min_publication`: each change of the totals is of at least this many subscribers."""

from dataclasses import replace

import pytest

from mobility.batches.outcomes import notes_for_reader
from mobility.batches.pages.progress import batch_progress
from mobility.batches.queries import study_head
from mobility.extracts.profiles.definition import OPT_OUT, SUBSCRIBERS
from mobility.models import OutboxDelta, PresenceShard, VaultPublication, VaultStudy
from mobility.vault.studies import open_study
from tests.mobility.batches.test_subscribers import (
    EVENT_COLUMNS,
    assert_gone,
    clean,
    list_of,
    opted_out,
    subscribers,
    without_people,
)
from tests.mobility.pipeline import Pipeline, only, some_people

__all__ = ["clean", "subscribers"]
pytestmark = pytest.mark.django_db(databases=["default", "vault"])


def counted(pipeline: Pipeline) -> dict[int, tuple[object, ...]]:
    """Return the contribution of the vault's state to the totals, by pseudonym."""
    study, found = open_study(VaultStudy.objects.get(pk=pipeline.study.pk)), {}
    for row in PresenceShard.objects.filter(study=pipeline.study):
        state = study.unseal_presence(row)
        answers = zip(state.static.tolist(), state.daily.tolist(), strict=True)
        facts = zip(state.pseudonym.tolist(), state.days.tolist(), answers, strict=True)
        found |= {name: (days, told) for name, days, told in facts if days}
    return found


def with_more(path, folder, *, n: int):
    """Return the same rows, and those of `n` people more, who do as others do."""
    folder.mkdir()
    text, people = path.read_text(), opted_out(path, n=n)
    more = [f"4{row}" for row in text.splitlines(keepends=True) if row.split(",", 1)[0] in people]
    (folder / path.name).write_text("".join([text, *more]))
    return folder / path.name


@pytest.mark.parametrize(("early", "late", "crosses"), [(0, 1, "yn"), (0, 150, "yy"), (1, 0, "nn")])
def test_no_reports_before_and_after_an_undo_differ_by_one_person(
    make_pipeline, extract, clean, tmp_path, early, late, crosses
):
    """Someone more comes on the first day before the second is undone, or in the file that is sent again."""
    pipeline = make_pipeline()
    pipeline.upload(*clean)
    if early:
        pipeline.upload(with_more(clean[0], tmp_path / "early", n=early))
    undone = pipeline.void_day(2)
    (again,) = pipeline.upload(with_more(clean[1], tmp_path / "again", n=late))
    assert ["n" if batch.waiting_subscribers else "y" for batch in (undone, again)] == list(crosses)
    if crosses == "yn":
        said = batch_progress(again, study_head(again.study_id)).sentence
        assert "would differ from an earlier report by fewer than 100 subscribers" in said
        assert any("but fewer than min_publication would differ" in note for note in notes_for_reader(again))
    (batch,) = pipeline.upload(without_people(extract[2], tmp_path / "next"))
    assert not batch.waiting_subscribers  # anyone who came that day is in no reports before


# min_publication, and steps: what is done, and to which file or day, or with how many people.
WAITING = "day0 void1 day0 void1 day1 day0 void1 half0 day0 void2 leave30 day1 void2 close7"
HISTORIES = {
    "days that wait": (36, WAITING),
    "several undos": (12, "day0 day1 void1 void2 half0 day1 day0 void2 half1 void1 day1 day0 half0 close7"),
    "opt-outs": (12, "half0 leave10 day0 leave20 void1 leave50 half0 day1 leave60 day0 close7"),
    "late answers": (12, "day0 answers void1 day0 leave30 day1 void2 void1 day1 day0 close7"),
    "open days": (12, "open0 day1 leave10 void2 close1 half1 day1 leave45 void2 close7"),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_each_publication_covers_so_many(make_pipeline, definition, clean, subscribers, tmp_path, history):
    """Count person by person from the state of the vault, independent of the pipeline."""
    least, steps = HISTORIES[history]
    extract = definition.extract
    if history == "late answers":
        extract = replace(extract, attributes="subscribers")
        clean = [without_people(path, tmp_path / "bare", columns=EVENT_COLUMNS) for path in clean]
    pipeline = make_pipeline(min_publication=least, extract=extract)
    clean = [only(path, lambda who: who.endswith("3"), tmp_path) for path in clean]
    reports: list[dict[int, tuple[object, ...]]] = [{}]
    for step in steps.split():
        crossed = VaultPublication.objects.count()
        batch = take(pipeline, step, clean, subscribers, tmp_path)
        assert batch.failure == ""
        now = counted(pipeline)
        *others, differing = [sum(now.get(who) != was.get(who) for who in now | was) for was in reports]
        news = [each.subscribers for each in VaultPublication.objects.order_by("number")][crossed:]
        is_enough = differing >= least and all(n == 0 or n >= least for n in others)
        assert (news, batch.waiting_subscribers) == ([differing] * is_enough, differing * (not is_enough))
        reports += [now] * is_enough
    assert VaultPublication.objects.exists()


def take(pipeline, step: str, files, answers, folder):
    what, n = step.rstrip("0123456789"), int("0" + step.lstrip("abcdefghijklmnopqrstuvwxyz"))
    if what in ("void", "close"):
        return pipeline.void_day(n) if what == "void" else pipeline.close_days(through=n)
    file, options = files[n % 2], {"more_to_come": what == "open"}
    if what == "leave":
        file, options = some_people(files[0], folder, n=n), {"profile": OPT_OUT}
    elif what == "answers":
        file, options = answers, {"profile": SUBSCRIBERS}
    elif what == "half":
        (folder / "half").mkdir(exist_ok=True)
        file = only(file, lambda who: who[-2] in "02468", folder / "half")
    return pipeline.upload(file, **options)[0]


@pytest.mark.database
def test_opt_outs_leave_the_vault_at_once_and_the_totals_once_enough_people_change(pipeline, clean, tmp_path):
    pipeline.upload(clean[0])
    published, there = pipeline.tallies(), len(counted(pipeline))
    (late,) = pipeline.upload(with_more(clean[0], tmp_path / "more", n=1))
    assert late.waiting_subscribers == 1
    people = opted_out(clean[0], n=50) | {f"4{who}" for who in opted_out(clean[0], n=1)}
    (batch,) = pipeline.upload(list_of(people, tmp_path), profile=OPT_OUT)
    assert_gone(pipeline, people)
    gone = there - len(counted(pipeline))
    assert batch.waiting_subscribers == gone > 40
    said = "have been removed from the vault; the reports count them"
    assert any(said in note for note in notes_for_reader(batch))
    assert pipeline.tallies() == published
    # Waiting changes are of no single person; people who came and left meanwhile are not in them.
    waiting = OutboxDelta.objects.get()
    delta = open_study(pipeline.study).unseal_delta(waiting)
    assert (waiting.opted_out, int(delta.visitors.sum())) == (gone, -gone)
    pipeline.upload(clean[1])
    assert pipeline.visitors(1, 1) == there - gone

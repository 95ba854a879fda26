"""The table of the states of a batch is what the code does, and nothing else changes a state."""

import ast
from itertools import product

import pytest

from mobility.batches import states
from mobility.vault.models.batch import Batch
from scripts.docs_states import table
from tests.docs_pages import ROOT
from tests.mobility.operations.probe_world import make_study

State = Batch.State
KINDS = (Batch.Kind.EXTRACT, Batch.Kind.CLOSE_DAYS)
# In words of the table, what is true of a batch that is a file, or fails, or is a check.
IS_TRUE = {
    "it brings a file": lambda batch: batch.kind in Batch.FILES,
    "it brings no file": lambda batch: batch.kind not in Batch.FILES,
    "all chunks are read": lambda batch: batch.kind in Batch.FILES,
    "its failure is noted": lambda batch: batch.failure != "",
    "no failure is noted": lambda batch: batch.failure == "",
    "the file is only checked": lambda batch: batch.validate_only,
}


@pytest.mark.django_db(databases=["default", "vault"])
def test_a_batch_moves_as_the_table_says_and_in_no_other_way(data_dir):
    _, *lines = table()
    assert [(line[0], tuple(line[1].split()), line[2]) for line in lines] == [
        (line.event, line.sources, line.to) for line in states.TRANSITIONS
    ]
    assert {each for line in lines for each in (*line[1].split(), line[2])} == set(State.values)
    study = make_study()
    batches = [
        Batch(study=study, state=state, kind=kind, validate_only=is_check, failure=failure)
        for state, kind, is_check, failure in product(State, KINDS, (True, False), ("", "no"))
        if failure or state != State.FAILED
    ]
    Batch.objects.bulk_create(batches)
    for event in dict.fromkeys(line.event for line in states.TRANSITIONS):
        expected = {
            batch.pk: {
                line[2]
                for line in lines
                if line[0] == event and batch.state in line[1].split()
                if all(is_true(batch) for words, is_true in IS_TRUE.items() if words in line[4])
            }
            for batch in batches
        }
        assert {batch.pk: {states.move(batch, event)} - {None} for batch in batches} == expected
        found = Batch.objects.in_bulk()
        for batch in batches:
            assert {found[batch.pk].state} == (expected[batch.pk] or {batch.state})
            if expected[batch.pk]:
                moved, at_work = found[batch.pk], found[batch.pk].state in states.AT_WORK
                seen = (moved.finished_at is not None, moved.started_at is not None, moved.is_alive)
                assert seen == (moved.is_final, at_work, at_work), event
        Batch.objects.bulk_update(batches, ["state", "finished_at", "started_at", "alive_until"])


def states_written(tree: ast.Module) -> set[str]:
    """Return the values that a module writes into a column `state`, but for days."""
    writing = ("update", "create", "get_or_create", "update_or_create", "Batch")
    found = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        if any(isinstance(each, ast.Attribute) and each.attr == "state" for each in node.targets)
    ]
    found += [
        word.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        if (getattr(call.func, "attr", None) or getattr(call.func, "id", None)) in writing
        for word in call.keywords
        if word.arg == "state"
    ]
    return {text for text in map(ast.unparse, found) if not text.startswith("VaultDay.")}


def test_nothing_else_writes_the_state_of_a_batch():
    texts = {file: file.read_text() for file in (ROOT / "mobility").rglob("*.py")}
    written = {file for file, text in texts.items() if "state" in text and states_written(ast.parse(text))}
    drafts = {"plans/publishing.py", "plans/drafts.py"}  # their own states
    assert {str(file.relative_to(ROOT / "mobility")) for file in written} - drafts == set()

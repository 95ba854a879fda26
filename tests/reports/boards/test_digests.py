"""Boards by e-mail: sentences and a PDF with the rights of their owner, as often as asked, and no longer."""

import hashlib
import io
from datetime import timedelta

import pypdf
import pytest
from django.test import override_settings
from django.utils import timezone

from reports.boards.actions import remove_board
from reports.models import Board, BoardDigest, LedgerEntry, Study
from reports.sharing import digests
from reports.sharing.digests import send_due
from reports.studies.grant_models import StudyGrant
from reports.studies.policies import Role
from tests.reports import report_factory as factory
from tests.reports.page_texts import signed_in, spaced, words

pytestmark = pytest.mark.django_db
ASKED = {"addresses": "mayor@example.org\nclerk@example.org", "every_days": "1"}


@pytest.fixture(autouse=True)
def _domains(settings):
    settings.MOBILITY_DIGEST_DOMAINS = ["example.org"]


@pytest.fixture
def rich(db) -> Study:
    """One indicator: tests of files draw every tile."""
    return factory.published(factory.GENDER)


def page(board):
    return f"/studies/fair-2024/boards/{board.pk}/digest/"


def set_up(reader, board, **changes):
    return reader.post(page(board), ASKED | changes)


def later(**by):
    return timezone.now() + timedelta(**by)


def ledger():
    entries = LedgerEntry.objects.filter(kind="board.digest").order_by("number")
    return [entry.facts["change"] for entry in entries]


def text_of(mail):
    ((name, pdf, kind),) = mail.attachments
    assert (name.endswith(".pdf"), kind) == (True, "application/pdf")
    return pdf, spaced(" ".join(each.extract_text() for each in pypdf.PdfReader(io.BytesIO(pdf)).pages))


def test_a_board_is_sent_once_as_sentences_and_pdf_until_there_is_news(reader, board, mailoutbox) -> None:
    assert set_up(reader, board).status_code == 302
    for now in (later(minutes=1), later(minutes=2), later(days=1, hours=1)):
        send_due(now)
    (mail,) = mailoutbox
    assert (mail.to, sorted(mail.bcc)) == ([], ["clerk@example.org", "mayor@example.org"])
    assert mail.subject == "For the mayor: Sun 2 Jun 2024"
    pdf, text = text_of(mail)
    assert "Gender. Of" in mail.body and "analyst" not in mail.subject
    assert "Unique visitors" in text and "Sun 2 Jun 2024" in text
    entry = LedgerEntry.objects.filter(kind="board.digest").latest("number")
    assert entry.facts["sha256"] == hashlib.sha256(pdf).hexdigest()
    assert "example.org" not in str(entry.facts)
    Study.objects.update(small_cell=10_000_000)
    send_due(later(days=2, hours=2))
    assert "Unique visitors" not in text_of(mailoutbox[1])[1] and "suppresses" in mailoutbox[1].body
    assert ledger() == ["created", "sent", "sent"]


def test_small_categories_are_said_as_such(reader, board, mailoutbox) -> None:
    Study.objects.update(small_category=100_000)
    set_up(reader, board)
    send_due(later(minutes=1))
    body = mailoutbox[0].body
    assert (
        "F: <100,000 visitors." in body
        and "3 categories are estimated at fewer than 100,000 visitors" in body
    )
    assert "()" not in body and "<100,000 visitors" in text_of(mailoutbox[0])[1]


@pytest.mark.parametrize("loss", ["grant", "role", "board", "account", "removal"])
def test_it_ends_with_the_rights_of_its_owner(loss, reader, board, analyst, person, mailoutbox) -> None:
    other = person("otto", Role.ANALYST)
    if loss == "board":
        type(board).objects.update(is_shared=True)
        set_up(signed_in(other), board)
        type(board).objects.update(is_shared=False)
    else:
        set_up(reader, board)
    if loss == "grant":
        StudyGrant.objects.filter(user=analyst).delete()
    elif loss == "role":
        analyst.groups.clear()
    elif loss == "removal":
        remove_board(board, by=analyst)
    elif loss == "account":
        type(analyst).objects.filter(pk=analyst.pk).update(is_active=False)
    send_due(later(minutes=1))
    assert (mailoutbox, BoardDigest.objects.count(), ledger()) == ([], 0, ["created", "ended"])


def test_a_refused_mail_is_tried_again_and_its_error_has_no_words(reader, board, settings, caplog) -> None:
    set_up(reader, board)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    send_due(later(minutes=1))
    row = BoardDigest.objects.get()
    assert (row.error, row.sent_at, ledger()) == ("ConnectionRefusedError", None, ["created"])
    assert later(minutes=50) < row.retry_at < later(minutes=70) < row.next_at
    assert "example.org" not in caplog.text
    assert "ConnectionRefusedError" in words(reader.get(page(board)))


def test_a_failure_does_not_move_the_next_regular_time(reader, board, mailoutbox) -> None:
    """It is tried again after an hour, and on the days after at the hour of the schedule."""
    set_up(reader, board)
    regular = BoardDigest.objects.get().next_at
    smtp = "django.core.mail.backends.smtp.EmailBackend"
    with override_settings(EMAIL_BACKEND=smtp, EMAIL_HOST="127.0.0.1", EMAIL_PORT=1):
        send_due(regular + timedelta(minutes=10))
        send_due(regular + timedelta(minutes=50))  # not yet
    due = BoardDigest.objects.get()
    assert (due.next_at, due.retry_at) == (regular + timedelta(days=1), regular + timedelta(minutes=70))
    send_due(regular + timedelta(minutes=60))
    assert mailoutbox == []
    send_due(regular + timedelta(minutes=75))
    sent = BoardDigest.objects.get()
    assert (sent.next_at, sent.retry_at, sent.error) == (regular + timedelta(days=1), None, "")
    Study.objects.update(small_cell=10_000_000)  # news
    send_due(regular + timedelta(days=1, minutes=1))
    assert len(mailoutbox) == 2
    assert BoardDigest.objects.get().next_at == regular + timedelta(days=2)


def test_only_allowed_addresses_are_written_to(reader, board, settings, mailoutbox) -> None:
    refused = set_up(reader, board, addresses="eve@example.com")
    assert refused.status_code == 400 and "Addresses must end in: example.org" in words(refused)
    assert set_up(reader, board, addresses=" ".join(f"a{n}@example.org" for n in range(6))).status_code == 400
    set_up(reader, board)
    settings.MOBILITY_DIGEST_DOMAINS = []
    send_due(later(minutes=1))
    settings.MOBILITY_DIGEST_DOMAINS = ["example.net"]
    send_due(later(minutes=2))
    assert mailoutbox == []
    reader.post(page(board), {"stop": "1"})
    assert ledger() == ["created", "ended"]


def test_a_board_that_fails_stops_no_other(reader, board, analyst, monkeypatch, mailoutbox, caplog) -> None:
    set_up(reader, board)
    other = Board.objects.create(study=board.study, owner=analyst, name="Second", tiles=board.tiles)
    set_up(reader, other)
    drawn = digests.select_board

    def select(study, window, *, options):
        if options == digests.options_of(board):
            raise KeyError("mayor@example.org")
        return drawn(study, window, options=options)

    monkeypatch.setattr(digests, "select_board", select)
    now = later(minutes=1)
    with pytest.raises(digests.DigestsError, match=str(BoardDigest.objects.get(board=board).pk)) as error:
        send_due(now)
    assert [mail.subject.partition(":")[0] for mail in mailoutbox] == ["Second"]
    failed = BoardDigest.objects.get(board=board)
    assert (failed.error, failed.retry_at, failed.sent_at) == ("KeyError", now + timedelta(hours=1), None)
    assert BoardDigest.objects.get(board=other).error == ""
    assert "example.org" not in caplog.text + str(error.value)
    assert "could not be sent (KeyError)" in words(reader.get(page(board)))
    monkeypatch.undo()
    send_due(now + timedelta(hours=1))
    assert [mail.subject.partition(":")[0] for mail in mailoutbox] == ["Second", "For the mayor"]

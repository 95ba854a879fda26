"""Stored reasons: English for programs, the reader's language on pages, and texts of earlier releases."""

from django.db import connections
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_noop as _
from django.utils.translation import override

from mobility.base.errors import BatchFormatError, KeyAwayError, KeyMissingError
from mobility.models import Batch
from reports.base.reasons import Reason
from tests.mobility.pages.pages import AS_OPERATOR, html_of, says

pytestmark = AS_OPERATOR
EMPTY = _("line 1 is empty: add a header with the column names")


def test_a_reason_is_english_and_worded_in_the_language_of_its_reader():
    error = KeyAwayError(KeyMissingError(_("key %(key)s is damaged: %(size)s bytes instead of %(wanted)s"),
                                         key="fair", size=1234, wanted=32))  # fmt: skip
    english = "key fair is damaged: 1,234 bytes instead of 32; check that the right keystore is mounted"
    assert (str(error), error.reason, error.reason.words) == (english, english, english)
    kept = Reason.unpacked(error.reason.packed())
    with override("fr"):
        assert kept.words.startswith(
            "la clé fair est endommagée\u00a0: 1\u202f234 octets au lieu de 32\u202f;"
        )
        assert (kept, kept.is_english) == (english, False)


def test_a_text_of_an_earlier_release_stays_as_it_is():
    for text in ("", "no column", "{", '{"a": 1}', "[1]", "50 % {"):
        found = Reason.unpacked(text)
        with override("fr"):
            assert (found, found.words, found.is_english) == (text, text, bool(text))
        assert Reason.unpacked(found.packed()) == text


@override("en")  # requests change the language
def test_pages_show_the_reason_of_a_failed_batch_in_the_language_of_their_reader(client, study):
    failed = {"state": "failed", "filename": "day.csv", "finished_at": timezone.now()}
    batch = Batch.objects.create(study=study, failure=BatchFormatError(EMPTY).reason, **failed)
    assert Batch.objects.get().failure == EMPTY
    addresses = [f"/operator/batches/{batch.pk}/", reverse("operator:coverage", args=["fair"]), "/"]
    for address in addresses:
        says(html_of(client, address, **{"Accept-Language": "fr"}), "la ligne 1 est vide\u00a0: ajoutez")
        says(html_of(client, address), EMPTY)
    with connections["vault"].cursor() as cursor:  # as an earlier release wrote it
        cursor.execute("UPDATE mobility_batch SET failure = %s", ["line 7 is odd"])
    for address in addresses:
        says(html_of(client, address, **{"Accept-Language": "fr"}), "line 7 is odd")
    assert not Batch.objects.filter(failure="").exists()

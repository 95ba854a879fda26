"""Names of categories in the language of the reader; those in files stay."""

import pytest
from django.utils import translation

from reports.studies.names import category_name, category_names
from reports.studies.studyfile import VISIT_DURATION_BANDS

IN_WORDS = {
    "en": ["1 to 2 hours", "9 to 10 hours", "10 to 18 hours"],
    "fr": ["1 à 2 heures", "9 à 10 heures", "10 à 18 heures"],
}


@pytest.mark.parametrize("language", IN_WORDS)
def test_durations_are_in_words(language):
    with translation.override(language):
        found = category_names(VISIT_DURATION_BANDS, None)
        assert [found[0], *found[-2:]] == IN_WORDS[language]
        assert category_name("Duration 2h / Lille", None) == f"{IN_WORDS[language][0]} / Lille"
        assert category_name("Duration 20h", None) == "Duration 20h"


def test_french_names_of_a_study_stay():
    with translation.override("fr"):
        assert category_name("Duration 2h", "une heure") == "une heure"
        assert category_name("Duration 2h / NR", "Duration 2h / inconnu") == "1 à 2 heures / inconnu"
    assert category_name("Duration 2h", "une heure") == "1 to 2 hours"

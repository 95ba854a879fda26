"""Profiles by name: those that every study has, and those that somebody made."""

import pytest

from mobility.models import VaultStudy
from mobility.profiles import NO_ANSWER, ValueTable
from mobility.profiles.errors import ProfileMissingError
from mobility.profiles.lookup import find_profile, profile_names
from mobility.profiles.parse import parse_profile
from mobility.services.profiles import create_profile
from tests.mobility.profiles.made_profiles import PROFILE, STUDY, definition

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
SEPARATE = STUDY.replace('cell = "cell_id"', 'cell = "cell_id"\nattributes = "subscribers"')
WITH_SECTION = SEPARATE + '[subscribers]\nsubscriber = "who"\ndelimiter = "pipe"\nmax_bad_share = 0.25\n'


def stored(text: str = STUDY) -> VaultStudy:
    made = definition(text)
    return VaultStudy.objects.create(
        slug=made.slug, definition=made.to_json(), plan={}, plan_hash="", key_id="k", n_shards=4
    )


def test_default_reads_what_the_study_file_says() -> None:
    found = find_profile(stored(), "default")
    assert (found.kind, found.subscriber, found.timestamp, found.cell) == (
        "events",
        "msisdn",
        "time",
        "cell_id",
    )
    assert found.columns == {"gender": "gender", "age": "age", "region": "region"}
    assert found.tables["gender"] == ValueTable(codes={b"F": 0, b"M": 1})
    assert found.tables["gender"].code_of(b"") == NO_ANSWER


def test_attributes_may_come_in_their_own_file() -> None:
    study = stored(WITH_SECTION)
    assert find_profile(study, "default").columns == {}
    people = find_profile(study, "subscribers")
    assert (people.kind, people.subscriber, people.timestamp, people.cell) == (
        "subscribers",
        "who",
        None,
        None,
    )
    assert people.columns == {"gender": "gender", "age": "age", "region": "region"}
    assert (people.delimiter, str(people.max_bad_share)) == ("pipe", "0.25")


def test_without_a_section_the_subscriber_is_called_as_in_the_extract() -> None:
    assert find_profile(stored(SEPARATE), "subscribers").subscriber == "msisdn"


def test_opt_outs_are_a_list_of_subscribers() -> None:
    found = find_profile(stored(), "opt-out")
    assert (found.kind, found.subscriber, found.columns) == ("opt_out", "msisdn", {})


def test_a_study_without_static_indicators_has_nothing_to_learn_of_subscribers() -> None:
    daily = '[[indicator]]\nslug = "stay"\nkind = "daily"\nderive = "visit_duration"\n'
    head, tail = STUDY.split("[[indicator]]", 1)[0], STUDY[STUDY.index("[area]") :]
    study = stored(head + daily + tail)
    assert profile_names(study) == ["default", "opt-out"]
    with pytest.raises(ProfileMissingError):
        find_profile(study, "subscribers")


def test_a_made_profile_is_compiled() -> None:
    study = stored()
    typed = parse_profile(PROFILE.encode(), filename="p.toml", definition=definition())
    create_profile(typed, study=study, by="olga")
    found = find_profile(study, "operator-x")
    assert found == typed.compiled(definition())
    assert found == find_profile(study, "operator-x", definition())
    assert profile_names(study) == ["default", "subscribers", "opt-out", "operator-x"]


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(ProfileMissingError) as caught:
        find_profile(stored(), "operator-x")
    assert (
        str(caught.value)
        == "study 'fair' has no profile 'operator-x'; profiles: default, subscribers, opt-out"
    )


def test_another_studys_profile_is_not_found() -> None:
    other = stored(STUDY.replace('slug = "fair"', 'slug = "other"', 1))
    other.key_id = "k2"
    other.save()
    typed = parse_profile(PROFILE.encode(), filename="p.toml", definition=definition())
    create_profile(typed, study=other, by="olga")
    with pytest.raises(ProfileMissingError):
        find_profile(stored(), "operator-x")

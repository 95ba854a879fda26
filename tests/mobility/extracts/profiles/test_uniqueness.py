"""People of a sample who are the only ones with their values in the mapped columns."""

from mobility.extracts.profiles.sample import read_sample
from mobility.extracts.profiles.uniqueness import Uniqueness, uniqueness_of
from tests.demo_study import parsed_study
from tests.mobility.class_study import class_text
from tests.mobility.extracts.profiles.made_profiles import definition

DEFINITION = definition()
# Ada has two rows; Bob and Cleo share a gender and a postcode; the last row names no one.
ROWS = (
    "id,sex,cp,city\nada,F,25000,x\nada,F,25000,x\nbob,M,25000,y\ncleo,M,25000,z\ndan,M,75011,x\n,F,31000,x\n"
)
COLUMNS = {"gender": {"column": "sex"}, "region": {"column": "cp"}}


def found(text=ROWS, *, indicators=COLUMNS, subscriber="id"):
    data = text.encode()
    draft = {"columns": {"subscriber": subscriber, "cell": "city"}, "indicator": indicators}
    return uniqueness_of(read_sample(data, size=len(data)), draft, definition=DEFINITION)


def test_people_are_counted_once_and_their_columns_together():
    assert found() == Uniqueness(columns=("sex", "cp"), people=4, unique=2)
    assert found(indicators={"gender": {"column": "sex"}}) == Uniqueness(columns=("sex",), people=4, unique=1)


def test_texts_count_as_the_file_has_them():
    mapped = {"gender": {"column": "sex", "values": {"M": "M", "m": "M"}}}
    assert found("id,sex\na,M\nb,m\n", indicators=mapped) == Uniqueness(columns=("sex",), people=2, unique=2)


def test_the_column_of_the_class_counts_whatever_the_profile_maps():
    study = parsed_study(class_text())
    data = b"msisdn,contract,colour\na,PANEL,red\nb,MINOR,red\nc,MINOR,red\n"
    sample = read_sample(data, size=len(data))
    draft = {"columns": {"subscriber": "msisdn"}, "indicator": {"colour": {"column": "colour"}}}
    both = Uniqueness(columns=("contract", "colour"), people=3, unique=1)
    assert uniqueness_of(sample, draft, definition=study) == both
    alone = Uniqueness(columns=("contract",), people=3, unique=1)
    assert uniqueness_of(sample, draft | {"indicator": {}}, definition=study) == alone


def test_nothing_is_said_without_subscribers_or_a_static_column_or_of_one_person():
    assert found(subscriber="") is None
    assert found(indicators={}) is None
    assert found(indicators={"gender": {"column": "not there"}}) is None
    assert found("id,sex,cp\nada,F,25000\nada,F,25000\n") is None
    assert found("id,sex,cp\n") is None

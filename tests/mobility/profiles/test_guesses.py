"""Proposals: what names and values tell, and what nobody should guess."""

from datetime import date, datetime, timedelta

import pytest

from mobility.profiles.parse import read_profile
from mobility.profiles.proposals import propose
from mobility.profiles.sample import Sample, read_sample
from mobility.profiles.timestamp_guess import timestamp_formats
from mobility.profiles.value_guess import bands_of, rule_draft
from tests.mobility.profiles.made_profiles import AGES, STUDY, definition

REFERENCE = date(2024, 5, 1)
STUDY_DEFINITION = definition()
BANDS = {"<18": [0, 17], "18-24": [18, 24], "25-64": [25, 64], "65+": [65]}


def sample(*rows: str, header: str) -> Sample:
    data = "\n".join([header, *rows, ""]).encode()
    return read_sample(data, size=len(data))


class TestTimestamps:
    @pytest.mark.parametrize(
        ("texts", "formats"),
        [
            (["2024-05-01T10:00:00Z", "2024-05-01 10:00"], ("iso",)),
            (["1714557600"], ("epoch_s",)),
            (["1714557600000"], ("epoch_ms",)),
            (["20240501100000"], ("%Y%m%d%H%M%S",)),
            (["202405011000"], ("%Y%m%d%H%M",)),
            (["13/05/2024 10:00:00", "01/05/2024 10:00:00"], ("%d/%m/%Y %H:%M:%S",)),
            (["05/13/2024 10:00", "05/01/2024 10:00"], ("%m/%d/%Y %H:%M",)),
            (["01/05/2024 10:00", "02/06/2024 10:00"], ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M")),
            (["31.5.2024 10:00:01,25"], ("%d.%m.%Y %H:%M:%S,%f",)),
            (["2024/05/01 10:00:00+02:00"], ("%Y/%m/%d %H:%M:%S%z",)),
            (["31-05-2024_10.30"], ("%d-%m-%Y_%H.%M",)),
            (["0612345678", "0698765432"], ()),  # numbers of telephones
            (["1234567890"], ()),  # 2009: far from the study
            (["abc", ""], ()),
            (["2024-05-01"], ()),
            ([], ()),
        ],
    )
    def test_formats(self, texts: list[str], formats: tuple[str, ...]) -> None:
        assert timestamp_formats(texts, definition=STUDY_DEFINITION) == formats

    def test_a_few_bad_texts_do_not_hide_the_format(self) -> None:
        texts = [f"{day:02d}/05/2024 10:00" for day in range(1, 32)]
        assert timestamp_formats([*texts, "?"], definition=STUDY_DEFINITION) == ("%d/%m/%Y %H:%M",)
        assert timestamp_formats([*texts, *["?"] * 9], definition=STUDY_DEFINITION) == ()

    @pytest.mark.parametrize(
        "form", ["%d/%m/%Y %H:%M:%S", "%m-%d-%Y %H:%M", "%d.%m.%Y_%H:%M", "%Y%m%d%H%M%S"]
    )
    def test_what_was_written_is_found(self, form: str) -> None:
        start = datetime(2024, 4, 1)
        texts = [(start + timedelta(hours=17 * i)).strftime(form) for i in range(60)]
        assert timestamp_formats(texts, definition=STUDY_DEFINITION) == (form,)


class TestValues:
    @pytest.mark.parametrize(
        ("texts", "categories", "draft"),
        [
            (["F", "M", ""], ["F", "M"], {}),
            (["f", "m"], ["F", "M"], {"ignore_case": True}),
            (["H", "F"], ["F", "M"], {"values": {"H": "M"}}),
            (["1", "2", "9"], ["F", "M"], {"values": {"1": "M", "2": "F"}}),
            (["Homme", "Femme"], ["Female", "Male"], {"values": {"Homme": "Male", "Femme": "Female"}}),
            (
                ["ILE DE FRANCE"],
                ["Île-de-France", "Elsewhere"],
                {"values": {"ILE DE FRANCE": "Île-de-France"}},
            ),
            (["25000", "75011"], ["Île-de-France", "Elsewhere"], {"prefix": 2, "values": {}}),
            (["SW1A 1AA", "M1 1AE"], ["North", "South"], {"prefix": 2, "values": {}}),
            (["1950", "2006"], AGES, {"birth_year": {"reference": REFERENCE, "bands": BANDS}}),
            (
                ["1950-01-31"],
                AGES,
                {"birth_date": {"reference": REFERENCE, "bands": BANDS, "pattern": "%Y-%m-%d"}},
            ),
            (
                ["31/01/1950"],
                AGES,
                {"birth_date": {"reference": REFERENCE, "bands": BANDS, "pattern": "%d/%m/%Y"}},
            ),
            (["01/02/1950"], AGES, {"birth_date": {"reference": REFERENCE, "bands": BANDS, "pattern": ""}}),
            (["1950", "2025"], AGES, {}),  # nobody is born after the study
            (["1950"], ["young", "old"], {}),
            (["x"], ["F", "M"], {}),
            ([], ["F", "M"], {}),
        ],
    )
    def test_rules(self, texts: list[str], categories: list[str], draft: dict[str, object]) -> None:
        assert rule_draft(texts, categories, reference=REFERENCE) == draft

    @pytest.mark.parametrize(
        ("categories", "bands"),
        [
            (AGES, BANDS),
            (
                ["<18", "18-24", "25-34", "35-44", "45-54", "55-64", ">65", "NR"],
                {
                    "<18": [0, 17],
                    "18-24": [18, 24],
                    "25-34": [25, 34],
                    "35-44": [35, 44],
                    "45-54": [45, 54],
                    "55-64": [55, 64],
                    ">65": [65],
                },
            ),
            (["0-17", "18 and over"], {"0-17": [0, 17], "18 and over": [18]}),
            (["under 18", "18 to 64", ">64"], {"under 18": [0, 17], "18 to 64": [18, 64], ">64": [65]}),
            (
                ["moins de 18", "18 à 64", "65 ans et plus"],
                {"moins de 18": [0, 17], "18 à 64": [18, 64], "65 ans et plus": [65]},
            ),
            (["<18", "20+"], {}),
            (["18-24", "25+"], {}),
            (["F", "M"], {}),
        ],
    )
    def test_bands(self, categories: list[str], bands: dict[str, list[int]]) -> None:
        assert bands_of(categories) == bands


class TestProposals:
    @pytest.mark.parametrize(
        ("header", "columns"),
        [
            ("msisdn,datetime,location_id", ("msisdn", "datetime", "location_id")),  # FlowKit
            (
                "recordType,ServedMSISDN,RecordOpeningTime,LocationAreaCode,Cell Identifier",
                ("ServedMSISDN", "RecordOpeningTime", "Cell Identifier"),
            ),  # 3GPP
            (
                "imsi,msisdn,localTimeStamp,utcTimeOffset,cellId",
                ("msisdn", "localTimeStamp", "cellId"),
            ),  # TAP
            ("user_id,timestamp,mcc,cell_id", ("user_id", "timestamp", "cell_id")),  # multimno
            ("uid,datetime,lat,lng", ("uid", "datetime", None)),  # scikit-mobility
            (
                "interaction,direction,caller_id,datetime,antenna_id",
                ("caller_id", "datetime", "antenna_id"),
            ),  # bandicoot
            ("call_start_ts,CALLER ID,first-cell-id", ("CALLER ID", "call_start_ts", "first-cell-id")),
        ],
    )
    def test_names_of_known_formats(self, header: str, columns: tuple[str | None, ...]) -> None:
        found = propose(sample(header=header), definition=STUDY_DEFINITION)
        assert (
            tuple(found.draft["columns"].get(role) for role in ("subscriber", "timestamp", "cell")) == columns
        )
        assert set(found.reasons.values()) == {"name"}

    def test_values_tell_where_names_do_not(self) -> None:
        rows = [f"{i % 3},2024-05-01 10:{i:02d},208-01-1-1{1 + i % 2},{'FM'[i % 2]}" for i in range(10)]
        found = propose(sample(*rows, header="k,t1,place,g"), definition=STUDY_DEFINITION)
        assert found.draft["columns"] == {"timestamp": "t1", "cell": "place"}
        assert found.draft["indicator"] == {"gender": {"column": "g"}}
        assert found.reasons == {
            "columns.timestamp": "values", "columns.cell": "values", "indicator.gender.column": "values",
        }  # fmt: skip

    def test_attributes_under_other_names(self) -> None:
        found = propose(
            sample("x,H,1950,25000", header="msisdn,SEXE,Année de naissance,code postal"),
            definition=STUDY_DEFINITION,
        )
        attributes = {slug: rule["column"] for slug, rule in found.draft["indicator"].items()}
        assert attributes == {"gender": "SEXE", "age": "Année de naissance", "region": "code postal"}

    def test_without_times_it_is_an_extract_of_subscribers(self) -> None:
        found = propose(sample("x,F", header="msisdn,gender"), definition=STUDY_DEFINITION)
        assert found.draft["profile"]["kind"] == "subscribers"
        assert found.draft["columns"] == {"subscriber": "msisdn"}

    def test_an_order_of_day_and_month_that_could_be_either_is_not_proposed(self) -> None:
        found = propose(sample("x,01/05/2024 10:00", header="msisdn,time"), definition=STUDY_DEFINITION)
        assert "timestamp_format" not in found.draft["profile"]
        assert found.formats == ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M")

    def test_a_column_serves_once_and_one_of_two_names_never(self) -> None:
        found = propose(sample(header="msisdn,msisdn,age,gender"), definition=STUDY_DEFINITION)
        assert "subscriber" not in found.draft["columns"]
        assert [rule["column"] for rule in found.draft["indicator"].values()] == ["gender", "age"]

    def test_what_is_proposed_is_a_profile(self) -> None:
        rows = [f"{i};13/05/2024 10:00;208-01-1-11;{'HF'[i % 2]};{1950 + i}" for i in range(10)]
        found = propose(
            sample(*rows, header="ServedMSISDN;StartTime;cgi;sexe;yob"), definition=definition(STUDY)
        )
        found.draft["profile"]["name"] = "operator-x"
        typed = read_profile(found.draft, filename="", definition=STUDY_DEFINITION)
        assert (typed.timestamp_format, typed.delimiter) == ("%d/%m/%Y %H:%M", "semicolon")
        assert typed.compiled(STUDY_DEFINITION).tables["gender"].code_of(b"H") == 1

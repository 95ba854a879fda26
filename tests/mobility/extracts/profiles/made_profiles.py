"""A study and a profile's file for it, to be varied."""

from functools import cache

from mobility.vault.models.subscribers import VaultStudy
from reports.studies.studyfile import StudyDefinition, parse_study
from tests.mobility.pages.small_study import STUDY as SMALL_STUDY
from tests.study_text import AREA, static

AGES = ("<18", "18-24", "25-64", "65+", "NR")
HEAD = SMALL_STUDY.partition("[[indicator]]")[0].replace('"time"\n', '"time"\ncell = "cell_id"\n')
REGIONS = ("Bourgogne-Franche-Comté", "Île-de-France", "Elsewhere")
STUDY = HEAD + static("gender", "F", "M") + static("age", *AGES) + static("region", *REGIONS) + AREA
CELLS = b"cell_id,lon,lat\n208-01-1-11,6.8,47.6\n208-01-1-12,6.9,47.7\n"
PROFILE = """
[profile]
name = "operator-x"
kind = "events"
delimiter = "semicolon"
timestamp_format = "%d/%m/%Y %H:%M:%S"
max_bad_share = 0.02
[columns]
subscriber = "ServedMSISDN"
timestamp = "recordOpeningTime"
cell = "CellIdentifier"
[indicator.gender]
column = "Sexe"
values = { H = "M", "inconnu" = "" }
ignore_case = true
[indicator.age]
column = "Année de naissance"
otherwise = "NR"
[indicator.age.birth_year]
reference = 2024-05-01
bands = { "<18" = [0, 17], "18-24" = [18, 24], "25-64" = [25, 64], "65+" = [65] }
[indicator.region]
column = "Code postal"
prefix = 2
otherwise = "Elsewhere"
values = { "25" = "Bourgogne-Franche-Comté", "75" = "Île-de-France" }
"""


@cache
def definition(text: str = STUDY) -> StudyDefinition:
    return parse_study(text.encode(), filename="study.toml", read=lambda _: CELLS)


def stored(text: str = STUDY, *, key_id: str = "k") -> VaultStudy:
    made = definition(text)
    row = {"definition": made.to_json(), "plan": {}, "plan_hash": "", "key_id": key_id}
    return VaultStudy.objects.create(slug=made.slug, n_shards=4, **row)


def edited(old: str, new: str, *, text: str = PROFILE) -> str:
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
    return text.replace(old, new)

"""The demo's study without slots, places and layers, under smp-grr: other tests make their studies of it."""

import re
import shutil
from pathlib import Path

from reports.studies.studyfile import StudyDefinition, parse_study

STUDY_FILE = Path(__file__).parents[1] / "mobility" / "demo" / "study.toml"
STUDY = "fimu-2017"
AREA_FILES = ("cells.csv", "zones.geojson")
_SLOTS = re.compile(r"^\[slots\]\n(?:(?![\[#]).*\n)*", re.MULTILINE)
_LOCATION = re.compile(r"^(?:#.*\n)*\[location\]\n(?:(?!\[).*\n)*", re.MULTILINE)
_LAYERS = re.compile(r"^layers = .*\n", re.MULTILINE)
# The indicator of zones and those after it, which combine others.
_PLACES = re.compile(r"^\[\[indicator\]\]\nslug = \"main_zone\"\n(?:.*\n)*?(?=\[area\])", re.MULTILINE)


def study_text(file: Path = STUDY_FILE) -> str:
    """Text of the study file, or of that of another release. Its area has files in the same folder."""
    text = file.read_text().replace('mechanism = "smp-question"', 'mechanism = "smp-grr"')
    for part in (_SLOTS, _LOCATION, _LAYERS, _PLACES):
        text = part.sub("", text)
    return text


def slots_text() -> str:
    (text,) = _SLOTS.findall(STUDY_FILE.read_text())
    return str(text)


def parsed_study(text: str) -> StudyDefinition:
    read = lambda name: (STUDY_FILE.parent / name).read_bytes()  # noqa: E731
    return parse_study(text.encode(), filename="study.toml", read=read)


def write_study(folder: Path, *, slug: str = STUDY, more: str = "", of: Path = STUDY_FILE) -> Path:
    """Write the study with `more` at its end, and the files of its area, into a folder; returns its file."""
    for name in AREA_FILES:
        shutil.copy(of.parent / name, folder)
    path = folder / STUDY_FILE.name
    path.write_text(study_text(of).replace(f'slug = "{STUDY}"', f'slug = "{slug}"') + more)
    return path

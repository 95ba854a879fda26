"""The study file: what a study is, in one file that people can read and review."""

from reports.studies.studyfile.definition import (
    EVENTS,
    HOME_DISTANCE,
    MAIN_ZONE,
    MOVES,
    NIGHT_ZONE,
    OF_NIGHT,
    OF_ZONES,
    VISIT_DURATION,
    VISIT_DURATION_BANDS,
    AreaDefinition,
    Cell,
    ExtractProfile,
    IndicatorDefinition,
    MapLayer,
    PlanDefinition,
    StudyDefinition,
    SubscriberExtract,
    VisitorRule,
)
from reports.studies.studyfile.parse import parse_study
from reports.studies.studyfile.problems import Problem, StudyFileError

__all__ = [
    "EVENTS",
    "HOME_DISTANCE",
    "MAIN_ZONE",
    "MOVES",
    "NIGHT_ZONE",
    "OF_NIGHT",
    "OF_ZONES",
    "VISIT_DURATION",
    "VISIT_DURATION_BANDS",
    "AreaDefinition",
    "Cell",
    "ExtractProfile",
    "IndicatorDefinition",
    "MapLayer",
    "PlanDefinition",
    "Problem",
    "StudyDefinition",
    "StudyFileError",
    "SubscriberExtract",
    "VisitorRule",
    "parse_study",
]

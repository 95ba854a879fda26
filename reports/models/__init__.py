"""The main database: studies, indicators, plans and their tallies. Nothing here is raw."""

from reports.models.plan import Plan, PlanIndicator
from reports.models.study import Area, Indicator, Study
from reports.models.tally import Publication, Tally, VisitorTally

__all__ = ["Area", "Indicator", "Plan", "PlanIndicator", "Publication", "Study", "Tally", "VisitorTally"]

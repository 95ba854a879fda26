"""The main database: studies, indicators, plans and their tallies. Nothing here is raw."""

from reports.models.access import ApiToken, SavedView, ShareLink, ShareView
from reports.models.account import AccountName
from reports.models.budget import BudgetCap, BudgetPopulation, CapDecision, DeletedStudy
from reports.models.density import DensityMap
from reports.models.export_file import ExportFile
from reports.models.grant import StudyGrant
from reports.models.intake import Sender, SentStudy
from reports.models.ledger import LedgerEntry, LedgerHead, LedgerKind
from reports.models.location import LocationTally
from reports.models.note import DayNote
from reports.models.plan import Plan, PlanIndicator
from reports.models.study import Area, Indicator, Study
from reports.models.tally import Publication, Tally, VisitorTally

__all__ = [
    "AccountName",
    "ApiToken",
    "Area",
    "BudgetCap",
    "BudgetPopulation",
    "CapDecision",
    "DayNote",
    "DeletedStudy",
    "DensityMap",
    "ExportFile",
    "Indicator",
    "LedgerEntry",
    "LedgerHead",
    "LedgerKind",
    "LocationTally",
    "Plan",
    "PlanIndicator",
    "Publication",
    "SavedView",
    "Sender",
    "SentStudy",
    "ShareLink",
    "ShareView",
    "Study",
    "StudyGrant",
    "Tally",
    "VisitorTally",
]

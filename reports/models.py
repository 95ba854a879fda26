"""The main database: studies, indicators, plans and their tallies. Nothing here is raw."""

from reports.accounts.access_models import ApiToken, SavedView, ShareLink, ShareView
from reports.accounts.models import AccountName
from reports.boards.models import Board, BoardDigest, BoardUse
from reports.estimates.models import DayNote
from reports.exports.models import ExportFile
from reports.forecasts.models import CrowdLimit, KeptForecast
from reports.ledger.models import LedgerEntry, LedgerHead, LedgerKind, LedgerWaiting
from reports.maps.models import DensityMap
from reports.privacy.models import BudgetCap, BudgetPopulation, CapDecision, DeletedStudy
from reports.studies.grant_models import StudyGrant
from reports.studies.location_models import LocationTally
from reports.studies.models import Area, Indicator, Study
from reports.studies.plan_models import Plan, PlanIndicator
from reports.studies.slot_models import SlotDay, StudySlots
from reports.studies.tally_models import Publication, Tally, VisitorTally
from reports.transfer.models import Sender, SentStudy

__all__ = [
    "AccountName",
    "ApiToken",
    "Area",
    "Board",
    "BoardDigest",
    "BoardUse",
    "BudgetCap",
    "BudgetPopulation",
    "CapDecision",
    "CrowdLimit",
    "DayNote",
    "DeletedStudy",
    "DensityMap",
    "ExportFile",
    "Indicator",
    "KeptForecast",
    "LedgerEntry",
    "LedgerHead",
    "LedgerKind",
    "LedgerWaiting",
    "LocationTally",
    "Plan",
    "PlanIndicator",
    "Publication",
    "SavedView",
    "Sender",
    "SentStudy",
    "ShareLink",
    "ShareView",
    "SlotDay",
    "Study",
    "StudyGrant",
    "StudySlots",
    "Tally",
    "VisitorTally",
]

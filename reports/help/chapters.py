"""The chapter of the documentation that explains a page."""

from typing import Final

from reports.help.rendering import START

ROLES: Final = {
    "reports": "how-to/analyst.md",
    "access": "how-to/analyst.md",
    "operator": "how-to/operator.md",
    "administrator": "how-to/administrator.md",
    "budget": "how-to/privacy-officer.md",
    "people": "accounts.md",
    "ledger": "ledger.md",
    "reading": "api.md",
    "api": "reference/feed-api.md",
}
PAGES: Final = {
    "account": "sign_in.md",
    "status": "status.md",
    "tables": "exports.md",
    "access:shares": "boards.md",
    "access:tokens": "api.md",
    "access:new_share": "boards.md",
    "reports:boards": "boards.md",
    "reports:board": "boards.md",
    "reports:board_digest": "boards.md",
    "reports:compare": "compare.md",
    "reports:movement": "compare.md",
    "reports:crosstab": "compare.md",
    "reports:crosstab_model": "compare.md",
    "reports:flows": "compare.md",
    "reports:visited": "compare.md",
    "reports:scenario": "compare.md",
    "reports:scenario_study": "compare.md",
    "reports:presence": "presence.md",
    "reports:presence_forecast": "presence.md",
    "reports:forecast": "presence.md",
    "reports:forecast_indicator": "presence.md",
    "reports:maps": "maps.md",
    "reports:map_layers": "geography.md",
    "reports:questions": "reference/questions.md",
    "reports:statement": "statement.md",
    "reports:dpia": "dpia.md",
    "administrator:simulator": "simulator.md",
    "administrator:create": "plans.md",
    "administrator:draft": "plans.md",
    "administrator:edit_draft": "reference/study-file.md",
    "operator:profile": "profiles.md",
    "operator:profiles": "profiles.md",
    "operator:new_profile": "profiles.md",
    "operator:batch": "reference/batch-states.md",
    "operator:feeds": "reference/feed-api.md",
}


def chapter_of(view_name: str) -> str:
    """Path below docs/ of the chapter for a view's name: "reports:compare" -> "compare.md"."""
    return PAGES.get(view_name) or ROLES.get(view_name.partition(":")[0], START)

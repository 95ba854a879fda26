"""Access to each address: the one table. A new address needs its rule here, and nothing else.

How to add one: the name of the address, who is let in (OVERSEERS where a page of administrators only shows),
and in `about` which of its parts name something of a study or of an account: a key of what `things_of` in
conftest.py makes. That no one reaches another study, that 404 tells nothing, and that it needs a
sign-in follows. An address that is decided by something else than roles and studies (a signature, a secret in
its end) goes into ELSEWHERE, with the tests that it has.
"""

from dataclasses import dataclass, field

from reports.studies.policies import EXPORTERS, OPENERS, OVERSEERS, READERS, Role

OPERATORS = frozenset({Role.OPERATOR})
ADMINISTRATORS = frozenset({Role.ADMINISTRATOR})
BOTH = OPERATORS | ADMINISTRATORS
EVERYBODY = frozenset({*Role, None})


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Roles (None: signed in, no role) that an address lets in, and how it is asked."""

    roles: frozenset
    about: dict = field(default_factory=dict)
    kwargs: dict = field(default_factory=dict)
    query: str = ""
    method: str = "get"
    status: int = 0  # Status for those who are let in; 302 of a POST, 200 of others, unless said otherwise.
    signed_out: int = 302
    # Roles that also reach what is not theirs; by default administrators and privacy officers.
    others: frozenset | None = None

    @property
    def expected(self):
        return self.status or (302 if self.method == "post" else 200)


STUDY = {"slug": "slug"}
INDICATOR = {**STUDY, "indicator_slug": "indicator"}
BOARD = {**STUDY, "board_id": "board"}
BATCH = {"batch_id": "batch"}
UPLOAD = {**STUDY, "upload_id": "batch"}
PROFILE = {**STUDY, "name": "profile"}
PERSON = {"account_id": "account"}
UNDO = {**STUDY, "undo_id": "undo"}
TABLE = {**STUDY, "table_id": "table"}
DRAFT = {"draft_id": "draft"}
CSV, JSON = {"file_format": "csv"}, {"file_format": "json"}
NONE_YET = {"roles": EXPORTERS, "kwargs": CSV, "status": 400}
ONE_DAY = "?kind=baseline&from=2024-05-30&to=2024-05-30"


def of(names, *, about=None, **given):
    return {name: Rule(about=about or {}, **given) for name in names.split()}


RULES = {
    **of("home account account_change_password account_reauthenticate", roles=EVERYBODY),
    "login": Rule(roles=EVERYBODY, signed_out=200, status=302),
    **of("logout end_other_sessions", roles=EVERYBODY, method="post"),
    "help_start": Rule(roles=EVERYBODY, status=302),
    "help": Rule(roles=EVERYBODY, kwargs={"path": "index.md"}),
    # --- reports: pages for all readers, files for those who may take numbers along
    **of("reports:studies tables", roles=READERS),
    **of(
        "reports:study reports:statement reports:presence reports:presence_frames reports:presence_forecast "
        "reports:forecast reports:scenario_study reports:crosstab reports:flows reports:questions "
        "reports:maps reports:maps_days reports:maps_state reports:boards reports:crosstab_model "
        "reports:visited",
        roles=READERS, about=STUDY,
    ),
    "reports:board_file": Rule(
        roles=EXPORTERS, about=BOARD, kwargs={"file_format": "png"}, others=frozenset()
    ),
    "reports:board": Rule(roles=READERS, about=BOARD, others=frozenset()),
    "reports:board_digest": Rule(roles=OPENERS, about=BOARD, others=frozenset()),
    **of(
        "reports:change_board reports:remove_board",
        roles=READERS, about=BOARD, method="post", others=frozenset(),
    ),
    **of("reports:ask_forecast reports:maps_compute", roles=READERS, about=STUDY, method="post"),
    **of(
        "reports:indicator reports:days reports:compare reports:movement reports:forecast_indicator "
        "reports:scenario reports:map_days",
        roles=READERS, about=INDICATOR,
    ),
    **of("reports:bundle reports:population reports:statement_file", roles=EXPORTERS, about=STUDY),
    "reports:study_file": Rule(roles=EXPORTERS, about=STUDY, kwargs=JSON),
    "reports:maps_file": Rule(roles=EXPORTERS, about=STUDY, kwargs={**CSV, "content": "zones"}),
    **of(
        "reports:presence_file reports:scenario_study_file reports:crosstab_file reports:flows_file",
        roles=EXPORTERS, about=STUDY, kwargs=CSV,
    ),
    **of(
        "reports:indicator_file reports:days_file reports:movement_file reports:scenario_file",
        roles=EXPORTERS, about=INDICATOR, kwargs=CSV,
    ),
    "reports:compare_file": Rule(roles=EXPORTERS, about=INDICATOR, kwargs=CSV, query=ONE_DAY),
    # This study has too few days for a forecast, and age is no number.
    **of(
        "reports:presence_forecast_file reports:forecast_file reports:crosstab_model_file "
        "reports:crosstab_selection_file "
        "reports:visited_file",
        about=STUDY, **NONE_YET,
    ),
    **of(
        "reports:number_file reports:means_file reports:forecast_indicator_file reports:smoothed_file "
        "reports:extrapolation_file reports:periods_file reports:next_period_file "
        "reports:classes_file",
        about=INDICATOR, **NONE_YET,
    ),
    "reports:dpia": Rule(roles=OVERSEERS, about=STUDY),
    "reports:dpia_file": Rule(roles=OVERSEERS, about=STUDY, kwargs={"ending": "md"}),
    **of("reports:crowd_limits reports:map_layers", roles=ADMINISTRATORS, about=STUDY),
    "reports:notes": Rule(roles=BOTH, about=STUDY),
    "reports:remove_note": Rule(roles=BOTH, about={**STUDY, "note_id": "note"}, method="post"),
    # --- tokens, links and views: the own ones; administrators end those of others, too
    **of("access:tokens access:shares access:saved", roles=OPENERS),
    "access:revoke_token": Rule(roles=OPENERS, about={"token_id": "token"}, method="post"),
    "access:new_share": Rule(roles=OPENERS, about=INDICATOR),
    "access:revoke_share": Rule(roles=OPENERS, about={"link_id": "link"}, method="post"),
    "access:remove_saved": Rule(roles=OPENERS, about={"view_id": "view"}, method="post", others=frozenset()),
    "reading:root": Rule(roles=EVERYBODY, status=302),
    "reading:docs": Rule(roles=EXPORTERS),
    # --- uploads: what an operator has a grant for, and no one else
    "operator:studies": Rule(roles=OPERATORS),
    **of("operator:study operator:coverage operator:profiles", roles=OPERATORS, about=STUDY),
    **of("operator:batch operator:unmatched_cells", roles=OPERATORS, about=BATCH),
    "operator:uploads": Rule(roles=OPERATORS, about=STUDY, method="options", status=204, signed_out=401),
    "operator:upload": Rule(roles=OPERATORS, about=UPLOAD, status=302, signed_out=401),
    "operator:cancel": Rule(roles=OPERATORS, about=BATCH, method="post"),
    "operator:feeds": Rule(roles=BOTH, about=STUDY),
    "operator:revoke_feed": Rule(roles=BOTH, about={**STUDY, "token_id": "feed"}, method="post"),
    "operator:new_profile": Rule(roles=OPERATORS, about=STUDY, method="post", status=200),
    "operator:profile": Rule(roles=OPERATORS, about=PROFILE),
    "operator:delete_profile": Rule(roles=OPERATORS, about=PROFILE, method="post"),
    **of(
        "operator:close_days operator:close_slots operator:void_day",
        roles=OPERATORS, about=STUDY, method="post",
    ),
    "operator:withdraw_undo": Rule(roles=OPERATORS, about=UNDO, method="post"),
    "administrator:decide_undo": Rule(roles=OVERSEERS, about=UNDO, method="post"),
    "administrator:decide_table": Rule(roles=OVERSEERS, about=TABLE, method="post"),
    # A session counts for nothing here, so that all get the same: what tokens open is asked for below.
    "api:extract": Rule(
        roles=EVERYBODY, about=STUDY, kwargs={"filename": "day.csv"}, method="put", status=401,
        signed_out=401, others=EVERYBODY,
    ),
    "api:batch": Rule(roles=EVERYBODY, about=BATCH, status=401, signed_out=401, others=EVERYBODY),
    # --- administration: who oversees sees, administrators change
    **of(
        "administrator:studies administrator:simulator administrator:drafts budget:budget ledger:ledger "
        "ledger:file ledger:head ledger:public_key status people:people people:matrix people:matrix_file",
        roles=OVERSEERS,
    ),
    "ledger:check": Rule(roles=OVERSEERS, method="post"),
    **of("administrator:create people:new", roles=ADMINISTRATORS),
    "administrator:draft": Rule(roles=OVERSEERS, about=DRAFT),
    "administrator:edit_draft": Rule(roles=ADMINISTRATORS, about=DRAFT),
    # Which steps are whose: tests/mobility/pages/test_drafts.py.
    "administrator:draft_step": Rule(roles=OVERSEERS, about=DRAFT, method="post"),
    "administrator:draft_study": Rule(roles=ADMINISTRATORS, about=STUDY, method="post"),
    "administrator:study": Rule(roles=OVERSEERS, about=STUDY),
    "administrator:close": Rule(roles=ADMINISTRATORS, about=STUDY, method="post", status=200),
    # Without a demo, no one: see tests/mobility/plans/test_closing.py.
    "administrator:remove_demo": Rule(roles=frozenset()),
    "administrator:export_study": Rule(roles=ADMINISTRATORS, about=STUDY),
    "administrator:certificate": Rule(roles=OVERSEERS, about=STUDY, status=302),
    "budget:decide": Rule(roles=OVERSEERS, about={"cap_id": "cap"}, method="post"),
    "people:person": Rule(roles=OVERSEERS, about=PERSON),
    **of("people:roles people:grant people:active", roles=ADMINISTRATORS, about=PERSON, method="post"),
    "people:password": Rule(roles=ADMINISTRATORS, about=PERSON, method="post", status=200),
    "people:withdraw": Rule(roles=ADMINISTRATORS, about={**PERSON, "grant_id": "grant"}, method="post"),
}  # fmt: skip

# Each about the account of anyone who asks: tests/mobility/signin.
SIGN_IN = {
    "account_login", "account_inactive", "mfa_index", "mfa_list_webauthn", "mfa_authenticate",
    "mfa_reauthenticate", "mfa_reauthenticate_webauthn", "mfa_activate_totp", "mfa_deactivate_totp",
    "mfa_add_webauthn", "mfa_edit_webauthn", "mfa_remove_webauthn", "mfa_view_recovery_codes",
    "mfa_generate_recovery_codes", "mfa_download_recovery_codes", "oidc_login", "oidc_callback",
    "socialaccount_login_cancelled",
}  # fmt: skip
ELSEWHERE = {
    *SIGN_IN,
    "set_language",  # for everyone: tests/test_translations.py
    "access:embedded",  # as the next one
    "access:shared",  # its end is the secret: tests/reports/sharing/test_shares.py, and below
    "intake",  # a signature: tests/reports/transfer/test_intake.py
    "reading:answer",  # its paths are in READING
}

# Paths of the reading API below /api/v1/, and which of them are about a study. For those who may export.
READING = {
    "/studies": False, "/events": False, "/openapi.json": False,
    "/studies/{study}": True, "/studies/{study}/visitors": True,
    "/studies/{study}/presence": True, "/studies/{study}/presence/forecast": True,
    "/studies/{study}/forecast": True, "/studies/{study}/indicators/{indicator}/smoothed": True,
    "/studies/{study}/scenario": True, "/studies/{study}/indicators/{indicator}/scenario": True,
    "/studies/{study}/statement": True, "/studies/{study}/indicators": True,
    "/studies/{study}/indicators/{indicator}": True,
    "/studies/{study}/indicators/{indicator}/estimates": True,
    "/studies/{study}/indicators/{indicator}/days": True,
    "/studies/{study}/indicators/{indicator}/windows": True, "/studies/{study}/places": True,
    "/studies/{study}/indicators/{indicator}/number": True,
    "/studies/{study}/indicators/{indicator}/means": True,
    "/studies/{study}/indicators/{indicator}/extrapolation": True,
    "/studies/{study}/indicators/{indicator}/classes": True,
    "/studies/{study}/places/grid": True, "/studies/{study}/queries": True,
    "/studies/{study}/indicators/{indicator}/association": True,
    "/studies/{study}/indicators/{indicator}/change": True,
    "/studies/{study}/model": True,
    "/studies/{study}/flows": True, "/studies/{study}/visited": True,
    "/studies/{study}/features": True, "/studies/{study}/features/": True,
    "/studies/{study}/features/conformance": True, "/studies/{study}/features/collections": True,
    "/studies/{study}/features/collections/{collection}": True,
    "/studies/{study}/features/collections/{collection}/items": True,
    "/studies/{study}/features/collections/{collection}/items/{feature}": True,
}  # fmt: skip
# Those of studies of events: tests/mobility/pages/test_events.py.
OF_EVENTS = {
    "/studies/{study}/periods",
    "/studies/{study}/indicators/{indicator}/periods",
    "/studies/{study}/indicators/{indicator}/next-period",
}
# Bodies of the paths that take a question.
QUESTIONS = {"/studies/{study}/queries": {"indicator": "age_home", "where": {"age": ["young"]}}}

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
BATCH = {"batch_id": "batch"}
UPLOAD = {**STUDY, "upload_id": "batch"}
PROFILE = {**STUDY, "name": "profile"}
PERSON = {"account_id": "account"}
UNDO = {**STUDY, "undo_id": "undo"}
DRAFT = {"draft_id": "draft"}
CSV, JSON = {"file_format": "csv"}, {"file_format": "json"}
ONE_DAY = "?kind=baseline&from=2024-05-30&to=2024-05-30"

RULES = {
    "home": Rule(roles=EVERYBODY),
    "login": Rule(roles=EVERYBODY, signed_out=200, status=302),
    "logout": Rule(roles=EVERYBODY, method="post"),
    "account": Rule(roles=EVERYBODY),
    "help_start": Rule(roles=EVERYBODY, status=302),
    "help": Rule(roles=EVERYBODY, kwargs={"path": "index.md"}),
    "account_change_password": Rule(roles=EVERYBODY),
    "account_reauthenticate": Rule(roles=EVERYBODY),
    "end_other_sessions": Rule(roles=EVERYBODY, method="post"),
    # --- reports: pages for all readers, files for those who may take numbers along
    "reports:studies": Rule(roles=READERS),
    "reports:study": Rule(roles=READERS, about=STUDY),
    "reports:study_file": Rule(roles=EXPORTERS, about=STUDY, kwargs=JSON),
    "reports:bundle": Rule(roles=EXPORTERS, about=STUDY),
    "reports:population": Rule(roles=EXPORTERS, about=STUDY),
    "reports:statement": Rule(roles=READERS, about=STUDY),
    "reports:statement_file": Rule(roles=EXPORTERS, about=STUDY),
    "reports:dpia": Rule(roles=OVERSEERS, about=STUDY),
    "reports:dpia_file": Rule(roles=OVERSEERS, about=STUDY, kwargs={"ending": "md"}),
    "reports:indicator": Rule(roles=READERS, about=INDICATOR),
    "reports:indicator_file": Rule(roles=EXPORTERS, about=INDICATOR, kwargs=CSV),
    "reports:days": Rule(roles=READERS, about=INDICATOR),
    "reports:days_file": Rule(roles=EXPORTERS, about=INDICATOR, kwargs=CSV),
    "reports:compare": Rule(roles=READERS, about=INDICATOR),
    "reports:compare_file": Rule(roles=EXPORTERS, about=INDICATOR, kwargs=CSV, query=ONE_DAY),
    "reports:number_file": Rule(roles=EXPORTERS, about=INDICATOR, kwargs=CSV, status=400),  # age is none
    "reports:movement": Rule(roles=READERS, about=INDICATOR),
    "reports:movement_file": Rule(roles=EXPORTERS, about=INDICATOR, kwargs=CSV),
    "reports:presence": Rule(roles=READERS, about=STUDY),
    "reports:presence_frames": Rule(roles=READERS, about=STUDY),
    "reports:presence_file": Rule(roles=EXPORTERS, about=STUDY, kwargs=CSV),
    "reports:presence_forecast": Rule(roles=READERS, about=STUDY),
    "reports:presence_forecast_file": Rule(roles=EXPORTERS, about=STUDY, kwargs=CSV, status=400),  # none yet
    "reports:crowd_limits": Rule(roles=ADMINISTRATORS, about=STUDY),
    "reports:forecast": Rule(roles=READERS, about=STUDY),
    "reports:ask_forecast": Rule(roles=READERS, about=STUDY, method="post"),
    "reports:forecast_file": Rule(roles=EXPORTERS, about=STUDY, kwargs=CSV, status=400),  # too few days
    "reports:forecast_indicator": Rule(roles=READERS, about=INDICATOR),
    "reports:forecast_indicator_file": Rule(roles=EXPORTERS, about=INDICATOR, kwargs=CSV, status=400),
    "reports:scenario_study": Rule(roles=READERS, about=STUDY),
    "reports:scenario_study_file": Rule(roles=EXPORTERS, about=STUDY, kwargs=CSV),
    "reports:scenario": Rule(roles=READERS, about=INDICATOR),
    "reports:scenario_file": Rule(roles=EXPORTERS, about=INDICATOR, kwargs=CSV),
    "reports:crosstab": Rule(roles=READERS, about=STUDY),
    "reports:crosstab_file": Rule(roles=EXPORTERS, about=STUDY, kwargs=CSV),
    "reports:flows": Rule(roles=READERS, about=STUDY),
    "reports:flows_file": Rule(roles=EXPORTERS, about=STUDY, kwargs=CSV),
    "reports:questions": Rule(roles=READERS, about=STUDY),
    "reports:maps": Rule(roles=READERS, about=STUDY),
    "reports:maps_days": Rule(roles=READERS, about=STUDY),
    "reports:maps_state": Rule(roles=READERS, about=STUDY),
    "reports:maps_compute": Rule(roles=READERS, about=STUDY, method="post"),
    "reports:maps_file": Rule(roles=EXPORTERS, about=STUDY, kwargs={**CSV, "content": "zones"}),
    "reports:map_days": Rule(roles=READERS, about=INDICATOR),
    "reports:notes": Rule(roles=BOTH, about=STUDY),
    "reports:remove_note": Rule(roles=BOTH, about={**STUDY, "note_id": "note"}, method="post"),
    "tables": Rule(roles=READERS),
    # --- tokens, links and views: the own ones; administrators end those of others, too
    "access:tokens": Rule(roles=OPENERS),
    "access:revoke_token": Rule(roles=OPENERS, about={"token_id": "token"}, method="post"),
    "access:shares": Rule(roles=OPENERS),
    "access:new_share": Rule(roles=OPENERS, about=INDICATOR),
    "access:revoke_share": Rule(roles=OPENERS, about={"link_id": "link"}, method="post"),
    "access:saved": Rule(roles=OPENERS),
    "access:remove_saved": Rule(roles=OPENERS, about={"view_id": "view"}, method="post", others=frozenset()),
    "reading:root": Rule(roles=EVERYBODY, status=302),
    "reading:docs": Rule(roles=EXPORTERS),
    # --- uploads: what an operator has a grant for, and no one else
    "operator:studies": Rule(roles=OPERATORS),
    "operator:study": Rule(roles=OPERATORS, about=STUDY),
    "operator:batch": Rule(roles=OPERATORS, about=BATCH),
    "operator:unmatched_cells": Rule(roles=OPERATORS, about=BATCH),
    "operator:coverage": Rule(roles=OPERATORS, about=STUDY),
    "operator:uploads": Rule(roles=OPERATORS, about=STUDY, method="options", status=204, signed_out=401),
    "operator:upload": Rule(roles=OPERATORS, about=UPLOAD, status=302, signed_out=401),
    "operator:cancel": Rule(roles=OPERATORS, about=BATCH, method="post"),
    "operator:feeds": Rule(roles=BOTH, about=STUDY),
    "operator:revoke_feed": Rule(roles=BOTH, about={**STUDY, "token_id": "feed"}, method="post"),
    "operator:profiles": Rule(roles=OPERATORS, about=STUDY),
    "operator:new_profile": Rule(roles=OPERATORS, about=STUDY, method="post", status=200),
    "operator:profile": Rule(roles=OPERATORS, about=PROFILE),
    "operator:delete_profile": Rule(roles=OPERATORS, about=PROFILE, method="post"),
    "operator:close_days": Rule(roles=OPERATORS, about=STUDY, method="post"),
    "operator:close_slots": Rule(roles=OPERATORS, about=STUDY, method="post"),
    "operator:void_day": Rule(roles=OPERATORS, about=STUDY, method="post"),
    "operator:withdraw_undo": Rule(roles=OPERATORS, about=UNDO, method="post"),
    "administrator:decide_undo": Rule(roles=OVERSEERS, about=UNDO, method="post"),
    # A session counts for nothing here, so that all get the same: what tokens open is asked for below.
    "api:extract": Rule(
        roles=EVERYBODY, about=STUDY, kwargs={"filename": "day.csv"}, method="put", status=401,
        signed_out=401, others=EVERYBODY,
    ),
    "api:batch": Rule(roles=EVERYBODY, about=BATCH, status=401, signed_out=401, others=EVERYBODY),
    # --- administration: who oversees sees, administrators change
    "administrator:studies": Rule(roles=OVERSEERS),
    "administrator:create": Rule(roles=ADMINISTRATORS),
    "administrator:simulator": Rule(roles=OVERSEERS),
    "administrator:drafts": Rule(roles=OVERSEERS),
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
    "budget:budget": Rule(roles=OVERSEERS),
    "budget:decide": Rule(roles=OVERSEERS, about={"cap_id": "cap"}, method="post"),
    "ledger:ledger": Rule(roles=OVERSEERS),
    "ledger:check": Rule(roles=OVERSEERS, method="post"),
    "ledger:file": Rule(roles=OVERSEERS),
    "ledger:head": Rule(roles=OVERSEERS),
    "ledger:public_key": Rule(roles=OVERSEERS),
    "status": Rule(roles=OVERSEERS),
    "people:people": Rule(roles=OVERSEERS),
    "people:matrix": Rule(roles=OVERSEERS),
    "people:matrix_file": Rule(roles=OVERSEERS),
    "people:person": Rule(roles=OVERSEERS, about=PERSON),
    "people:new": Rule(roles=ADMINISTRATORS),
    "people:roles": Rule(roles=ADMINISTRATORS, about=PERSON, method="post"),
    "people:password": Rule(roles=ADMINISTRATORS, about=PERSON, method="post", status=200),
    "people:grant": Rule(roles=ADMINISTRATORS, about=PERSON, method="post"),
    "people:withdraw": Rule(roles=ADMINISTRATORS, about={**PERSON, "grant_id": "grant"}, method="post"),
    "people:active": Rule(roles=ADMINISTRATORS, about=PERSON, method="post"),
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
    "set_language",  # for everyone: tests/test_language_choice.py
    "access:shared",  # its end is the secret: tests/reports/sharing/test_shares.py, and below
    "intake",  # a signature: tests/reports/transfer/test_intake.py
    "reading:answer",  # its paths are in READING
}

# Paths of the reading API below /api/v1/, and which of them are about a study. For those who may export.
READING = {
    "/studies": False, "/openapi.json": False, "/studies/{study}": True, "/studies/{study}/visitors": True,
    "/studies/{study}/presence": True, "/studies/{study}/presence/forecast": True,
    "/studies/{study}/forecast": True,
    "/studies/{study}/scenario": True, "/studies/{study}/indicators/{indicator}/scenario": True,
    "/studies/{study}/statement": True, "/studies/{study}/indicators": True,
    "/studies/{study}/indicators/{indicator}": True,
    "/studies/{study}/indicators/{indicator}/estimates": True,
    "/studies/{study}/indicators/{indicator}/days": True,
    "/studies/{study}/indicators/{indicator}/windows": True, "/studies/{study}/places": True,
    "/studies/{study}/indicators/{indicator}/number": True,
    "/studies/{study}/places/grid": True, "/studies/{study}/queries": True,
    "/studies/{study}/indicators/{indicator}/association": True,
    "/studies/{study}/flows": True, "/studies/{study}/features": True, "/studies/{study}/features/": True,
    "/studies/{study}/features/conformance": True, "/studies/{study}/features/collections": True,
    "/studies/{study}/features/collections/{collection}": True,
    "/studies/{study}/features/collections/{collection}/items": True,
    "/studies/{study}/features/collections/{collection}/items/{feature}": True,
}  # fmt: skip
# Bodies of the paths that take a question.
QUESTIONS = {"/studies/{study}/queries": {"indicator": "age_home", "where": {"age": ["young"]}}}

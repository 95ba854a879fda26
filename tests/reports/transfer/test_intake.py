"""The intake: what operator zones that run apart may do, and all that must be refused without a trace."""

import json
import time
from base64 import b64encode
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from ldp import Delta, PlanSpec
from ldp.protocols.numbers.threshold import Scale
from reports import models
from reports.ledger.actions import record
from reports.ledger.chain import canonical_hash
from reports.models import (
    LedgerEntry,
    LedgerKind,
    Plan,
    Publication,
    Sender,
    SentStudy,
    Study,
    Tally,
    VisitorTally,
)  # fmt: skip
from reports.privacy.budget.actions import propose_cap
from reports.privacy.composition import losses_of
from reports.studies.policies import Role
from reports.transfer import messages
from reports.transfer.actions import adopt_studies, register_sender
from reports.transfer.messages import Envelope, digest_of, to_body
from reports.transfer.publications import apply_publication
from reports.transfer.studies import ON_SERVER, Approval, create_study_rows, delete_study_rows, plan_hash
from tests.demo_study import parsed_study, study_text
from tests.reports.page_texts import signed_in
from tests.reports.report_factory import joint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("data_dir")]
SLUG = "fimu-2017"
ROOT = "/api/v1/intake/studies/"
PLACES = """
[location]
level = 1.0
radius_m = 2000
grid_m = 2000
margin_m = 2000
max_values = 2
h3_resolution = 6
"""
CLOSED = {"closed_at": "2017-06-08T10:00:00+00:00", "certificate": {"erased": {"pseudonyms": 3}}}
EVENT = f"batch.ended/{UUID(int=5)}"
HEADERS = (messages.TIME, messages.DIGEST, messages.SENDER, messages.SIGNATURE)
HEADS = [
    b"", b"{}", b"[1]", b'{"number":1}', b"\xff", b"[" * 100_000,
    b'{"number":true,"plan_hash":"","voided_days":0}', b'{"number":1,"plan_hash":{},"voided_days":0}',
    b'{"number":1,"plan_hash":"","voided_days":-1}', b'{"number":1,"plan_hash":"","voided_days":1e9}',
]  # fmt: skip
DAMAGES = {
    "definition": [
        {"slug": "other"}, {"name": [1]}, {"name": "a\nb"}, {"name": "a" * 300}, {"days": 63},
        {"market_share": "2"}, {"name_fr": [1]}, {"market_share": "NaN"}, {"first_day": "someday"},
        {"indicators": []}, {"surprise": 1},
    ],
    "approval": [
        {"review": "yes"}, {"review": "approved"}, {"review": "approved", "by": "paul", "at": "2017-05-01"},
    ],
    "area": [{"id": 1, "surprise": 2}, {"study_id": 1}, {"grid": {"x0_m": 0}}, {"zones": "Belfort"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def definition():
    return parsed_study(study_text())


def body_of(definition, **changes):
    given = {"plan_version": 1, "plan_hash": plan_hash(definition.plan_spec()), "is_demo": False}
    return messages.study_body(definition, **{**given, "approval": ON_SERVER, **changes})


@dataclass
class Operator:
    name: str = "north"
    client: Client = field(default_factory=Client)
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public_key(self):
        return b64encode(self.key.public_key().public_bytes_raw()).decode()

    def headers(self, kind, body, *, slug=SLUG, item="", age_s=0):
        sent_at = int(time.time()) - age_s
        named = {"kind": kind, "sender": self.name, "study": slug, "item": str(item)}
        return Envelope(**named, sent_at=sent_at, digest=digest_of(body)).signed(self.key)

    def post(self, path, body, headers):
        return self.client.post(ROOT + path, body, content_type="application/octet-stream", headers=headers)

    def create(self, definition, **changes):
        body, slug = body_of(definition, **changes), definition.slug
        return self.post(slug, body, self.headers("study", body, slug=slug))

    def publish(self, body, *, publication=None, **changes):
        publication = publication or uuid4()
        headers = self.headers("publication", body, item=publication, **changes)
        return self.post(f"{SLUG}/publications/{publication}", body, headers)

    def send(self, kind, body):
        return self.post(f"{SLUG}/{kind}", body, self.headers(kind, body))

    def state(self):
        response = self.client.get(f"{ROOT}{SLUG}/state", headers=self.headers("state", b""))
        assert response.status_code == 200, response.content
        return response.json()


def registered(name):
    zone = Operator(name)
    register_sender(name, public_key=zone.public_key, by="ada")
    return zone


@pytest.fixture
def north(db, data_dir):
    return registered("north")


@pytest.fixture
def south(db, data_dir):
    return registered("south")


@pytest.fixture
def created(north, definition):
    assert north.create(definition).json() == {"is_new": True}
    return north


def delta_of(definition, *, n=500):
    delta = Delta.zero(definition.plan_spec())
    delta.visitors[0, 1] = n
    delta.counts[0][1, 0, 1] = n // 4
    delta.n_reports[0][0, 1] = n // 4
    return delta


def publication_of(definition, *, n=500, packed=None):
    given = {"number": 1, "plan_hash": plan_hash(definition.plan_spec()), "voided_days": 0}
    return messages.publication_body(packed or delta_of(definition, n=n).pack(), **given)


def everything():
    names = ("Study", "Area", "Indicator", "Plan", "PlanIndicator", "Tally", "VisitorTally")
    return {name: [plain(row) for row in getattr(models, name).objects.order_by("pk")] for name in names}


def plain(row):
    kept = {}
    for each in row._meta.concrete_fields:
        value = getattr(row, each.attname)
        if not (each.primary_key or each.is_relation or each.get_internal_type() == "DateTimeField"):
            kept[each.name] = bytes(value) if isinstance(value, memoryview) else value
    return kept


def visitors():
    return int(np.frombuffer(VisitorTally.objects.get(study__slug=SLUG).counts, "<i8").sum())


class TestTaken:
    @pytest.mark.parametrize("places", [False, True])
    def test_a_study_that_crossed_is_the_study_that_was_created(self, north, definition, places):
        if places:
            definition = parsed_study(study_text() + PLACES)
        approval = Approval(review="approved", by="paul", at=datetime(2017, 5, 1, 12, tzinfo=UTC))
        create_study_rows(definition, by="sender north", approval=approval, version=3)
        ours = everything()
        delete_study_rows(Study.objects.get())
        third = {"plan_version": 3, "plan_hash": plan_hash(definition.plan_spec(version=3))}
        assert north.create(definition, approval=approval, **third).json() == {"is_new": True}
        assert (Plan.objects.get().reviewed_at, everything()) == (approval.at, ours)
        assert ours["Area"][0]["n_cells"] > 0
        assert (ours["Area"][0]["grid"] is not None) == places

    def test_a_study_with_presence_noise_crosses_with_its_noise(self, north):
        noise = "[plan]\npresence_epsilon = 1.0\npresence_days = 7"
        noisy = parsed_study(study_text().replace("[plan]", noise))
        create_study_rows(noisy, by="sender north")
        ours = everything()
        delete_study_rows(Study.objects.get())
        assert (north.create(noisy).json(), everything()) == ({"is_new": True}, ours)
        assert ours["Study"][0]["presence"] is not None
        assert north.publish(publication_of(noisy)).status_code == 409  # exact counts
        first = publication_of(noisy, packed=replace(delta_of(noisy, n=-3), noisy_through=1).pack())
        assert (north.publish(first).json(), visitors()) == ({"is_new": True}, -3)
        # A day whose noise was seen must not come again with other noise.
        assert (north.publish(first).status_code, visitors()) == (409, -3)

    def test_neither_cells_nor_columns_cross(self):
        located = parsed_study(study_text() + PLACES)
        body = body_of(located).decode()
        assert not [cell.cell_id for cell in located.area.cells if f'"{cell.cell_id}"' in body]
        assert f'"{located.extract.subscriber}"' not in body and '"cells":[' not in body
        assert '"places":[]' in body

    def test_a_publication_is_added_once(self, created, definition):
        body, publication = publication_of(definition), uuid4()
        assert created.publish(body, publication=publication).json() == {"is_new": True}
        assert visitors() == 500
        state = created.state()
        assert created.publish(body, publication=publication).json() == {"is_new": False}
        assert (visitors(), created.state()) == (500, state)
        assert state == {
            "study": SLUG, "is_known": True, "plan_hash": plan_hash(definition.plan_spec()),
            "publications": [str(publication)], "receipts": [], "is_closed": False,
        }  # fmt: skip
        # The same words under another address are another message.
        headers = created.headers("publication", body, item=publication)
        created.post(f"{SLUG}/publications/{publication}", body, headers)
        assert created.post(f"{SLUG}/publications/{uuid4()}", body, headers).status_code == 401
        assert visitors() == 500
        (received,) = LedgerEntry.objects.filter(kind="delta.received")
        assert received.facts["publication"] == str(publication)
        assert received.facts["sha256"] == digest_of(body)

    def test_a_study_without_data_gives_way_to_its_sender(self, created, definition):
        named = {"name": "Renamed", "name_fr": "Renommée\u00a0: 2018"}
        renamed = replace(definition, **named, first_day=date(2018, 6, 1))
        assert (created.create(renamed).json(), Study.objects.get().name) == ({"is_new": True}, "Renamed")
        assert created.create(renamed).json() == {"is_new": False}
        actors = [entry.actor for entry in LedgerEntry.objects.filter(kind="study.created")]
        assert actors == ["sender north"] * 2
        created.create(definition, is_demo=True)
        assert Study.objects.get().is_demo  # the demo stays the demo

    def test_a_study_is_closed_once_with_its_certificate(self, created):
        body = to_body(CLOSED)
        assert created.send("closed", body).json() == {"is_new": True}
        study = Study.objects.select_related("sent").get()
        assert (study.state, study.closed_at.isoformat()) == ("closed", CLOSED["closed_at"])
        assert study.sent.certificate == CLOSED["certificate"]
        assert created.send("closed", body).json() == {"is_new": False}
        assert created.state()["is_closed"]
        (entry,) = LedgerEntry.objects.filter(kind="study.closed")
        assert entry.facts["certificate_sha256"] == canonical_hash(CLOSED["certificate"])

    def test_a_receipt_is_noted_once(self, created):
        for _ in range(2):
            response = created.send("receipts", receipts({"rows_read": 3, "key_left": False}))
            assert response.status_code == 200, response.content
        (entry,) = LedgerEntry.objects.filter(kind="batch.ended")
        assert (entry.actor, entry.study, entry.facts["rows_read"]) == ("sender north", SLUG, 3)
        assert created.state()["receipts"] == [EVENT]


class TestRefused:  # nothing may change, and the answer says why
    @pytest.fixture(autouse=True)
    def _with_data(self, created, definition):
        created.publish(publication_of(definition), publication=UUID(int=1))

    def refused(self, response, status, said):
        assert response.status_code == status, response.content
        assert response["Content-Type"] == "application/problem+json" and said in response.json()["detail"]
        assert (visitors(), Publication.objects.count(), Study.objects.count()) == (500, 1, 1)

    def test_a_message_that_was_tampered_with(self, north, south, definition):
        publication, body = uuid4(), publication_of(definition)
        headers = north.headers("publication", body, item=publication)
        path = f"{SLUG}/publications/{publication}"
        self.refused(north.post(path, body[:-1] + b"\0", headers), 400, "not the one that was signed")
        self.refused(north.post(path, b"", headers), 411, "length")
        self.refused(north.post(path, b"x", headers), 400, "not the one that was signed")
        later, no_signature = str(int(headers[messages.TIME]) + 1), b64encode(bytes(64)).decode()
        for header, text in zip(HEADERS, (later, digest_of(b""), "south", no_signature), strict=True):
            self.refused(north.post(path, body, headers | {header: text}), 401, "signature")
        body = to_body(CLOSED)  # of another kind
        self.refused(north.post(f"{SLUG}/closed", body, north.headers("study", body)), 401, "signature")
        assert not north.state()["is_closed"]

    def test_a_header_that_is_none(self, north):
        for header in HEADERS:
            for text in ("", "x" * 100_000, "é\u0660", "-1", "../.."):
                headers = north.headers("state", b"") | {header: text}
                response = north.client.get(f"{ROOT}{SLUG}/state", headers=headers)
                assert response.status_code in (400, 401)
                assert response["Content-Type"] == "application/problem+json"

    def test_a_body_that_is_too_large_and_an_unknown_sender_unread(self, north, definition, settings):
        stranger = Operator("stranger")
        self.refused(stranger.publish(publication_of(definition)), 401, "not registered")
        assert stranger.create(replace(definition, slug="mine")).status_code == 401
        settings.MOBILITY_INTAKE_MAX_BYTES = 100
        self.refused(stranger.publish(publication_of(definition)), 401, "not registered")
        self.refused(north.publish(publication_of(definition)), 413, "at most 100")

    def test_a_message_of_another_time_and_of_a_revoked_sender(self, north, definition):
        for age_s in (301, 86_400, -360):  # a slow machine takes seconds to send
            self.refused(north.publish(publication_of(definition), age_s=age_s), 401, "set both clocks")
        call_command("revoke_sender", "north")
        self.refused(north.publish(publication_of(definition)), 401, "revoked")

    def test_a_study_of_another_sender(self, south, definition):
        self.refused(south.publish(publication_of(definition)), 404, "no study")
        self.refused(south.create(definition), 409, "choose another slug")
        self.refused(south.send("closed", to_body(CLOSED)), 404, "no study")
        self.refused(south.send("receipts", receipts({"rows_read": 3})), 404, "no study")
        assert not LedgerEntry.objects.filter(kind="batch.ended").exists()
        assert south.state() == {"study": SLUG, "is_known": False}

    def test_a_study_of_this_installation(self, north, definition):
        Study.objects.update(slug="taken")
        create_study_rows(definition, by="ada")
        assert north.publish(publication_of(definition)).status_code == 404
        assert north.create(definition).status_code == 409

    def test_another_plan_and_anything_for_a_closed_study(self, north, definition):
        stronger = replace(definition, plan=replace(definition.plan, epsilon=Decimal("0.5")))
        self.refused(north.publish(publication_of(stronger)), 409, "no plan with this hash")
        self.refused(north.create(stronger), 409, "plans with data are final")
        Study.objects.update(state="closed", closed_at="2017-06-08T00:00:00Z")
        self.refused(north.publish(publication_of(definition)), 409, "closed")

    def test_totals_that_would_become_negative_or_overflow(self, north, definition):
        for n in (-501, 2**63 - 1, 2**63 - 400):
            self.refused(north.publish(publication_of(definition, n=n)), 409, "would become negative")

    def test_a_delta_that_is_none(self, north, definition):
        packed = delta_of(definition).pack()
        smaller = Delta.zero(replace(definition, days=3).plan_spec()).pack()
        bomb = packed[:5] + b"\xff\xff" + b"\xff\xff" * 255 + packed[-50:]
        for damaged in (b"x", smaller, bomb, packed[:-4], packed + b"x"):
            self.refused(north.publish(publication_of(definition, packed=damaged)), 422, "packed delta must")

    def test_a_publication_whose_head_is_none(self, north):
        for line in HEADS:
            self.refused(north.publish(line + b"\nLDPD"), 422, "nothing was changed")

    def test_other_methods_and_a_session(self, north, person):
        for method in ("get", "put", "delete", "head"):
            assert getattr(north.client, method)(ROOT + SLUG).status_code == 405
        assert north.client.post(f"{ROOT}{SLUG}/state").status_code == 405
        assert signed_in(person("adam", Role.ADMINISTRATOR)).get(f"{ROOT}{SLUG}/state").status_code == 400


def damaged(content):
    study = content["definition"]
    for part, changes in DAMAGES.items():
        yield from (content | {part: content[part] | change} for change in changes)
    twice, free = {"indicators": [study["indicators"][0]] * 2}, {"plan": study["plan"] | {"epsilon": "0"}}
    no_plan = {name: value for name, value in study.items() if name != "plan"}
    yield from (content | {"definition": each} for each in (study | twice, study | free, no_plan))
    for change in ({"plan_hash": "0" * 64}, {"plan_version": "1"}, {"area": "Belfort"}):
        yield content | change


def misnamed(content):
    """Studies whose French names or groups are none, each with what the refusal says."""
    study, zones = content["definition"], content["area"]["zones"]
    first, *others = study["indicators"]
    for value in (0, False, [], ["a"], {}, "a\nb"):
        for changed in ({"name_fr": value}, {"indicators": [first | {"name_fr": value}, *others]}):
            yield {"definition": study | changed}, "name_fr must be a text"
    one = first["categories"][0]
    for groups, said in (
        (5, "must be a list of names"), ([["a"]], "must be a list of names"), ([["a", [one]]] * 2, "differ"),
        ([["a", []]], "and categories"), ([[1, [one]]], "differ"), ([["a", ["?"]]], "each once"),
        ([["a", [one, one]]], "each once"), ([["a", [[]]]], "each once"),
    ):  # fmt: skip
        yield {"definition": study | {"indicators": [first | {"groups": groups}, *others]}}, said
    for key, names in (("categories_fr", first["categories"]), ("zones_fr", zones)):
        n, kind, number = len(names), f"{key} must be a list of texts", f"{key} must have a name for each"
        alike = [f"a{space}b" for space in (" ", "\u00a0")] + list(map(str, range(n - 2)))
        for values, said in (
            ("x" * n, kind), ({str(i): 1 for i in range(n)}, kind), (list(range(n)), kind), ([""] * n, kind),
            ([[]] * n, kind), (0, kind), (["a"], number), ([], number), (alike, f"{key} must differ"),
        ):  # fmt: skip
            if key == "zones_fr":
                yield {"area": content["area"] | {key: values}}, said
            else:
                yield {"definition": study | {"indicators": [first | {key: values}, *others]}}, said


def test_french_names_and_groups_of_other_types_are_refused_by_name(north, definition):
    whole = json.loads(body_of(definition))
    for change, said in misnamed(whole):
        body = to_body(whole | change)
        response = north.post(SLUG, body, north.headers("study", body))
        assert (response.status_code, said in response.json()["detail"]) == (422, True), (change, said)
    assert not Study.objects.exists()


def test_small_cells_of_noisy_totals_are_refused_as_in_a_study_file(north):
    noise = "[plan]\npresence_epsilon = 1.0\npresence_days = 7"
    noisy = parsed_study(study_text().replace("[plan]", noise))
    response = north.create(replace(noisy, small_cell=20))
    assert response.status_code == 422 and "absent with study.small_cell" in response.json()["detail"]
    assert north.create(noisy).json() == {"is_new": True}


def test_a_study_or_closing_that_is_none_is_refused(north, definition):
    for content in damaged(json.loads(body_of(definition))):
        body = to_body(content)
        response = north.post(SLUG, body, north.headers("study", body))
        assert response.status_code == 422, content
        assert "nothing was changed" in response.json()["detail"]
    assert Study.objects.count() == Sender.objects.count() - 1 == 0
    north.create(definition)
    for closed_at in (None, 1, "yesterday", "2017-06-08T10:00:00"):
        assert north.send("closed", to_body(CLOSED | {"closed_at": closed_at})).status_code == 422
    assert Study.objects.get().state == "open"


WITHOUT_PARTS = ("gender", [["gender"], "age"], ["gender"], ["gender", "stay"], None)
WITHOUT_CUTS = (3, [], {"cuts": [60]}, {"cuts": [1, 2, 3]}, {"cuts": [2, 1]}, {"cuts": [60, 120], "unit": 5})


def number_of(definition):
    number = replace(definition.indicators[-1], slug="spent", scale=Scale(cuts=(60, 120), unit="min"))
    return replace(number, categories=("60 min or more", "120 min or more"), categories_fr=None)


@pytest.mark.parametrize(("key", "wrong"), [("parts", WITHOUT_PARTS), ("scale", WITHOUT_CUTS)])
def test_joint_indicators_and_numbers_are_handed_over_with_their_codes(north, definition, key, wrong):
    parts = [each for each in definition.indicators if each.slug in ("gender", "age")]
    added = joint("both", *parts) if key == "parts" else number_of(definition)
    wider = replace(definition, indicators=(*definition.indicators, added))
    for bad in wrong:
        content = json.loads(body_of(wider))
        content["definition"]["indicators"][-1][key] = bad
        body = to_body(content)
        assert north.post(SLUG, body, north.headers("study", body)).status_code == 422, bad
    assert north.create(wider).json() == {"is_new": True}
    delta, size = delta_of(wider), wider.plan_spec().tally_sizes[-1]
    delta.counts[-1][size - 1, 0, 1] = delta.n_reports[-1][0, 1] = 7
    assert north.publish(publication_of(wider, packed=delta.pack())).status_code == 200
    tally = Tally.objects.get(indicator__slug=added.slug)
    assert np.frombuffer(bytes(tally.counts), "<i8").reshape(size, 8, 8)[size - 1, 0, 1] == 7
    assert size > len(tally.indicator.categories)


def receipts(*facts):
    return messages.receipts_body({"event": EVENT, "facts": each} for each in facts)


def test_a_receipt_that_is_none_is_refused(created):
    for body in (
        b"[]", to_body({"receipts": 1}), to_body({"receipts": [1]}), to_body({"receipts": [{}] * 201}),
        to_body({"receipts": [{"event": "x", "facts": {}}]}),
        to_body({"receipts": [{"event": EVENT, "facts": 1}]}),
        receipts({"share": 0.5}), receipts({"text": "x" * 30_000}), receipts({"a": 1}, {"b": 1.5}),
        messages.receipts_body([{"event": f"sign_in.succeeded/{'-' * 36}\n", "facts": {}}]),
    ):  # fmt: skip
        assert created.send("receipts", body).status_code == 422, body[:100]
    assert not LedgerEntry.objects.filter(kind="batch.ended").exists()


def fails(said, *command):
    with pytest.raises(CommandError, match=said):
        call_command(*command)


class TestSenders:
    def test_names_and_keys_have_a_form(self):
        right = "A" * 43 + "="
        for name, key in (("North", right), ("a b", right), ("n", "AAAA"), ("n", "?"), ("n", "")):
            fails("must", "register_sender", name, key)
        assert not Sender.objects.exists()
        fails("no sender 'north'; senders: none yet", "revoke_sender", "north")

    def test_a_name_and_a_key_are_given_once(self):
        one, two = (Operator().public_key for _ in range(2))
        call_command("register_sender", "north", one)
        fails("name must be new", "register_sender", "north", two)
        fails("public key must be new", "register_sender", "south", one)
        (entry,) = LedgerEntry.objects.filter(kind="sender.registered")
        assert entry.facts["sender"] == "north"

    def test_a_new_key_ends_what_the_old_one_could_do(self, definition):
        old, new = Operator(), Operator()
        call_command("register_sender", "north", old.public_key)
        old.create(definition)
        call_command("revoke_sender", "north")
        fails("public key must be new", "register_sender", "north", old.public_key, "--replace")
        call_command("register_sender", "north", new.public_key, "--replace")
        assert old.publish(publication_of(definition)).status_code == 401
        assert new.publish(publication_of(definition)).json() == {"is_new": True}
        fails("no sender 'west'", "register_sender", "west", Operator().public_key, "--replace")

    def test_studies_of_a_database_that_was_shared_go_on_under_a_sender(self, definition, settings):
        north, south, publication = registered("north"), registered("south"), uuid4()
        body = publication_of(definition)
        south.create(definition)
        south.publish(body)
        Study.objects.update(slug="of-south")
        create_study_rows(definition, by="ada")  # as an operator zone did that shared this database
        plan = definition.plan_spec()
        delta = Delta.unpack(messages.publication_of(body)[1], plan=plan)
        told = {"study_slug": SLUG, "plan_hash": plan_hash(plan), "voided_days": 0}
        added = [apply_publication(publication_id=publication, delta=delta, **told) for _ in range(2)]
        assert (added, visitors()) == ([True, False], 500)  # a worker that died sends it again
        record(LedgerKind.BATCH_ENDED, actor="olga", study=SLUG, facts={"rows_read": 3}, event_id=EVENT)
        fails("must run where MOBILITY_ZONE is analyst", "adopt_studies", "north")
        settings.HAS_VAULT = False
        fails("no sender 'west'", "adopt_studies", "west")
        call_command("adopt_studies", "north")
        state = north.state()
        assert (state["publications"], state["receipts"]) == ([str(publication)], [EVENT])
        assert north.publish(body, publication=publication).json() == {"is_new": False}
        assert (north.publish(body).json(), south.publish(body).status_code) == ({"is_new": True}, 404)
        owners = dict(SentStudy.objects.values_list("study__slug", "sender__name"))
        assert owners == {SLUG: "north", "of-south": "south"}
        assert adopt_studies("north", by="ada") == []  # nothing is left to adopt


def test_plan_and_bytes_of_a_message_cannot_mean_another(definition):
    public = messages.public_part(definition)
    assert PlanSpec.to_json(public.plan_spec()) == PlanSpec.to_json(definition.plan_spec())
    parts = {"kind": "state", "sender": "a", "study": "b", "item": "", "sent_at": 1, "digest": "0" * 64}
    other = {"kind": "study", "sender": "ab", "study": "a", "item": "b", "sent_at": 2, "digest": "1" * 64}
    seen = {Envelope(**parts).to_bytes()}
    seen |= {Envelope(**parts | {name: value}).to_bytes() for name, value in other.items()}
    assert len(seen) == 7


def test_a_cap_of_the_analyst_server_stops_a_study_that_is_handed_over(north, definition):
    spent = losses_of(definition.plan_spec()).profile
    cap = {"population": definition.population, "unit": "profile", "period": "ever", "by": "ada"}
    propose_cap(**cap, epsilon=(spent / 2).quantize(Decimal("0.01")))
    refused = north.create(definition)
    assert refused.status_code == 409 and "budget" in refused.json()["detail"]
    assert not Study.objects.exists()
    assert north.create(replace(definition, population="others")).status_code == 200

"""The intake: what operator zones that run apart may do, and all that must be refused without a trace."""

import json
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import Settings

from ldp import PlanSpec
from ldp.tallies import Delta
from reports import handover
from reports.composition import losses_of
from reports.handover import Envelope, Kind, digest_of, to_body
from reports.ledger_chain import canonical_hash
from reports.models import (
    Area,
    Indicator,
    LedgerEntry,
    Plan,
    PlanIndicator,
    Publication,
    Sender,
    Study,
    Tally,
    VisitorTally,
)
from reports.policies import Role
from reports.services.budgets import propose_cap
from reports.services.intake import register_sender
from reports.services.studies import ON_SERVER, Approval, create_study_rows, delete_study_rows, plan_hash
from reports.studyfile import StudyDefinition, parse_study

STUDY_FILE = Path(__file__).parents[3] / "mobility" / "demo" / "study.toml"
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


def parsed(text: str) -> StudyDefinition:
    read = lambda name: (STUDY_FILE.parent / name).read_bytes()  # noqa: E731
    return parse_study(text.encode(), filename="study.toml", read=read)


@pytest.fixture(scope="module")
def definition() -> StudyDefinition:
    return parsed(STUDY_FILE.read_text())


def body_of(definition: StudyDefinition, **changes: Any) -> bytes:
    spec = definition.plan_spec()
    given = {
        "plan_version": 1,
        "plan_hash": plan_hash(spec),
        "is_demo": False,
        "approval": ON_SERVER,
    } | changes
    return handover.study_body(definition, **given)


@dataclass
class Operator:
    """An operator zone, as the intake sees it."""

    client: Client
    name: str = "north"
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public_key(self) -> str:
        return b64encode(self.key.public_key().public_bytes_raw()).decode()

    def headers(
        self, kind: Kind, body: bytes, *, slug: str = SLUG, item: str = "", age_s: int = 0
    ) -> dict[str, str]:
        envelope = Envelope(
            kind=kind, sender=self.name, study=slug, item=item, sent_at=int(time.time()) - age_s,
            digest=digest_of(body),
        )  # fmt: skip
        return envelope.signed(self.key)

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> HttpResponse:
        return self.client.post(ROOT + path, body, content_type="application/octet-stream", headers=headers)

    def create(self, definition: StudyDefinition, **changes: Any) -> HttpResponse:
        body = body_of(definition, **changes)
        slug = definition.slug
        return self.post(slug, body, self.headers("study", body, slug=slug))

    def publish(self, body: bytes, *, publication: UUID, slug: str = SLUG) -> HttpResponse:
        headers = self.headers("publication", body, slug=slug, item=str(publication))
        return self.post(f"{slug}/publications/{publication}", body, headers)

    def state(self, slug: str = SLUG) -> dict[str, Any]:
        headers = self.headers("state", b"", slug=slug)
        response = self.client.get(f"{ROOT}{slug}/state", headers=headers)
        assert response.status_code == 200, response.content
        content: dict[str, Any] = response.json()
        return content


@pytest.fixture
def operator_zone(db: None, data_dir: Path) -> Operator:
    zone = Operator(Client())
    register_sender("north", public_key=zone.public_key, by="ada")
    return zone


@pytest.fixture
def other_zone(db: None, data_dir: Path) -> Operator:
    zone = Operator(Client(), name="south")
    register_sender("south", public_key=zone.public_key, by="ada")
    return zone


def delta_of(definition: StudyDefinition, *, n: int = 500) -> Delta:
    delta = Delta.zero(definition.plan_spec())
    delta.visitors[0, 1] = n
    delta.counts[0][1, 0, 1] = n // 4
    delta.n_reports[0][0, 1] = n // 4
    return delta


def publication_of(definition: StudyDefinition, *, n: int = 500, **changes: Any) -> bytes:
    packed = changes.pop("packed", None) or delta_of(definition, n=n).pack()
    given = {"number": 1, "plan_hash": plan_hash(definition.plan_spec()), "voided_days": 0} | changes
    return handover.publication_body(packed, **given)


def everything() -> dict[str, list[dict[str, Any]]]:
    """All rows of a study in the main database, but ids and times."""
    models: tuple[type[Model], ...] = (Study, Area, Indicator, Plan, PlanIndicator, Tally, VisitorTally)
    return {model.__name__: [plain(row) for row in model._default_manager.order_by("pk")] for model in models}


def plain(row: Model) -> dict[str, Any]:
    kept = {}
    for each in row._meta.concrete_fields:
        value = getattr(row, each.attname)
        if not (each.primary_key or each.is_relation or each.get_internal_type() == "DateTimeField"):
            kept[each.name] = bytes(value) if isinstance(value, memoryview) else value
    return kept


def visitors() -> int:
    return int(np.frombuffer(VisitorTally.objects.get(study__slug=SLUG).counts, "<i8").sum())


@pytest.mark.parametrize("places", [False, True])
def test_a_study_that_crossed_is_the_study_that_was_created(
    operator_zone: Operator, definition: StudyDefinition, places: bool
) -> None:
    if places:
        definition = parsed(STUDY_FILE.read_text() + PLACES)
        assert definition.location is not None
    approval = Approval(review="approved", by="paul", at=datetime(2017, 5, 1, 12, tzinfo=UTC))
    create_study_rows(definition, by="north", approval=approval, version=3)
    ours = everything()
    delete_study_rows(Study.objects.get())
    third = {"plan_version": 3, "plan_hash": plan_hash(definition.plan_spec(version=3))}
    assert operator_zone.create(definition, approval=approval, **third).json() == {"is_new": True}
    assert Plan.objects.get().reviewed_at == approval.at
    assert everything() == ours
    assert ours["Area"][0]["n_cells"] > 0
    assert (ours["Area"][0]["grid"] is not None) == places


def test_a_study_with_presence_noise_crosses_with_its_noise(
    operator_zone: Operator, definition: StudyDefinition
) -> None:
    noisy = parsed(
        STUDY_FILE.read_text().replace("[plan]", "[plan]\npresence_epsilon = 1.0\npresence_days = 7")
    )
    create_study_rows(noisy, by="north")
    ours = everything()
    delete_study_rows(Study.objects.get())
    assert operator_zone.create(noisy).json() == {"is_new": True}
    assert everything() == ours
    assert ours["Study"][0]["presence"] is not None
    exact = publication_of(noisy)
    assert operator_zone.publish(exact, publication=uuid4()).status_code == 409
    packed = replace(delta_of(noisy, n=-3), noisy_through=1).pack()
    first = publication_of(noisy, packed=packed)
    assert operator_zone.publish(first, publication=uuid4()).json() == {"is_new": True}
    assert visitors() == -3
    # A day whose noise was seen must not come again with other noise.
    assert operator_zone.publish(first, publication=uuid4()).status_code == 409
    assert visitors() == -3


def test_neither_cells_nor_columns_cross(definition: StudyDefinition) -> None:
    located = parsed(STUDY_FILE.read_text() + PLACES)
    body = body_of(located).decode()
    assert located.area is not None and located.location is not None
    assert not [cell.cell_id for cell in located.area.cells if f'"{cell.cell_id}"' in body]
    assert f'"{located.extract.subscriber}"' not in body
    assert '"cells":[' not in body
    assert '"places":[]' in body


def test_a_publication_is_added_once(operator_zone: Operator, definition: StudyDefinition) -> None:
    operator_zone.create(definition)
    body, publication = publication_of(definition), uuid4()
    assert operator_zone.publish(body, publication=publication).json() == {"is_new": True}
    assert visitors() == 500
    state = operator_zone.state()
    assert operator_zone.publish(body, publication=publication).json() == {"is_new": False}
    assert visitors() == 500
    assert operator_zone.state() == state
    assert state == {
        "study": SLUG, "is_known": True, "plan_hash": plan_hash(definition.plan_spec()),
        "publications": [str(publication)], "receipts": [], "is_closed": False,
    }  # fmt: skip
    received = LedgerEntry.objects.filter(kind="delta.received")
    assert [entry.facts["publication"] for entry in received] == [str(publication)]
    assert received[0].facts["sha256"] == digest_of(body)


def test_a_message_that_was_heard_changes_nothing_when_it_is_said_again(
    operator_zone: Operator, definition: StudyDefinition
) -> None:
    operator_zone.create(definition)
    publication = uuid4()
    body = publication_of(definition)
    headers = operator_zone.headers("publication", body, item=str(publication))
    for _ in range(3):
        operator_zone.post(f"{SLUG}/publications/{publication}", body, headers)
    assert visitors() == 500
    # The same words under another address are another message.
    other = operator_zone.post(f"{SLUG}/publications/{uuid4()}", body, headers)
    assert other.status_code == 401
    assert visitors() == 500


class TestRefused:
    """Nothing may change, and the answer says why."""

    @pytest.fixture(autouse=True)
    def _with_a_study(self, operator_zone: Operator, definition: StudyDefinition) -> None:
        operator_zone.create(definition)
        operator_zone.publish(publication_of(definition), publication=UUID(int=1))

    def refused(self, response: HttpResponse, status: int, words: str) -> None:
        assert response.status_code == status, response.content
        assert response["Content-Type"] == "application/problem+json"
        assert words in response.json()["detail"]
        assert visitors() == 500
        assert Publication.objects.count() == 1
        assert Study.objects.count() == 1

    def test_a_body_that_was_tampered_with(
        self, operator_zone: Operator, definition: StudyDefinition
    ) -> None:
        publication = uuid4()
        body = publication_of(definition)
        headers = operator_zone.headers("publication", body, item=str(publication))
        path = f"{SLUG}/publications/{publication}"
        self.refused(operator_zone.post(path, body[:-1] + b"\0", headers), 400, "not the one that was signed")
        self.refused(operator_zone.post(path, b"", headers), 411, "length")
        self.refused(operator_zone.post(path, b"x", headers), 400, "not the one that was signed")

    @pytest.mark.parametrize("header", [handover.TIME, handover.DIGEST, handover.SENDER, handover.SIGNATURE])
    def test_a_header_that_was_tampered_with(
        self, operator_zone: Operator, other_zone: Operator, definition: StudyDefinition, header: str
    ) -> None:
        publication = uuid4()
        body = publication_of(definition)
        headers = operator_zone.headers("publication", body, item=str(publication))
        wrong = {
            handover.TIME: str(int(headers[handover.TIME]) + 1),
            handover.DIGEST: digest_of(b""),
            handover.SENDER: "south",
            handover.SIGNATURE: b64encode(bytes(64)).decode(),
        }[header]
        path = f"{SLUG}/publications/{publication}"
        self.refused(operator_zone.post(path, body, headers | {header: wrong}), 401, "signature")

    @pytest.mark.parametrize("header", [handover.TIME, handover.DIGEST, handover.SENDER, handover.SIGNATURE])
    @pytest.mark.parametrize("text", ["", "x" * 100_000, "é\u0660", "-1", "../.."])
    def test_a_header_that_is_none(self, operator_zone: Operator, header: str, text: str) -> None:
        headers = operator_zone.headers("state", b"") | {header: text}
        response = operator_zone.client.get(f"{ROOT}{SLUG}/state", headers=headers)
        assert response.status_code in (400, 401)
        assert response["Content-Type"] == "application/problem+json"

    def test_a_message_of_another_kind(self, operator_zone: Operator) -> None:
        body = to_body({"closed_at": "2017-06-08T00:00:00+00:00", "certificate": {}})
        headers = operator_zone.headers("study", body)
        self.refused(operator_zone.post(f"{SLUG}/closed", body, headers), 401, "signature")
        assert not operator_zone.state()["is_closed"]

    def test_an_unknown_sender(self, definition: StudyDefinition) -> None:
        stranger = Operator(Client(), name="stranger")
        self.refused(stranger.publish(publication_of(definition), publication=uuid4()), 401, "not registered")
        assert stranger.create(replace(definition, slug="mine")).status_code == 401

    def test_a_stranger_is_refused_before_the_body_is_read(self, settings: Settings) -> None:
        settings.MOBILITY_INTAKE_MAX_BYTES = 10
        stranger = Operator(Client(), name="stranger")
        headers = stranger.headers("study", b"x" * 100)
        self.refused(stranger.post(SLUG, b"x" * 100, headers), 401, "not registered")

    def test_a_revoked_sender(self, operator_zone: Operator, definition: StudyDefinition) -> None:
        call_command("revoke_sender", "north")
        self.refused(operator_zone.publish(publication_of(definition), publication=uuid4()), 401, "revoked")

    @pytest.mark.parametrize("age_s", [301, 86_400, -301])
    def test_a_message_of_another_time(
        self, operator_zone: Operator, definition: StudyDefinition, age_s: int
    ) -> None:
        publication = uuid4()
        body = publication_of(definition)
        headers = operator_zone.headers("publication", body, item=str(publication), age_s=age_s)
        refusal = operator_zone.post(f"{SLUG}/publications/{publication}", body, headers)
        self.refused(refusal, 401, "set both clocks")

    def test_a_study_of_another_sender(self, other_zone: Operator, definition: StudyDefinition) -> None:
        self.refused(other_zone.publish(publication_of(definition), publication=uuid4()), 404, "no study")
        self.refused(other_zone.create(definition), 409, "choose another slug")
        closed = to_body({"closed_at": "2017-06-08T00:00:00+00:00", "certificate": {}})
        self.refused(
            other_zone.post(f"{SLUG}/closed", closed, other_zone.headers("closed", closed)), 404, "no study"
        )
        assert other_zone.state() == {"study": SLUG, "is_known": False}

    def test_a_study_of_this_installation(self, operator_zone: Operator, definition: StudyDefinition) -> None:
        Study.objects.update(slug="taken")
        create_study_rows(definition, by="ada")
        response = operator_zone.publish(publication_of(definition), publication=uuid4())
        assert response.status_code == 404
        assert operator_zone.create(definition).status_code == 409

    def test_a_body_that_is_too_large(
        self, operator_zone: Operator, definition: StudyDefinition, settings: Settings
    ) -> None:
        settings.MOBILITY_INTAKE_MAX_BYTES = 100
        self.refused(
            operator_zone.publish(publication_of(definition), publication=uuid4()), 413, "at most 100"
        )

    def test_another_plan(self, operator_zone: Operator, definition: StudyDefinition) -> None:
        stronger = replace(definition, plan=replace(definition.plan, epsilon=Decimal("0.5")))
        self.refused(
            operator_zone.publish(publication_of(stronger), publication=uuid4()),
            409,
            "no plan with this hash",
        )
        self.refused(operator_zone.create(stronger), 409, "plans with data are final")

    def test_totals_that_would_become_negative(
        self, operator_zone: Operator, definition: StudyDefinition
    ) -> None:
        body = publication_of(definition, n=-501)
        self.refused(operator_zone.publish(body, publication=uuid4()), 409, "would become negative")

    @pytest.mark.parametrize("n", [2**63 - 1, 2**63 - 400])
    def test_totals_that_would_overflow(
        self, operator_zone: Operator, definition: StudyDefinition, n: int
    ) -> None:
        body = publication_of(definition, n=n)
        self.refused(operator_zone.publish(body, publication=uuid4()), 409, "would become negative")

    @pytest.mark.parametrize("damage", ["none", "shape", "bomb", "cut", "junk"])
    def test_a_delta_that_is_none(
        self, operator_zone: Operator, definition: StudyDefinition, damage: str
    ) -> None:
        packed = delta_of(definition).pack()
        smaller = replace(definition, days=3)
        body = publication_of(
            definition,
            packed={
                "none": b"x",
                "shape": Delta.zero(smaller.plan_spec()).pack(),
                "bomb": packed[:5] + b"\xff\xff" + b"\xff\xff" * 255 + packed[-50:],
                "cut": packed[:-4],
                "junk": packed + b"x",
            }[damage],
        )
        self.refused(operator_zone.publish(body, publication=uuid4()), 422, "packed delta must")

    @pytest.mark.parametrize(
        "line",
        [b"", b"{}", b"[1]", b'{"number":1}', b"\xff", b"[" * 100_000,
         b'{"number":true,"plan_hash":"","voided_days":0}', b'{"number":1,"plan_hash":{},"voided_days":0}',
         b'{"number":1,"plan_hash":"","voided_days":-1}', b'{"number":1,"plan_hash":"","voided_days":1e9}'],
    )  # fmt: skip
    def test_a_publication_whose_head_is_none(self, operator_zone: Operator, line: bytes) -> None:
        refusal = operator_zone.publish(line + b"\nLDPD", publication=uuid4())
        self.refused(refusal, 422, "nothing was changed")

    def test_a_closed_study_takes_nothing(self, operator_zone: Operator, definition: StudyDefinition) -> None:
        Study.objects.update(state="closed", closed_at="2017-06-08T00:00:00Z")
        self.refused(operator_zone.publish(publication_of(definition), publication=uuid4()), 409, "closed")

    def test_other_methods(self, operator_zone: Operator) -> None:
        for method in ("get", "put", "delete", "head"):
            assert getattr(operator_zone.client, method)(ROOT + SLUG).status_code == 405
        assert operator_zone.client.post(f"{ROOT}{SLUG}/state").status_code == 405

    def test_a_session_opens_nothing(self, client: Client, person: Callable[..., Any]) -> None:
        client.force_login(person("adam", Role.ADMINISTRATOR))
        assert client.get(f"{ROOT}{SLUG}/state").status_code == 400


DAMAGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "another study": lambda content: content["definition"].update(slug="other"),
    "a name of numbers": lambda content: content["definition"].update(name=[1]),
    "a name of two lines": lambda content: content["definition"].update(name="a\nb"),
    "a name that is too long": lambda content: content["definition"].update(name="a" * 300),
    "too many days": lambda content: content["definition"].update(days=63),
    "a market share above one": lambda content: content["definition"].update(market_share="2"),
    "no number": lambda content: content["definition"].update(market_share="NaN"),
    "no date": lambda content: content["definition"].update(first_day="someday"),
    "no plan": lambda content: content["definition"].pop("plan"),
    "no indicators": lambda content: content["definition"].update(indicators=[]),
    "an indicator twice": lambda content: content["definition"]["indicators"].append(
        content["definition"]["indicators"][0]
    ),
    "an epsilon of zero": lambda content: content["definition"]["plan"].update(epsilon="0"),
    "a plan of another hash": lambda content: content.update(plan_hash="0" * 64),
    "a version of text": lambda content: content.update(plan_version="1"),
    "a review that nobody knows": lambda content: content["approval"].update(review="yes"),
    "an approval by nobody": lambda content: content["approval"].update(review="approved"),
    "an approval without a time": lambda content: content["approval"].update(
        review="approved", by="paul", at="2017-05-01"
    ),
    "unknown keys": lambda content: content["definition"].update(surprise=1),
    "an area of text": lambda content: content.update(area="Belfort"),
    "unknown fields of an area": lambda content: content["area"].update(id=1, surprise=2),
    "a study in the area": lambda content: content["area"].update(study_id=1),
    "a grid without a plan for it": lambda content: content["area"].update(grid={"x0_m": 0}),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_study_that_is_none_is_refused(
    operator_zone: Operator, definition: StudyDefinition, damage: str
) -> None:
    content = json.loads(body_of(definition))
    DAMAGED[damage](content)
    body = to_body(content)
    response = operator_zone.post(SLUG, body, operator_zone.headers("study", body))
    assert response.status_code == 422, response.content
    assert "nothing was changed" in response.json()["detail"]
    assert Study.objects.count() == Sender.objects.count() - 1 == 0


def test_a_study_without_data_gives_way_to_its_sender(
    operator_zone: Operator, definition: StudyDefinition
) -> None:
    operator_zone.create(definition)
    renamed = replace(definition, name="Renamed", first_day=date(2018, 6, 1))
    assert operator_zone.create(renamed).json() == {"is_new": True}
    assert Study.objects.get().name == "Renamed"
    assert operator_zone.create(renamed).json() == {"is_new": False}
    assert [entry.actor for entry in LedgerEntry.objects.filter(kind="study.created")] == ["sender north"] * 2


def test_the_demo_stays_the_demo(operator_zone: Operator, definition: StudyDefinition) -> None:
    operator_zone.create(definition, is_demo=True)
    assert Study.objects.get().is_demo


def test_a_study_is_closed_once_with_its_certificate(
    operator_zone: Operator, definition: StudyDefinition
) -> None:
    operator_zone.create(definition)
    body = to_body({"closed_at": "2017-06-08T10:00:00+00:00", "certificate": {"erased": {"pseudonyms": 3}}})
    headers = operator_zone.headers("closed", body)
    assert operator_zone.post(f"{SLUG}/closed", body, headers).json() == {"is_new": True}
    study = Study.objects.select_related("sent").get()
    assert (study.state, study.closed_at.isoformat()) == ("closed", "2017-06-08T10:00:00+00:00")  # type: ignore[union-attr]
    assert study.sent.certificate == {"erased": {"pseudonyms": 3}}
    assert operator_zone.post(f"{SLUG}/closed", body, headers).json() == {"is_new": False}
    assert operator_zone.state()["is_closed"]
    (entry,) = LedgerEntry.objects.filter(kind="study.closed")
    assert entry.facts["certificate_sha256"] == canonical_hash({"erased": {"pseudonyms": 3}})


@pytest.mark.parametrize("closed_at", [None, 1, "yesterday", "2017-06-08T10:00:00"])
def test_a_closing_without_a_time_is_refused(
    operator_zone: Operator, definition: StudyDefinition, closed_at: object
) -> None:
    operator_zone.create(definition)
    body = to_body({"closed_at": closed_at, "certificate": {}})
    response = operator_zone.post(f"{SLUG}/closed", body, operator_zone.headers("closed", body))
    assert response.status_code == 422
    assert Study.objects.get().state == "open"


EVENT = f"batch.ended/{UUID(int=5)}"


def receipts(*facts: dict[str, Any]) -> bytes:
    return handover.receipts_body({"event": EVENT, "facts": each} for each in facts)


def test_a_receipt_is_noted_once(operator_zone: Operator, definition: StudyDefinition) -> None:
    operator_zone.create(definition)
    body = receipts({"rows_read": 3, "key_left": False})
    for _ in range(2):
        response = operator_zone.post(f"{SLUG}/receipts", body, operator_zone.headers("receipts", body))
        assert response.status_code == 200, response.content
    (entry,) = LedgerEntry.objects.filter(kind="batch.ended")
    assert (entry.actor, entry.study, entry.facts["rows_read"]) == ("sender north", SLUG, 3)
    assert operator_zone.state()["receipts"] == [EVENT]


@pytest.mark.parametrize(
    "body",
    [
        b"[]", to_body({"receipts": 1}), to_body({"receipts": [1]}), to_body({"receipts": [{}] * 201}),
        to_body({"receipts": [{"event": "x", "facts": {}}]}),
        to_body({"receipts": [{"event": EVENT, "facts": 1}]}),
        receipts({"share": 0.5}), receipts({"text": "x" * 30_000}), receipts({"a": 1}, {"b": 1.5}),
        handover.receipts_body([{"event": f"sign_in.succeeded/{'-' * 36}\n", "facts": {}}]),
    ],
)  # fmt: skip
def test_a_receipt_that_is_none_is_refused(
    operator_zone: Operator, definition: StudyDefinition, body: bytes
) -> None:
    operator_zone.create(definition)
    response = operator_zone.post(f"{SLUG}/receipts", body, operator_zone.headers("receipts", body))
    assert response.status_code == 422, response.content
    assert not LedgerEntry.objects.filter(kind="batch.ended").exists()


def test_receipts_of_another_sender_are_refused(
    operator_zone: Operator, other_zone: Operator, definition: StudyDefinition
) -> None:
    operator_zone.create(definition)
    body = receipts({"rows_read": 3})
    assert other_zone.post(f"{SLUG}/receipts", body, other_zone.headers("receipts", body)).status_code == 404
    assert not LedgerEntry.objects.filter(kind="batch.ended").exists()


class TestSenders:
    @pytest.fixture(autouse=True)
    def _ledger(self, db: None, data_dir: Path) -> None:
        pass

    @pytest.mark.parametrize(
        ("name", "key"),
        [("North", "A" * 43 + "="), ("a b", "A" * 43 + "="), ("n", "AAAA"), ("n", "?"), ("n", "")],
    )
    def test_names_and_keys_have_a_form(self, name: str, key: str) -> None:
        with pytest.raises(CommandError, match="must"):
            call_command("register_sender", name, key)
        assert not Sender.objects.exists()

    def test_a_name_and_a_key_are_given_once(self) -> None:
        one, two = (Operator(Client()).public_key for _ in range(2))
        call_command("register_sender", "north", one)
        with pytest.raises(CommandError, match="name must be new"):
            call_command("register_sender", "north", two)
        with pytest.raises(CommandError, match="public key must be new"):
            call_command("register_sender", "south", one)
        assert [entry.facts["sender"] for entry in LedgerEntry.objects.filter(kind="sender.registered")] == [
            "north"
        ]

    def test_a_new_key_ends_what_the_old_one_could_do(self, definition: StudyDefinition) -> None:
        old = Operator(Client())
        call_command("register_sender", "north", old.public_key)
        old.create(definition)
        call_command("revoke_sender", "north")
        with pytest.raises(CommandError, match="public key must be new"):
            call_command("register_sender", "north", old.public_key, "--replace")
        new = Operator(Client())
        call_command("register_sender", "north", new.public_key, "--replace")
        body = publication_of(definition)
        assert old.publish(body, publication=uuid4()).status_code == 401
        assert new.publish(body, publication=uuid4()).json() == {"is_new": True}
        with pytest.raises(CommandError, match="no sender 'west'"):
            call_command("register_sender", "west", Operator(Client()).public_key, "--replace")

    def test_whom_nobody_knows_cannot_be_revoked(self) -> None:
        with pytest.raises(CommandError, match="no sender 'north'; senders: none yet"):
            call_command("revoke_sender", "north")


def test_canonical_bytes_cannot_mean_two_messages() -> None:
    parts = {"kind": "state", "sender": "a", "study": "b", "item": "", "sent_at": 1, "digest": "0" * 64}
    seen = {Envelope(**parts).to_bytes()}  # type: ignore[arg-type]
    for name, value in {
        "kind": "study",
        "sender": "ab",
        "study": "a",
        "item": "b",
        "sent_at": 2,
        "digest": "1" * 64,
    }.items():
        seen.add(Envelope(**parts | {name: value}).to_bytes())  # type: ignore[arg-type]
    assert len(seen) == 7


def test_plan_of_the_message_is_the_plan_that_is_read(definition: StudyDefinition) -> None:
    public = handover.public_part(definition)
    assert PlanSpec.to_json(public.plan_spec()) == PlanSpec.to_json(definition.plan_spec())


def test_a_cap_of_the_analyst_server_stops_a_study_that_is_handed_over(
    operator_zone: Operator, definition: StudyDefinition
) -> None:
    spent = losses_of(definition.plan_spec()).profile
    too_little = (spent / 2).quantize(Decimal("0.01"))
    propose_cap(population=definition.population, unit="profile", period="ever", epsilon=too_little, by="ada")
    refused = operator_zone.create(definition)
    assert refused.status_code == 409
    assert "budget" in refused.json()["detail"]
    assert not Study.objects.exists()
    assert operator_zone.create(replace(definition, population="others")).status_code == 200

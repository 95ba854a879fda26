"""The gate of the analyst zone for operator zones that run apart: signed messages in, each counted once.

A sender may create studies, and add to those that it created. Nothing that it sends changes another study.
IntakeError says of everything here that there is no such sender, that a study is none of its studies, or that
a message is malformed.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils import timezone

from ldp import LdpError, PlanError
from ldp.estimation.tallies import Delta
from reports.ledger.actions import LedgerFactsError, record
from reports.ledger.chain import Json, canonical_hash
from reports.ledger.models import LedgerEntry, LedgerKind
from reports.privacy.budget.actions import BudgetExceededError, check_budget
from reports.studies.geography.stored import GridMap
from reports.studies.models import Area, Study
from reports.studies.plan_models import Plan
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.parse import check_small_cells
from reports.studies.tally_models import Publication
from reports.transfer import messages
from reports.transfer.messages import Envelope, MessageError
from reports.transfer.models import Sender, SentStudy
from reports.transfer.publications import apply_publication
from reports.transfer.slots import PublicationError, put_zones, slots_of
from reports.transfer.studies import create_study_rows, delete_study_rows, mark_closed, plan_hash

P = ParamSpec("P")
R = TypeVar("R")
MAX_AGE_S: Final = 300  # between the clocks of both servers
# Errors of the code that builds a study from a malformed message.
MALFORMED: Final = (
    ArithmeticError, AttributeError, DatabaseError, KeyError, LdpError, TypeError, ValidationError,
    ValueError,
)  # fmt: skip


class IntakeError(Exception):
    """A message is refused and nothing was changed; `str()` says why, to the people of the sender."""

    def __init__(self, status: int, detail: str) -> None:
        self.status = status
        super().__init__(detail)


# --- senders ----------------------------------------------------------------------------------


@transaction.atomic
def register_sender(name: str, *, public_key: str, by: str, replaces: bool = False) -> Sender:
    """Let an operator zone hand over; IntakeError if name or key is out of its form, or taken.

    With `replaces`, a known sender, also a revoked one, has a new key from now on; it keeps its studies.
    """
    if not messages.SENDER_NAME.fullmatch(name):
        raise IntakeError(422, f"name must match {messages.SENDER_NAME.pattern}, got {name!r}")
    try:
        key = messages.checked_public_key(public_key)
    except MessageError as error:
        raise IntakeError(422, str(error)) from None
    known = Sender.objects.select_for_update(no_key=True).filter(name=name).first()
    if known is not None and not replaces:
        raise IntakeError(
            409, f"name must be new, got {name!r}: a sender has it; give it another key with --replace"
        )
    if known is None and replaces:
        raise _unknown(name)
    if Sender.objects.filter(public_key=key).exists():
        raise IntakeError(409, "public key must be new: a sender has it, or had it when it was revoked")
    sender = known or Sender(name=name)
    sender.public_key, sender.registered_by, sender.revoked_at = key, by, None
    sender.save()
    facts: dict[str, Json] = {"sender": name, "public_key": key, "is_replaced": replaces}
    record(LedgerKind.SENDER_REGISTERED, actor=by, facts=facts)
    return sender


def _unknown(name: str) -> IntakeError:
    known = ", ".join(Sender.objects.values_list("name", flat=True)) or "none yet"
    return IntakeError(404, f"no sender {name!r}; senders: {known}")


@transaction.atomic
def revoke_sender(name: str, *, by: str) -> Sender:
    """Take nothing more of a sender; its studies stay. Nothing happens when it is revoked already."""
    sender = Sender.objects.select_for_update(no_key=True).filter(name=name).first()
    if sender is None:
        raise _unknown(name)
    if sender.revoked_at is None:
        sender.revoked_at = timezone.now()
        sender.save(update_fields=["revoked_at"])
        record(LedgerKind.ACCESS_CHANGED, actor=by, facts={"sender": name, "change": "revoked"})
    return sender


@transaction.atomic
def adopt_studies(name: str, *, by: str) -> list[str]:
    """Give a sender every study that no sender handed over, and return their slugs.

    They were counted in this very database, which an operator zone shared until now. From here on that zone
    hands over what it adds; publications and receipts that are here already count as handed over.
    """
    sender = Sender.objects.select_for_update(no_key=True).filter(name=name, revoked_at=None).first()
    if sender is None:
        raise _unknown(name)
    studies = list(
        Study.objects.select_for_update(of=("self",), no_key=True).filter(sent=None).order_by("slug")
    )
    SentStudy.objects.bulk_create(SentStudy(study=study, sender=sender, digest="") for study in studies)
    for study in studies:
        facts: dict[str, Json] = {"sender": name, "change": "adopted"}
        record(LedgerKind.ACCESS_CHANGED, actor=by, study=study.slug, facts=facts)
    return [study.slug for study in studies]


def sender_of(envelope: Envelope, signature: str) -> Sender:
    """The sender that signed a message just now; IntakeError if unknown, revoked, or of another time."""
    sender = Sender.objects.filter(name=envelope.sender, revoked_at=None).first()
    if sender is None or not envelope.is_signed_by(sender.public_key, signature):
        raise IntakeError(
            401,
            "the sender is not registered here, or was revoked, or the signature was not made with its key",
        )
    age_s = timezone.now().timestamp() - envelope.sent_at
    if abs(age_s) > MAX_AGE_S:
        raise IntakeError(
            401,
            f"the message must be at most {MAX_AGE_S} s old, got {age_s:.0f} s by the clock of this server: "
            "set both clocks",
        )
    return sender


# --- messages ---------------------------------------------------------------------------------


def _refusing(work: Callable[P, R]) -> Callable[P, R]:
    """Turn what is wrong with a message into a refusal; the transaction is undone."""

    @wraps(work)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with transaction.atomic():
                return work(*args, **kwargs)
        except (MessageError, LdpError, LedgerFactsError) as error:
            raise IntakeError(422, f"{error}; nothing was changed") from None
        except (PublicationError, BudgetExceededError) as error:
            raise IntakeError(409, f"{error}; nothing was changed") from None

    return guarded


def state_of(sender: Sender, *, slug: str) -> dict[str, Any]:
    """Return the state of a sender's study here; of another one's no more than of none."""
    sent = SentStudy.objects.select_related("study").filter(sender=sender, study__slug=slug).first()
    if sent is None:
        return {"study": slug, "is_known": False}
    plan = Plan.objects.filter(study=sent.study).order_by("version").last()
    known = Publication.objects.filter(study=sent.study).order_by("pk")
    return {
        "study": slug,
        "is_known": True,
        "plan_hash": "" if plan is None else plan.spec_hash,
        "publications": [str(each) for each in known.values_list("publication_id", flat=True)],
        "receipts": [event.removeprefix(f"{sender.name}/") for event in _receipts(sender, slug)],
        "is_closed": sent.study.state == Study.State.CLOSED,
    }


def _receipts(sender: Sender, slug: str) -> Iterable[str]:
    """Return those that it sent, and those of an adopted study that were recorded here."""
    own = Q(event_id__startswith=f"{sender.name}/") | Q(event_id__startswith=f"{LedgerKind.BATCH_ENDED}/")
    found = LedgerEntry.objects.filter(own, kind=LedgerKind.BATCH_ENDED, study=slug)
    return found.order_by("number").values_list("event_id", flat=True)


@_refusing
def take_study(sender: Sender, *, slug: str, body: bytes) -> bool:
    """Create a study as a sender describes it; False when it is here already.

    One without data gives way to another description of the same sender, which gave up creating the first.
    IntakeError if the slug is taken, the study has data under another plan, a cap set here forbids it, or the
    message is malformed.
    """
    content = messages.from_body(body, keys=messages.STUDY_KEYS)
    digest = messages.digest_of(body)
    found = Study.objects.select_for_update().filter(slug=slug).first()
    if found is not None:
        sent = SentStudy.objects.filter(study=found, sender=sender).first()
        if sent is None:
            raise IntakeError(409, f'another study is named "{slug}" here: choose another slug')
        if sent.digest == digest:
            return False
        if Publication.objects.filter(study=found).exists():
            return _check_same_plan(found, content["plan_hash"])
        delete_study_rows(found)
    study = _created(sender, slug=slug, content=content)
    SentStudy.objects.create(study=study, sender=sender, digest=digest)
    record(
        LedgerKind.STUDY_CREATED,
        actor=_actor(sender),
        study=slug,
        facts={"plan_sha256": content["plan_hash"], "sha256": digest},
    )
    return True


def _check_same_plan(study: Study, wanted: object) -> bool:
    if not Plan.objects.filter(study=study, spec_hash=wanted).exists():
        raise IntakeError(
            409, "the study has data here, and its plan is different: plans with data are final"
        )
    return False


def _created(sender: Sender, *, slug: str, content: dict[str, Any]) -> Study:
    try:
        return _create(sender, slug=slug, content=content)
    except (MessageError, BudgetExceededError):
        raise
    except MALFORMED as error:
        text = f"the study cannot be created from this message ({type(error).__name__})"
        raise MessageError(text) from None


def _create(sender: Sender, *, slug: str, content: dict[str, Any]) -> Study:
    """Write the rows of a study; raises one of MALFORMED."""
    messages.check_french_names(content["definition"])  # of which the definition makes other types
    definition = StudyDefinition.from_json(content["definition"])
    _check_texts(definition, slug=slug)
    _check_small_cells(definition)
    version = content["plan_version"]
    spec = definition.plan_spec(version=version)
    if plan_hash(spec) != content["plan_hash"]:
        raise MessageError("plan_hash must be that of the plan in the definition, got a different one")
    by = _actor(sender)  # no account is called so
    with transaction.atomic():  # a refusal by the database leaves the outer transaction usable
        # The operator zone has separate caps; those of here apply to all senders together.
        check_budget(definition, by=by)
        approval = messages.approval_of(content["approval"])
        study = create_study_rows(
            definition, by=by, version=version, approval=approval, is_demo=content["is_demo"] is True
        )
        study.full_clean(validate_unique=False, validate_constraints=False)
        fields = messages.area_of(content["area"])
        if fields is not None:
            _check_grid(fields, definition)
            Area.objects.create(study=study, **fields)
        put_zones(study, [] if fields is None else fields["zones"])
    return study


def _check_texts(definition: StudyDefinition, *, slug: str) -> None:
    """JSON has other types than text where text is meant."""
    if definition.slug != slug or definition.area is not None:
        raise MessageError("the definition must be of the study in the address, without its cells")
    texts = [definition.name, definition.timezone]
    for each in definition.indicators:
        texts += [each.slug, each.name, *each.categories]
    if not all(map(messages.is_name, texts)):
        raise MessageError("names must be printable texts")


def _check_small_cells(definition: StudyDefinition) -> None:
    """No study file has noisy totals and small cells, and pages rely on it."""
    try:
        check_small_cells(definition)
    except PlanError as error:
        raise MessageError(str(error)) from None


def _check_grid(fields: dict[str, Any], definition: StudyDefinition) -> None:
    """The map of the grid must be that of the grid on which places are counted."""
    grid = None if definition.location is None else definition.location.grid
    if grid is None:
        if fields.get("grid") is not None:
            raise MessageError("grid must be absent where no places are reported")
        return
    found = GridMap.from_fields(
        grid=fields["grid"],
        zones=fields["grid_zones"],
        land=fields["grid_land"],
        at_antennas=fields["grid_at_antennas"],
    )
    if found.grid != grid:
        raise MessageError("grid must be that of the plan, got a different one")


@_refusing
def take_publication(sender: Sender, *, slug: str, publication_id: UUID, body: bytes) -> bool:
    """Add a publication to the totals; False when it had been added before.

    IntakeError if it is not a study of this sender, closed, of another plan, or the message is malformed.
    """
    head, packed, packed_slots = messages.publication_of(body)
    study = _study_of(sender, slug)
    if Publication.objects.filter(publication_id=publication_id, study=study).exists():
        return False
    if study.state == Study.State.CLOSED:
        raise IntakeError(409, "the study is closed: nothing can be added")
    plan = Plan.objects.filter(study=study, spec_hash=head["plan_hash"]).first()
    if plan is None:
        raise IntakeError(409, "the study has no plan with this hash: send the study first")
    delta = Delta.unpack(packed, plan=plan.parsed)
    slots = None if packed_slots is None else slots_of(study, packed_slots)
    if slots is not None and not (delta.is_zero and delta.noisy_through == 0):
        raise MessageError("a publication must bring totals or slots, got both")
    is_new = apply_publication(
        study_slug=slug,
        publication_id=publication_id,
        plan_hash=head["plan_hash"],
        delta=delta,
        voided_days=head["voided_days"],
        slots=slots,
    )
    facts: dict[str, Json] = {"publication": str(publication_id), "number": head["number"]}
    if not (
        study.small_cell or study.small_category
    ):  # as in `apply_publication`; the length of compressed data reveals it, too
        facts |= {"sha256": messages.digest_of(body), "bytes": len(body)}
    event = f"delta {publication_id}"
    record(LedgerKind.DELTA_RECEIVED, actor=_actor(sender), study=slug, facts=facts, event_id=event)
    return is_new


@_refusing
def take_receipts(sender: Sender, *, slug: str, body: bytes) -> None:
    """Add receipts of batches to the ledger, each once."""
    receipts = messages.receipts_of(body)
    study = _study_of(sender, slug)
    for event, facts in receipts:
        record(
            LedgerKind.BATCH_ENDED,
            actor=_actor(sender),
            study=study.slug,
            facts=facts,
            event_id=f"{sender.name}/{event}",
        )


@_refusing
def take_closed(sender: Sender, *, slug: str, body: bytes) -> bool:
    """Mark a study as closed and keep its certificate; False when that was done before."""
    content = messages.from_body(body, keys=frozenset({"certificate", "closed_at"}))
    closed_at = messages.time_of(content["closed_at"])
    if not isinstance(content["certificate"], dict):
        raise MessageError("certificate must be an object")
    study = _study_of(sender, slug)
    if study.state == Study.State.CLOSED:
        return False
    SentStudy.objects.filter(study=study).update(certificate=content["certificate"])
    mark_closed(study_slug=slug, closed_at=closed_at)
    record(
        LedgerKind.STUDY_CLOSED,
        actor=_actor(sender),
        study=slug,
        facts={"certificate_sha256": canonical_hash(content["certificate"]), "at": closed_at.isoformat()},
    )
    return True


def _actor(sender: Sender) -> str:
    """Return the actor as the ledger names it: no account is called so."""
    return f"sender {sender.name}"


def _study_of(sender: Sender, slug: str) -> Study:
    """A study that this sender has created, locked."""
    locked = Study.objects.select_for_update(of=("self",), no_key=True)
    owned = locked.filter(slug=slug, sent__sender=sender).first()
    if owned is None:
        raise IntakeError(404, f'no study "{slug}" of this sender exists here: send the study first')
    return owned

"""State of a draft for its reader: progress, the steps open to them, and the next one."""

from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext

from mobility.plans.drafts import approval_obstacle, discloses_values, may_review, reasons_of
from mobility.plans.models import PlanDraft

State = PlanDraft.State


class Next(StrEnum):
    """The step that is next, anyone who takes it."""

    FINISH = "finish"
    SUBMIT = "submit"
    REVIEW = "review"
    PUBLISH = "publish"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftState:
    """A draft as one person sees it.

    reasons : why it needs a second person; may be empty
    asks_second : whether this site asks for one
    may : steps that this person can take now, by their names in forms
    title : its state, in a few words
    words : what comes next, and by whom
    """

    draft: PlanDraft
    reasons: list[str]
    asks_second: bool
    next: Next
    may: frozenset[str]
    title: str
    words: str

    @property
    def is_mine(self) -> bool:
        """Return whether the next step is this person's."""
        steps = {"approve"} if self.next == Next.REVIEW else {str(self.next)}
        return bool(steps & self.may)

    @property
    def needs_second(self) -> bool:
        """Return whether no one can publish it before someone else approved it."""
        return bool(self.reasons) and self.asks_second


def state_of(draft: PlanDraft, *, by: str, is_administrator: bool, asks_second: bool) -> DraftState:
    """Return the state of a draft, for an account.

    Parameters
    ----------
    by : name of the account
    """
    reasons = reasons_of(draft) if draft.is_open else []
    asks_second = asks_second or discloses_values(draft)
    following = _next(draft, needs_second=bool(reasons) and asks_second)
    is_reviewer = following == Next.REVIEW and may_review(draft, by=by)
    obstacle = approval_obstacle(draft, by=by) if is_reviewer else ""
    is_reviewer = is_reviewer and not obstacle
    may = {"approve", "send_back"} if is_reviewer else set()
    if is_administrator:
        may |= {"edit", "withdraw"} if draft.is_open else set()
        may |= {str(following)} & {"submit", "publish", "finish"}
        if following == Next.PUBLISH and draft.state == State.DRAFT and draft.submitted_at is None:
            may |= {"submit"}  # no one has to look, but someone may
    return DraftState(
        draft=draft,
        reasons=reasons,
        asks_second=asks_second,
        next=following,
        may=frozenset(may),
        title=_title(draft, following),
        words=obstacle
        or _words(draft, following, is_reviewer=is_reviewer, is_administrator=is_administrator),
    )


def _next(draft: PlanDraft, *, needs_second: bool) -> Next:
    if draft.is_unfinished:
        return Next.FINISH
    if not draft.is_open:
        return Next.NOTHING
    if draft.state == State.REVIEWED:
        return Next.PUBLISH
    if draft.submitted_at is not None:
        return Next.REVIEW
    return Next.SUBMIT if needs_second else Next.PUBLISH


def _title(draft: PlanDraft, following: Next) -> str:
    if following == Next.REVIEW:
        return gettext("waiting for review")
    titles = {
        State.DRAFT: gettext("draft"),
        State.REVIEWED: gettext("approved"),
        State.PUBLISHED: gettext("published"),
        State.SUPERSEDED: gettext("superseded"),
        State.WITHDRAWN: gettext("withdrawn"),
    }
    return gettext("partly published") if following == Next.FINISH else titles[State(draft.state)]


def _words(draft: PlanDraft, following: Next, *, is_reviewer: bool, is_administrator: bool) -> str:
    values = {"by": draft.submitted_by, "reviewer": draft.reviewed_by, "ended": draft.ended_by}
    if following == Next.REVIEW:
        if is_reviewer:
            return gettext("Waiting for your review (requested by %(by)s).") % values
        return gettext(
            "Waiting for review by another administrator or a privacy officer who did not edit the draft."
        )
    if following == Next.PUBLISH:
        if not is_administrator:
            return gettext("An administrator can publish the draft.")
        if draft.state == State.REVIEWED:
            said = gettext(
                "%(reviewer)s approved the draft exactly as it is now. Publish the draft to put it into "
                "force."
            )
            return said % values
        return gettext("No further approval is needed. Publish the draft to put it into force.")
    if following == Next.SUBMIT:
        if is_administrator:
            return gettext("When the draft is ready, request a review.")
        return gettext("The author is still working on this draft.")
    if following == Next.FINISH:
        return gettext(
            "Publishing was interrupted before both databases were updated. It will resume automatically "
            "within a minute, or you can resume it now."
        )
    return _past(draft) % {**values, "published": draft.published_by}


def _past(draft: PlanDraft) -> str:
    if draft.state == State.WITHDRAWN:
        return gettext("%(ended)s withdrew the draft before it took effect.")
    if draft.state == State.SUPERSEDED:
        return gettext("%(published)s published this version, and %(ended)s replaced it with another one.")
    if draft.reviewed_by:
        return gettext("%(published)s published the draft after approval by %(reviewer)s.")
    return gettext("%(published)s published the draft.")

"""Next state of the form of a profile: the submitted values, and proposals for new fields."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mobility.extracts.profiles.definition import own_table
from mobility.extracts.profiles.parse import INDICATOR
from mobility.extracts.profiles.proposals import Proposal, Reason, propose
from mobility.extracts.profiles.sample import Sample
from mobility.extracts.profiles.timestamp_guess import timestamp_formats
from mobility.extracts.profiles.value_guess import bands_of, date_patterns, rule_draft
from mobility.uploads.profile_pages.draft import BIRTH_DATE, BIRTH_YEAR, TEXTS, Draft, draft_of
from reports.studies.studyfile import IndicatorDefinition, StudyDefinition
from reports.studies.studyfile.problems import Problems

Lists = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """A form that was sent for a sample."""

    lists: Lists
    sample: Sample
    definition: StudyDefinition

    def first(self, name: str) -> str:
        return next(iter(self.lists.get(name, [])), "")


def sent_proposal(
    lists: Lists, sample: Sample, *, definition: StudyDefinition, problems: Problems
) -> Proposal:
    """Proposal for a form: the first one where nothing was chosen yet.

    Parameters
    ----------
    lists : values by field, as `QueryDict.lists` gives them
    problems : grows by what cannot even be put into a draft
    """
    first = propose(sample, definition=definition)
    if "kind" not in lists:
        return first
    form = _Form(lists=lists, sample=sample, definition=definition)
    draft = draft_of(_without_stale(form), definition=definition, problems=problems)
    for indicator in definition.static_indicators:
        if indicator.slug in draft[INDICATOR]:
            draft[INDICATOR][indicator.slug] = _rule(form, draft[INDICATOR][indicator.slug], indicator)
    column = draft["columns"].get("timestamp", "")
    formats = timestamp_formats(sample.column(column), definition=definition)
    if draft["profile"]["kind"] == "events" and form.first("was-timestamp") != column:
        draft["profile"]["timestamp_format"] = formats[0] if len(formats) == 1 else ""
    return replace_reasons(Proposal(draft=draft, formats=formats), first)


def replace_reasons(proposal: Proposal, first: Proposal) -> Proposal:
    """Return the same with the reasons of the first proposal, where its choices remain."""
    reasons: dict[str, Reason] = {
        key: reason
        for key, reason in first.reasons.items()
        if _at(first.draft, key) == _at(proposal.draft, key)
    }
    return replace(proposal, reasons=reasons)


def _at(draft: Mapping[str, Any], key: str) -> Any:
    for part in key.split("."):
        draft = draft.get(part, {})
    return draft


def _without_stale(form: _Form) -> dict[str, list[str]]:
    """The form without what belongs to a column or a kind of rule that was chosen before."""
    kept = dict(form.lists)
    for indicator in form.definition.static_indicators:
        slug = indicator.slug
        is_same = form.first(f"was-rule-{slug}") == form.first(f"rule-{slug}")
        if form.first(f"was-column-{slug}") != form.first(f"column-{slug}"):
            stale = [
                name
                for name in kept
                if name.endswith(f"-{slug}") and name not in (f"column-{slug}", f"operator-{slug}")
            ]
        else:
            stale = [] if is_same else [f"text-{slug}", f"meaning-{slug}", f"more-{slug}"]
        for name in stale:
            kept.pop(name, None)
    return kept


def _rule(form: _Form, rule: Draft, indicator: IndicatorDefinition) -> Draft:
    """The rule that was sent, and proposals for a column or a kind of rule that is new."""
    if own_table(indicator) is not None:
        return rule
    slug = indicator.slug
    texts = form.sample.column(rule["column"])
    reference = form.definition.first_day
    if form.first(f"was-column-{slug}") != rule["column"]:
        return {"column": rule["column"], **rule_draft(texts, indicator.categories, reference=reference)}
    kind = form.first(f"rule-{slug}") or TEXTS
    if kind in (BIRTH_YEAR, BIRTH_DATE) and f"band-{slug}" not in form.lists:
        birth: Draft = {"reference": reference, "bands": bands_of(indicator.categories)}
        if kind == BIRTH_DATE:
            patterns = date_patterns([text for text in texts if text], reference=reference)
            birth["pattern"] = patterns[0] if len(patterns) == 1 else ""
        return {**rule, kind: birth}
    return rule

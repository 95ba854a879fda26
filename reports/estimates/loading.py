"""Tallies as they are stored, read into arrays that are ready to be cut into windows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from django.db.models import Q

from ldp import GrrChannel, IndicatorSpec, PlanSpec
from ldp.estimation.classes import ClassChannel, ClassReports
from ldp.estimation.tallies import class_blocks
from ldp.estimation.unions import union
from ldp.estimation.windows import IndicatorTallies, Window
from ldp.privacy.plans import AnswerChannel, ReportChannel
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.partial.regions import RegionChannel
from ldp.protocols.partial.sensitive import SensitiveChannel
from ldp.protocols.projective_space import value_counts, value_reports
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.repeated.renewed import rounds_of
from ldp.protocols.two_round import TwoRoundGrr
from reports.estimates.models import DayNote
from reports.estimates.noise import AnswerNoise, answer_noise
from reports.estimates.small_categories import Hidden
from reports.studies.models import Indicator
from reports.studies.plan_models import Plan
from reports.studies.queries import Counts, class_visitors, counts_of, visitors_of
from reports.studies.tally_models import Tally, VisitorTally


class ChannelsError(ValueError):
    """Asked for tallies as the library compares them: by one channel that treats all values alike."""


class ClassesError(ChannelsError):
    """In a study with classes each class has a channel."""


class DisclosedError(ChannelsError):
    """Where answers disclose groups or categories, each has its own probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTallies:
    """Tallies of one class: reports by category, all reports, visitors, and the channel of its answers."""

    counts: Counts
    n_reports: Counts
    visitors: Counts
    channel: ClassChannel

    def n_visitors(self, window: Window) -> int:
        """Return the visitors of the class in a window."""
        return int(union(self.visitors, **window._asdict()))

    def reports(self, window: Window) -> ClassReports:
        """Return the reports of a window."""
        days = window._asdict()
        return ClassReports(
            counts=union(self.counts, **days),
            n_reports=int(union(self.n_reports, **days)),
            n_visitors=self.n_visitors(window),
            channel=self.channel,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Tallies of one indicator, ready to be cut into windows.

    codes, counts : by code, as they are stored, and by category; those of GRR and OUE are the same
    by_category : reports about each category: of a number those on its cut, else `n_reports`
    classes : of a study with classes; then codes and counts are sums of reports by different channels, which
        say nothing of shares
    parts : of a joint indicator in a study with small categories: its parts
    hidden : by window, what the small-category rule hides, as far as it was asked for
    """

    indicator: Indicator
    plan: Plan
    spec: IndicatorSpec
    channel: ReportChannel
    is_unary: bool
    has_fakes: bool
    codes: Counts
    counts: Counts
    n_reports: Counts
    by_category: Counts
    visitors: Counts
    notes: tuple[DayNote, ...]
    noise: AnswerNoise | None
    classes: tuple[ClassTallies, ...] = ()
    parts: tuple["Loaded", ...] = ()
    hidden: dict[Window, Hidden | None] = field(default_factory=dict)

    @property
    def outages(self) -> frozenset[int]:
        return frozenset(note.day for note in self.notes if note.kind == DayNote.Kind.OUTAGE)


def load(indicators: Sequence[Indicator]) -> list[Loaded]:
    """Newest tallies of some indicators, with the visitors.

    One statement reads them all: between two, a publication could land, and there would be more answers than
    visitors.
    """
    limited = {each.study_id for each in indicators if each.study.small_category}
    asked = Q(indicator__in=indicators) | Q(indicator__study__in=limited)
    rows = Tally.objects.filter(asked).select_related("indicator__study", "plan__study__visitor_tally")
    # Sorted here: a database would copy the tallies, which are megabytes, to sort a few rows.
    newest = {tally.indicator_id: tally for tally in sorted(rows, key=lambda tally: tally.plan.version)}
    notes: defaultdict[int, list[DayNote]] = defaultdict(list)
    studies = {indicator.study_id for indicator in indicators}
    for note in DayNote.objects.filter(study__in=studies).select_related("study"):
        notes[note.study_id].append(note)
    found = [
        _decode(indicator, newest[indicator.pk], notes=notes[indicator.study_id]) for indicator in indicators
    ]
    return [_with_parts(each, newest.values()) if limited and each.spec.parts else each for each in found]


def _with_parts(loaded: Loaded, tallies: Iterable[Tally]) -> Loaded:
    """Add the parts of a joint indicator, of the same publication."""
    study = loaded.indicator.study_id
    of_slug = {each.indicator.slug: each for each in tallies if each.indicator.study_id == study}
    parts = (of_slug[slug] for slug in loaded.spec.parts)
    return replace(loaded, parts=tuple(_decode(each.indicator, each, notes=()) for each in parts))


def _decode(indicator: Indicator, tally: Tally, *, notes: Sequence[DayNote]) -> Loaded:
    plan = tally.plan.parsed
    index = plan.index(indicator.slug)
    spec = plan.indicators[index]
    channel = plan.channel(index)
    codes = counts_of(tally.counts, shape=(plan.tally_sizes[index], *plan.tally_shape))
    n_reports = counts_of(tally.n_reports, shape=plan.tally_shape)
    classes = _classes(plan, index, codes, tally.plan.study.visitor_tally) if plan.classes else ()
    if classes:
        codes = np.sum([each.counts for each in classes], axis=0)
    return Loaded(
        indicator=indicator,
        plan=tally.plan,
        spec=spec,
        channel=channel,
        is_unary=any(not _names_one(own.answer_channel(index)) for own in plan.of_classes),
        has_fakes=plan.has_fakes,
        counts=value_counts(codes, channel=channel),
        codes=codes,
        n_reports=n_reports,
        by_category=value_reports(codes, n_reports, channel=channel),
        visitors=visitors_of(tally.plan.study.visitor_tally),
        notes=tuple(notes),
        noise=answer_noise(plan, tally.plan.study),
        classes=classes,
    )


def _classes(plan: PlanSpec, index: int, blocks: Counts, visitors: VisitorTally) -> tuple[ClassTallies, ...]:
    own = class_blocks(blocks, n_classes=len(plan.classes))
    here = class_visitors(visitors, plan)
    channels = [each.answer_channel(index) for each in plan.of_classes]
    return tuple(
        ClassTallies(counts=block[:-1], n_reports=block[-1], visitors=people, channel=channel)
        for block, people, channel in zip(own, here, channels, strict=True)
        if isinstance(channel, ClassChannel)
    )


def _names_one(channel: AnswerChannel) -> bool:
    """Return whether an answer names one category: also that of an only question with one answer for each."""
    if isinstance(channel, RegionChannel):
        return all(map(_names_one, channel.of_regions))
    if isinstance(channel, QuestionChannel):
        return channel.n_questions == 1 and channel.groups == channel.domain_size
    return isinstance(channel, GrrChannel | TwoRoundGrr | SensitiveChannel)


def strata_of(loaded: Loaded) -> tuple[IndicatorTallies, ...]:
    """Return tallies of each class of people; without classes those of all. DisclosedError as below."""
    if not loaded.classes:
        return (tallies_of(loaded),)
    return tuple(
        IndicatorTallies(
            counts=each.counts,
            n_reports=each.n_reports,
            visitors=each.visitors,
            kind=loaded.spec.kind,
            channel=each.channel,
            small_cell=loaded.indicator.study.small_cell,
        )
        for each in loaded.classes
    )


def tallies_of(loaded: Loaded) -> IndicatorTallies:
    """Return tallies as input of the library's comparisons; only of exact counts; of a number by code.

    ChannelsError in a study with classes, and where answers disclose something.
    """
    if loaded.classes:
        raise ClassesError(f"{loaded.indicator.slug} has a channel for each class")
    if loaded.spec.discloses:
        raise DisclosedError(f"{loaded.indicator.slug} discloses groups or categories")
    return IndicatorTallies(
        counts=loaded.codes if isinstance(loaded.channel, ThresholdChannel | WaveChannel) else loaded.counts,
        n_reports=loaded.n_reports,
        visitors=loaded.visitors,
        # Reports on a value that lasts are daily ones where each day has its own noise.
        kind=loaded.spec.kind if rounds_of(loaded.channel) is None else "daily",
        channel=loaded.channel,
        small_cell=loaded.indicator.study.small_cell,
    )

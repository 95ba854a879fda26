"""Plans: what is asked, by which mechanism, at which epsilon. Validated once, here, and immutable."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Any, Final, Literal, Self, get_args

from ldp.errors import InvalidDomainError, LdpError, PlanError
from ldp.geo.location import LocationSpec
from ldp.privacy.classes import OF_CLASSES, ClassSpec, check_classes
from ldp.privacy.first_reports import FirstReports
from ldp.privacy.joint import SIDES, joint_size
from ldp.privacy.moves import MoveSpec
from ldp.privacy.presence import CountNoise, PresenceSpec
from ldp.privacy.slots import SlotSpec
from ldp.privacy.streams import check_window, most_answers
from ldp.protocols.adaptive import adp_channel
from ldp.protocols.channels import (
    WORD,
    GrrChannel,
    Unit,
    check_domain_size,
    check_epsilon,
    exact_text,
    exp_down,
    grr_channel,
)
from ldp.protocols.fake_data import FakeDataChannel, FakeProtocol, fake_data_channel
from ldp.protocols.faked_reports import FakedChannel
from ldp.protocols.numbers.threshold import Scale, ThresholdChannel, threshold_channel
from ldp.protocols.numbers.wave import WaveChannel, wave_channel
from ldp.protocols.partial.regions import RegionChannel, check_regions, region_channel
from ldp.protocols.partial.sensitive import SensitiveChannel, check_sensitive, sensitive_channel
from ldp.protocols.projective import CodeChannel, ProjectiveChannel, code_channel
from ldp.protocols.repeated.hashed import hash_channel
from ldp.protocols.repeated.question import QuestionChannel, question_channel
from ldp.protocols.repeated.renewed import RenewedChannel, renewed_channel
from ldp.protocols.two_round import TwoRoundGrr
from ldp.protocols.two_round_unary import TwoRoundUnary
from ldp.protocols.unary import UnaryChannel, oue_channel

PresenceTally = Literal["visits", "runs"]
Mechanism = Literal[
    "smp-grr",
    "spl-grr",
    "smp-oue",
    "smp-adp",
    "smp-question",
    "smp-loloha",
    "smp-allomfree",
    "smp-stream",
    "rsfd-grr",
    "rsfd-ouez",
    "rsfd-adp",
]
Kind = Literal["static", "daily"]
AnswerChannel = (
    CodeChannel
    | UnaryChannel
    | ThresholdChannel
    | WaveChannel
    | QuestionChannel
    | RegionChannel
    | RenewedChannel
    | SensitiveChannel
)
ReportChannel = AnswerChannel | FakedChannel

PRESENCE_TALLIES: Final[tuple[PresenceTally, ...]] = get_args(PresenceTally)
MAX_DAYS = 62
MAX_EVENT_DAYS = 7_320  # twenty years
MAX_INDICATORS = 255  # the indicator is one byte of the keyed block
MAX_VERSION = 255  # so is the plan version
MAX_TALLY_CELLS = 8_000_000  # of one indicator: 64 MB, read and written whole
MAX_TALLY_ROWS = 65_535  # two bytes in a packed delta
MAX_PARTS = 3
MAX_EVENTS = 1000  # of a person that are answered
HASHED: Final[Mechanism] = "smp-loloha"
RENEWED: Final[Mechanism] = "smp-allomfree"
OF_FIRST: Final[tuple[Mechanism, ...]] = (HASHED, RENEWED)  # reports have less than all epsilon of an answer
STREAM: Final[Mechanism] = "smp-stream"
DISCLOSING: Final[tuple[Mechanism, ...]] = ("smp-grr", "smp-oue", "smp-adp")
_NAMED: Final = (GrrChannel, UnaryChannel, TwoRoundGrr, TwoRoundUnary)  # a code or a bit is that of a value
OF_EVENTS: Final[tuple[Mechanism, ...]] = ("smp-grr", "smp-oue", "smp-adp", "spl-grr")

ORACLES: Final[dict[str, Callable[..., AnswerChannel]]] = {
    "grr": grr_channel,
    "oue": oue_channel,
    "adp": adp_channel,
}
FAKED: Final[dict[str, FakeProtocol]] = {"rsfd-grr": "grr", "rsfd-ouez": "ouez", "rsfd-adp": "adp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorSpec:
    """One indicator of a plan; epsilon is the nominal one of one answer.

    A joint indicator has `parts`, slugs of two or three others: its value is the combination of theirs, with
    one more value of each part for "no value" (`ldp.privacy.joint`). It is daily if one of them is. Of two
    parts, one may be a number. A number has a `scale`, and as domain_size its number of cuts. One of `moves`
    is daily, and has their size. With square-wave reports (`Scale.report`) each person has one number in the
    study, and it is no part of another indicator. One `by_code` has categories whose value is reported by
    the more exact of GRR and projective response, also where others have another oracle; under smp only.
    With `regions`, the region of each category by number, reports disclose the region of a person's category,
    and hide which one of its categories it is. With `sensitive`, the codes of some categories, reports hide
    these, and disclose all others.
    `lookup` is the SHA-256 (64 hexadecimal digits) of the file that gives people their categories, or empty.

    Raises
    ------
    InvalidBudgetError : epsilon is out of [0.000001, 64]
    InvalidDomainError : domain_size is out of [2, 65534]
    PlanError : any other rule
    """

    slug: str
    kind: Kind
    domain_size: int
    epsilon: Fraction
    max_values: int | None = None
    parts: tuple[str, ...] = ()
    scale: Scale | None = None
    moves: MoveSpec | None = None
    by_code: bool = False
    lookup: str = ""
    regions: tuple[int, ...] = ()
    sensitive: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.slug:
            raise PlanError("slug of an indicator must not be empty")
        if self.kind not in get_args(Kind):
            raise PlanError(f"kind of {self.slug} must be one of {get_args(Kind)}, got {self.kind!r}")
        check_domain_size(self.domain_size)
        check_epsilon(self.epsilon)
        if self.kind == "static" and self.max_values is not None:
            raise PlanError(
                f"max_values of {self.slug} must be absent for a static indicator, got {self.max_values}"
            )
        if self.scale is not None and (self.parts or self.domain_size != len(self.scale.cuts)):
            raise PlanError(
                f"{self.slug} must have no parts and domain_size {len(self.scale.cuts)}, its number of cuts, "
                f"got {self.parts} and {self.domain_size}"
            )
        if self.moves is not None:
            self._check_moves(self.moves)
        self._check_disclosed()
        is_plain = self.kind == "static" and not self.parts and self.scale is None
        if self.lookup and not (is_plain and re.fullmatch("[0-9a-f]{64}", self.lookup)):
            raise PlanError(
                f"lookup of {self.slug} must be the SHA-256 of a file, and the indicator static and of one "
                f"column, got {self.lookup!r}"
            )

    def _check_disclosed(self) -> None:
        if not self.discloses:
            return
        special: dict[str, Any] = {"parts": self.parts, "cuts": self.scale, "moves": self.moves}
        special |= {"by_code": self.by_code}
        special |= {"regions": self.regions if self.sensitive else ()}
        for name, asked in special.items():
            if asked:
                raise PlanError(f"{name} of {self.slug} must be absent where reports disclose something")
        if self.sensitive:
            check_sensitive(self.sensitive, domain_size=self.domain_size)
            return
        if len(self.regions) != self.domain_size:
            raise PlanError(
                f"regions of {self.slug} must be of {self.domain_size} categories, got {len(self.regions)}"
            )
        try:
            check_regions(self.regions)
        except InvalidDomainError as error:
            raise PlanError(f"regions of {self.slug}: {error}") from error

    def _check_moves(self, moves: MoveSpec) -> None:
        if self.kind != "daily" or self.parts or self.scale:
            raise PlanError(f"{self.slug} must be daily, without parts and cuts, to ask for moves")
        if self.domain_size != moves.size:
            raise PlanError(f"domain_size of {self.slug} must be {moves.size}, got {self.domain_size}")

    @property
    def discloses(self) -> bool:
        """Return whether a report may tell something of the category for certain."""
        return bool(self.regions or self.sensitive)

    @property
    def is_wave(self) -> bool:
        """Return whether reports are those of the square wave, of which a person gives one."""
        return self.scale is not None and self.scale.is_wave

    @property
    def part_size(self) -> int:
        """Number of values as a part of a joint indicator."""
        return self.domain_size if self.scale is None else SIDES

    @property
    def n_values(self) -> int:
        """True values that reports distinguish: of a number its levels, one more than it has cuts."""
        return self.domain_size + (self.scale is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSpec:
    """A frozen plan: the only thing a sanitiser, an estimator and an accountant read.

    Parameters
    ----------
    mechanism : who answers (smp: each person one indicator; spl: all; rsfd: one, with fake reports on the
        others) and how (grr; oue: unary encoding; adp: the one with the smaller variance; question: of daily
        values one permanent question, loloha: a hash of them with fresh noise every day, stream: one day of
        each window with fresh noise, all three: of static ones the code with the smallest variance;
        allomfree: of static values a report for each day, with fresh noise, of daily ones as loloha)
    unit : "profile" or "attribute"; what the promise is about
    version : int; in [1, 255]
    days : int; days of the study, in [1, 62]
    indicators : tuple of IndicatorSpec; 1 to 255, slugs unique; rsfd: of one epsilon
    epsilon : Fraction; rsfd only: what is promised for the unit, where answers may have more; else None
    shares : tuple of int, shape (d,), or None; smp only: how often each indicator is asked, probabilities
        times 2**64; None = equally
    location : LocationSpec or None; a noisy place a day, which everyone also reports; None =
        none
    presence : PresenceSpec or None; noise on the counts themselves, which hides who was there; None = counts
        are exact
    tallies : further tallies of presence, in the order of PresenceTally (`ldp.estimation.tallies`); exact, so
        none with presence noise
    slots : SlotSpec or None; counts by slot and zone, with separate noise; None = none
    first : FirstReports or None; smp-loloha and smp-allomfree only: of the fresh noise
    window_days : int or None; smp-stream only: consecutive days on which a person answers once, in [1, days]
    events : bool; units are events instead of people: each is there on one day, so that every sum of days
        counts it once. Then days are in [1, 7320], and indicators are static and have categories
    classes : tuple of ClassSpec; smp-grr, smp-oue and smp-adp only: 2 to 20, the largest epsilon that of all
        indicators, which have categories of a column or a day. So all else in the plan describes the
        class that loses most; `of_class` is the plan of the people of one class
    max_events : int or None; of a plan of events: most events of a person that are answered, in [1, 1000];
        None = all, and nothing is promised of a person

    Raises
    ------
    PlanError

    Notes
    -----
    Under smp-stream all of a person's answers to daily indicators have fresh noise: what keeps an answer to a
    daily value (numbers, places), and moves, which are reported every day, are refused. The `max_values` of a
    daily indicator is then the number of answers that a study of these days has.
    With fake data and the unit attribute all indicators are static: a fake stays when the value changes, so a
    report that changes would be the answer.
    """

    mechanism: Mechanism
    unit: Unit
    version: int
    days: int
    indicators: tuple[IndicatorSpec, ...]
    epsilon: Fraction | None = None
    shares: tuple[int, ...] | None = None
    location: LocationSpec | None = None
    presence: PresenceSpec | None = None
    tallies: tuple[PresenceTally, ...] = ()
    slots: SlotSpec | None = None
    first: FirstReports | None = None
    window_days: int | None = None
    events: bool = False
    classes: tuple[ClassSpec, ...] = ()
    max_events: int | None = None

    def __post_init__(self) -> None:
        if self.mechanism not in get_args(Mechanism):
            raise PlanError(f"mechanism must be one of {get_args(Mechanism)}, got {self.mechanism!r}")
        if self.unit not in get_args(Unit):
            raise PlanError(f"unit must be one of {get_args(Unit)}, got {self.unit!r}")
        _check_range("version", self.version, low=1, high=MAX_VERSION)
        _check_range("days", self.days, low=1, high=MAX_EVENT_DAYS if self.events else MAX_DAYS)
        most = MAX_INDICATORS - (self.location is not None)  # its tally is one more
        _check_range("number of indicators", len(self.indicators), low=1, high=most)
        slugs = [spec.slug for spec in self.indicators]
        for slug in slugs:
            if slugs.count(slug) > 1:
                raise PlanError(f"slug of an indicator must be unique, got {slug!r} twice")
        for spec in self.indicators:
            if spec.max_values is not None:
                _check_range(f"max_values of {spec.slug}", spec.max_values, low=1, high=self.days)
        if self.location is not None and self.location.max_values is not None:
            _check_range("max_values of the location", self.location.max_values, low=1, high=self.days)
        if self.shares is not None:
            self._check_shares(self.shares)
        self._check_events()
        self._check_classes()
        self._check_disclosed()
        self._check_parts()
        self._check_first()
        self._check_renewed()
        self._check_stream()
        self._check_questions()
        self._check_tallies()
        if self.presence is not None:
            self._check_presence(self.presence)
        if self.has_fakes:
            self._check_fakes()
        elif self.epsilon is not None:
            raise PlanError(f"epsilon of a {self.mechanism} plan must be absent, got {self.epsilon}")

    def _check_events(self) -> None:
        """Raise PlanError for what needs people who are there on several days, or needs events."""
        if not self.events:
            if self.max_events is not None:
                raise PlanError(f"max_events must be absent in a plan of people, got {self.max_events}")
            return
        if self.mechanism not in OF_EVENTS:
            raise PlanError(
                f"mechanism of a plan of events must be one of {OF_EVENTS}, got {self.mechanism!r}"
            )
        if self.max_events is not None:
            _check_range("max_events", self.max_events, low=1, high=MAX_EVENTS)
        for spec in self.indicators:
            if spec.kind != "static" or spec.parts or spec.scale is not None:
                raise PlanError(f"{spec.slug} must be static, without parts and cuts, in a plan of events")
        of_people = {
            "location": self.location,
            "presence_epsilon": self.presence,
            "tallies": self.tallies,
            "slots": self.slots,
        }
        for name, asked in of_people.items():
            if asked:
                raise PlanError(
                    f"{name} must be absent in a plan of events: an event is there on one day only"
                )

    def _check_classes(self) -> None:
        """Raise PlanError for what has no blocks of classes in its tallies, or would fill them."""
        if not self.classes:
            return
        if self.mechanism not in OF_CLASSES:
            raise PlanError(
                f"mechanism of a plan with classes must be one of {OF_CLASSES}, got {self.mechanism!r}"
            )
        absent: list[tuple[str, Any]] = [
            ("location", self.location),
            ("presence_epsilon", self.presence),
            ("slots", self.slots),
            ("events", self.events),
        ]
        for spec in self.indicators:
            absent += [
                (f"parts of {spec.slug}", spec.parts),
                (f"cuts of {spec.slug}", spec.scale),
                (f"moves of {spec.slug}", spec.moves),
                (f"by_code of {spec.slug}", spec.by_code),
            ]
        for name, asked in absent:
            if asked:
                raise PlanError(f"{name} must be absent in a plan with classes")
        for spec in self.indicators:
            check_classes(self.classes, epsilon=spec.epsilon)
            rows = len(self.classes) * (spec.domain_size + 1)
            if rows > min(MAX_TALLY_CELLS // prod(self.tally_shape), MAX_TALLY_ROWS):
                raise PlanError(
                    f"categories of {spec.slug} must be fewer, or the classes or days: a tally has at most "
                    f"{MAX_TALLY_CELLS} cells, got {rows} for each pair of days"
                )

    def _check_disclosed(self) -> None:
        """Raise PlanError for what has no estimates from reports that tell something for certain."""
        for spec in self.indicators:
            if not spec.discloses:
                continue
            if self.mechanism not in DISCLOSING:
                raise PlanError(
                    f"mechanism of a plan that discloses must be one of {DISCLOSING}, got {self.mechanism!r}"
                )
            absent = {"presence_epsilon": self.presence, "classes": self.classes, "events": self.events}
            for name, asked in absent.items():
                if asked:
                    raise PlanError(f"{name} must be absent: reports on {spec.slug} disclose something")
            if spec.domain_size > self.max_codes:
                raise PlanError(
                    f"categories of {spec.slug} must be <= {self.max_codes}, got {spec.domain_size}"
                )

    def _check_parts(self) -> None:
        whole = {spec.slug: spec for spec in self.indicators if not (spec.parts or spec.moves)}
        seen: dict[frozenset[str], str] = {}
        for spec in self.indicators:
            special = {"cuts": spec.scale, "moves": spec.moves, "parts": spec.parts, "by_code": spec.by_code}
            for name, asked in special.items():
                if asked and not self.is_sampled:
                    raise PlanError(f"{name} of {spec.slug} must be absent under {self.mechanism}: use smp")
            if spec.is_wave and self.values_per_person(self.index(spec.slug)) > 1:
                raise PlanError(
                    f"report of {spec.slug} must not be wave where a person reports on "
                    f"{self.values_per_person(self.index(spec.slug))} days: each would lose all of epsilon "
                    "again, and threshold reports lose it twice at most; use threshold, or max_values 1"
                )
            if not spec.parts:
                continue
            if not 2 <= len(set(spec.parts)) == len(spec.parts) <= MAX_PARTS:
                raise PlanError(f"parts of {spec.slug} must be 2 to {MAX_PARTS} indicators, got {spec.parts}")
            for part in spec.parts:
                if part not in whole:
                    raise PlanError(f"parts of {spec.slug} must be indicators without parts, got {part!r}")
                if whole[part].discloses:
                    raise PlanError(f"parts of {spec.slug} must disclose nothing, got {part!r}")
            kind = "daily" if any(whole[part].kind == "daily" for part in spec.parts) else "static"
            if spec.kind != kind:
                raise PlanError(f"kind of {spec.slug} must be {kind}, as of its parts, got {spec.kind!r}")
            other = seen.setdefault(frozenset(spec.parts), spec.slug)
            if other != spec.slug:
                raise PlanError(f"parts of {spec.slug} must differ from those of {other}, got {spec.parts}")
            self._check_number_part(spec, [whole[part] for part in spec.parts])
            size = joint_size([whole[part].part_size for part in spec.parts])
            if spec.domain_size != size:
                raise PlanError(f"domain_size of {spec.slug} must be {size}, got {spec.domain_size}")

    @staticmethod
    def _check_number_part(spec: IndicatorSpec, parts: list[IndicatorSpec]) -> None:
        numbers = [part for part in parts if part.scale is not None]
        if any(part.is_wave for part in numbers):
            raise PlanError(f"parts of {spec.slug} must not have wave reports: they tell no side of a cut")
        if numbers and (len(numbers), len(parts)) != (1, 2):
            raise PlanError(f"parts of {spec.slug} must be two, one of them a number, got {spec.parts}")
        if numbers and numbers[0].kind != spec.kind:
            raise PlanError(f"parts of {spec.slug} must not join a static number with daily values")

    def number_part(self, index: int) -> int | None:
        """Position in the plan of the number that a joint indicator has as a part; None without one."""
        places = [self.index(part) for part in self.indicators[index].parts]
        return next((place for place in places if self.indicators[place].scale is not None), None)

    def is_table(self, index: int) -> bool:
        """Return whether an indicator combines categories only."""
        return bool(self.indicators[index].parts) and self.number_part(index) is None

    def _check_first(self) -> None:
        """Raise PlanError unless there is fresh noise where the mechanism has some, and nowhere else."""
        if self.mechanism not in OF_FIRST:
            if self.first is not None:
                raise PlanError(
                    f"epsilon_first and hash_cells must be absent under {self.mechanism}: use "
                    + " or ".join(OF_FIRST)
                )
            return
        if self.first is None:
            raise PlanError(f"first of a {self.mechanism} plan must be present, got None")
        for index, spec in enumerate(self.indicators):
            first = self.first.epsilon_of(spec.epsilon)
            if (self.is_hashed(index) or self.is_renewed(index)) and first >= spec.epsilon:
                raise PlanError(
                    f"epsilon_first must be below the epsilon of {spec.slug}, {float(spec.epsilon):.6g}, "
                    f"got {float(first):.6g}"
                )

    def _check_renewed(self) -> None:
        """Raise PlanError for what keeps its answers, by which reports of a person could be linked."""
        if self.mechanism != RENEWED:
            return
        for spec in self.indicators:
            if spec.scale is not None:
                raise PlanError(
                    f"cuts of {spec.slug} must be absent under {RENEWED}: an answer about a number is kept, "
                    "and links the reports of a person"
                )
        if self.location is not None:
            raise PlanError(
                f"[location] must be absent under {RENEWED}: a person's noisy place is kept, and links the "
                "reports of a person"
            )
        if self.presence is not None:
            raise PlanError(
                f"presence_epsilon must be absent under {RENEWED}: use smp-grr or spl-grr, whose errors "
                "account for noise on counts"
            )

    def _check_stream(self) -> None:
        """Raise PlanError unless a stream has a window and nothing that keeps answers to daily values."""
        if self.mechanism != STREAM:
            if self.window_days is not None:
                raise PlanError(f"window_days must be absent under {self.mechanism}: use {STREAM}")
            return
        if self.window_days is None:
            raise PlanError(f"window_days of a {STREAM} plan must be present, got None")
        check_window(self.window_days, days=self.days)
        most = most_answers(self.days, window_days=self.window_days)
        for spec in self.indicators:
            if spec.kind != "daily":
                continue
            if spec.scale is not None or spec.moves is not None:
                what = "moves" if spec.scale is None else "daily numbers"
                raise PlanError(
                    f"{spec.slug} must be no indicator of {what} under {STREAM}: they do not keep the "
                    "promise about a window of days"
                )
            if spec.max_values != most:
                raise PlanError(
                    f"max_values of {spec.slug} must be {most} under {STREAM}, one answer in each window, "
                    f"got {spec.max_values}"
                )
        if self.location is not None:
            raise PlanError(
                f"[location] must be absent under {STREAM}: a person's noisy place is kept, and shows for "
                "certain when the true one changes"
            )
        if self.presence is not None:
            raise PlanError(
                f"presence_epsilon must be absent under {STREAM}: the estimates of its days are weighted by "
                "exact numbers of visitors"
            )

    def _check_questions(self) -> None:
        """Raise PlanError where there are more codes of answers to questions, or bits, than can be kept."""
        for index, spec in enumerate(self.indicators):
            if self.has_question(index) or self.is_hashed(index) or self.is_renewed(index):
                try:
                    self.answer_channel(index)
                except InvalidDomainError as error:
                    raise PlanError(f"categories of {spec.slug}: {error}") from error

    def _check_tallies(self) -> None:
        if self.tallies != tuple(each for each in PRESENCE_TALLIES if each in self.tallies):
            raise PlanError(f"tallies must be some of {PRESENCE_TALLIES}, in this order, got {self.tallies}")
        if self.tallies and self.presence is not None:
            raise PlanError(
                "tallies must be absent with presence_epsilon: they are exact, and its noise does not cover "
                f"them; got {', '.join(self.tallies)}"
            )

    def _check_shares(self, shares: tuple[int, ...]) -> None:
        if not self.is_sampled:
            raise PlanError(f"shares of a {self.mechanism} plan must be absent, got {shares}")
        if len(shares) != self.d or min(shares) < 1 or sum(shares) != WORD:
            raise PlanError(f"shares must be {self.d} positive integers with sum {WORD}, got {shares}")

    def _check_presence(self, presence: PresenceSpec) -> None:
        """Raise PlanError unless every report is one code, so that each present day changes few counts."""
        _check_range("presence_days", presence.max_days, low=1, high=self.days)
        if self.has_fakes:
            raise PlanError(
                f"presence_epsilon must be absent under {self.mechanism}: a person sends a report on each "
                f"indicator, most of them made up, and the noise would have to cover them all"
            )
        for index, spec in enumerate(self.indicators):
            channel = self.answer_channel(index)
            if spec.moves is not None:
                raise PlanError(
                    f"presence_epsilon must be absent with the moves {spec.slug}: sums over days do not "
                    "account for noise on their counts"
                )
            if isinstance(channel, UnaryChannel):
                raise PlanError(
                    f"presence_epsilon must be absent under {self.mechanism}: a report on {spec.slug} marks "
                    f"up to {spec.domain_size} categories and would change as many counts; use smp-grr or "
                    f"spl-grr, whose reports name one"
                )
            if isinstance(channel, ProjectiveChannel | QuestionChannel):
                where = f"with the joint indicator {spec.slug}" if spec.parts else f"under {self.mechanism}"
                where = f"with the hours {spec.slug}" if spec.by_code else where
                raise PlanError(
                    f"presence_epsilon must be absent {where}: a category is supported by "
                    f"{channel.support_size} codes of reports on {spec.slug}, and the noise of as many "
                    "counts adds up"
                )
            if isinstance(channel, ThresholdChannel | WaveChannel):
                raise PlanError(
                    f"presence_epsilon must be absent with the number {spec.slug}: the noise of counts of "
                    "single codes is not part of its errors"
                )
        if self.slots is not None and self.slots.noise is None:
            raise PlanError(
                'noise of slots must be "gaussian" with presence_epsilon: exact counts by slot tell who '
                "was there"
            )
        if self.location is not None:
            raise PlanError(
                "presence_epsilon must be absent with [location]: a place is one more report a day, and what "
                "is drawn from places does not account for noise on their counts"
            )

    def _check_fakes(self) -> None:
        """Raise PlanError unless the answers keep what the plan promises for its unit."""
        if self.epsilon is None:
            raise PlanError(f"epsilon of a {self.mechanism} plan must be present, got None")
        answers = {spec.epsilon for spec in self.indicators}
        if len(answers) > 1:
            raise PlanError(f"epsilon of the indicators must be one under {self.mechanism}, got {answers}")
        if self.unit == "profile":
            if answers != {self.epsilon}:
                raise PlanError(f"epsilon of the answers must be {self.epsilon}, got {answers.pop()}")
            return
        for spec in self.indicators:
            check_static(slug=spec.slug, kind=spec.kind, mechanism=self.mechanism)
        if max(self.fake_data.ratios_attribute) > exp_down(self.epsilon):
            raise PlanError(
                f"epsilon of the answers must keep {self.epsilon} per attribute, got {answers.pop()}"
            )

    @property
    def d(self) -> int:
        """Number of indicators."""
        return len(self.indicators)

    @property
    def tally_sizes(self) -> tuple[int, ...]:
        """Number of values or codes of each tally: of the indicators, then, if any, of the location.

        With classes it has a block for each: a row for each value, and one more for the number of reports.
        """
        if self.classes:
            return tuple(len(self.classes) * (spec.domain_size + 1) for spec in self.indicators)
        channels = [self.answer_channel(index) for index in range(self.d)]
        sizes = tuple(
            channel.domain_size if isinstance(channel, _NAMED) else channel.n_codes for channel in channels
        )
        return sizes if self.location is None else (*sizes, self.location.grid.n_cells)

    @property
    def n_stays(self) -> int:
        """Number of further tallies of presence: those of `tallies`, then the visitors of each class."""
        return len(self.tallies) + len(self.classes)

    def of_class(self, number: int) -> "PlanSpec":
        """Return the plan of the people of one class, by its place: with its epsilon, and without classes."""
        epsilon = self.classes[number].epsilon
        own = tuple(replace(spec, epsilon=epsilon) for spec in self.indicators)
        return replace(self, indicators=own, classes=())

    @property
    def of_classes(self) -> "tuple[PlanSpec, ...]":
        """The plan of each class; of a plan without classes, itself."""
        return tuple(map(self.of_class, range(len(self.classes)))) or (self,)

    @property
    def tally_shape(self) -> tuple[int, int]:
        """Shape of a gap tally: (previous day, day). Of events, which have no previous day, one row."""
        return (1 if self.events else self.days + 1), self.days + 1

    @property
    def is_sampled(self) -> bool:
        """Return whether each person answers one indicator only, and everyone may know which."""
        return self.mechanism.startswith("smp-")

    @property
    def has_fakes(self) -> bool:
        """Return whether each person answers one indicator and sends fake reports on the others."""
        return self.mechanism in FAKED

    @property
    def fake_data(self) -> FakeDataChannel:
        """Channel of all reports of a person; PlanError if the mechanism has no fake data."""
        if not self.has_fakes:
            raise PlanError(f"fake_data needs a mechanism with fake data, got {self.mechanism}")
        sizes = tuple(spec.domain_size for spec in self.indicators)
        return _fake_data_channel(FAKED[self.mechanism], self.indicators[0].epsilon, sizes)

    @property
    def visitor_noise(self) -> CountNoise | None:
        """Noise of each gap cell of the visitors; None = they are exact."""
        return None if self.presence is None else self.presence.noise(codes_a_day=1)

    @property
    def answer_noise(self) -> CountNoise | None:
        """Noise of each gap cell of every category; None = they are exact."""
        if self.presence is None:
            return None
        return self.presence.noise(codes_a_day=1 if self.is_sampled else self.d)

    def channel(self, index: int) -> ReportChannel:
        """Channel of a report on an indicator, for estimators: the one place that says which it is."""
        return self.fake_data.reports[index] if self.has_fakes else self.answer_channel(index)

    def answer_channel(self, index: int) -> AnswerChannel:
        """Channel of an answer, which is not a fake."""
        if self.has_fakes:
            return self.fake_data.reports[index].answer
        spec = self.indicators[index]
        if spec.scale is not None and spec.is_wave:
            return wave_channel(epsilon=spec.epsilon, n_levels=spec.n_values)
        if spec.scale is not None:
            return threshold_channel(epsilon=spec.epsilon, spacings=spec.scale.spacings)
        if spec.regions:
            return region_channel(epsilon=spec.epsilon, region_of=spec.regions, max_codes=self.max_codes)
        if spec.sensitive:
            values = {"domain_size": spec.domain_size, "sensitive": spec.sensitive}
            return sensitive_channel(epsilon=spec.epsilon, **values)
        asked = {"domain_size": spec.domain_size, "max_codes": self.max_codes}
        if self.has_question(index):
            return question_channel(epsilon=spec.epsilon, **asked)
        first = None if self.first is None else self.first.epsilon_of(spec.epsilon)
        if first is not None and self.is_renewed(index):
            # Combinations are many: a code of a hash is one word, where bits are one each.
            make = hash_channel if spec.parts else renewed_channel
            return make(epsilon=spec.epsilon, first=first, **asked)
        if self.first is not None and first is not None and self.is_hashed(index):
            return hash_channel(epsilon=spec.epsilon, first=first, cells=self.first.n_cells, **asked)
        if spec.parts or spec.moves is not None or spec.by_code or self.has_codes:
            return code_channel(epsilon=spec.epsilon, **asked)
        return _answer_channel(self.mechanism, spec.epsilon, spec.domain_size)

    def has_question(self, index: int) -> bool:
        """Return whether people have a permanent question on categories.

        Not where they report twice at most: then two answers that name categories lose no more.
        """
        spec = self.indicators[index]
        is_asked = self.mechanism == "smp-question" and spec.scale is None and spec.moves is None
        return is_asked and self.values_per_person(index) > 2

    def is_hashed(self, index: int) -> bool:
        """Return whether an indicator is daily and its categories are hashed, with fresh noise every day."""
        spec = self.indicators[index]
        is_daily = spec.kind == "daily" and spec.scale is None and spec.moves is None
        return is_daily and self.mechanism in OF_FIRST

    def is_renewed(self, index: int) -> bool:
        """Return whether a value that lasts is reported again each day, with fresh noise on a kept answer."""
        return self.mechanism == RENEWED and self.indicators[index].kind == "static"

    @property
    def renews_reports(self) -> bool:
        """Return whether a value that lasts is reported again each day."""
        return any(self.is_renewed(index) for index in range(self.d))

    @property
    def hashes_values(self) -> bool:
        """Return whether values of an indicator are hashed."""
        return any(self.is_hashed(index) for index in range(self.d))

    def is_stream(self, index: int) -> bool:
        """Return whether a person answers an indicator once in each window, with fresh noise."""
        return self.mechanism == STREAM and self.indicators[index].kind == "daily"

    @property
    def has_streams(self) -> bool:
        """Return whether an indicator is a stream."""
        return any(self.is_stream(index) for index in range(self.d))

    def has_new_noise(self, index: int) -> bool:
        """Return whether answers to an indicator have new noise every day: streams, moves and visits."""
        return self.indicators[index].moves is not None or self.is_stream(index)

    @property
    def has_codes(self) -> bool:
        """Return whether no answer is by an oracle that the mechanism names, also where values last."""
        return self.mechanism in ("smp-question", HASHED, RENEWED, STREAM)

    @property
    def asks_questions(self) -> bool:
        """Return whether there are permanent questions."""
        return any(self.has_question(index) for index in range(self.d))

    def is_unary(self, index: int) -> bool:
        """Return whether reports on an indicator have a bit per value; else they are codes."""
        return isinstance(self.answer_channel(index), UnaryChannel | TwoRoundUnary)

    def index(self, slug: str) -> int:
        """Position of an indicator in the plan; PlanError if it has none."""
        for position, spec in enumerate(self.indicators):
            if spec.slug == slug:
                return position
        raise PlanError(f"indicator must be one of the plan's, got {slug!r}")

    def asked_share(self, index: int) -> Fraction:
        """Return the probability that a person answers an indicator, also among fakes."""
        if not (self.is_sampled or self.has_fakes):
            return Fraction(1)
        return Fraction(1, self.d) if self.shares is None else Fraction(self.shares[index], WORD)

    def values_per_person(self, index: int) -> int:
        """Most answers that one person gives to an indicator: 1 if static, else its number of days."""
        spec = self.indicators[index]
        return 1 if spec.kind == "static" else spec.max_values or self.days

    def reports_per_person(self, index: int, *, extra_daily_values: int = 0) -> int:
        """Most reports of one person on an indicator, where each has its own noise.

        A day that is processed again repeats the report of a value that lasts.
        """
        if self.is_renewed(index):
            return self.days
        return self.values_per_person(index) + extra_daily_values

    @property
    def max_codes(self) -> int:
        """Most codes of a report on an indicator whose tally can be kept."""
        return MAX_TALLY_CELLS // prod(self.tally_shape)

    def answers_per_person(self, index: int, *, extra_daily_values: int = 0) -> int:
        """Most different answers of one person: one on each side of a cut, or of a question, on any days.

        Of a hashed value: one kept answer for each cell that a value can be in.
        """
        spec = self.indicators[index]
        n = self.values_per_person(index) + (extra_daily_values if spec.kind == "daily" else 0)
        if self.has_question(index) or (spec.scale is not None and not spec.is_wave):
            return min(n, 2)
        channel = self.answer_channel(index)
        return min(n, channel.groups, channel.domain_size) if isinstance(channel, QuestionChannel) else n

    def to_json(self) -> dict[str, Any]:
        """Plain values (str, int, None, list, dict); epsilon as the exact string "a/b"."""
        promised = {} if self.epsilon is None else {"epsilon": exact_text(self.epsilon)}
        # As texts: many readers of JSON round integers above 2**53.
        asked = {} if self.shares is None else {"shares": [str(share) for share in self.shares]}
        located = {} if self.location is None else {"location": self.location.to_json()}
        hidden = {} if self.presence is None else {"presence": self.presence.to_json()}
        more = {"tallies": list(self.tallies)} if self.tallies else {}
        by_slot = {} if self.slots is None else {"slots": self.slots.to_json()}
        fresh = {} if self.first is None else {"first": self.first.to_json()}
        stream = {} if self.window_days is None else {"window_days": self.window_days}
        units = {"events": True} if self.events else {}
        by_class = {"classes": [each.to_json() for each in self.classes]} if self.classes else {}
        limit = {} if self.max_events is None else {"max_events": self.max_events}
        return {
            "mechanism": self.mechanism,
            "unit": self.unit,
            "version": self.version,
            "days": self.days,
            "indicators": [_indicator_to_json(spec) for spec in self.indicators],
            **promised,
            **asked,
            **located,
            **hidden,
            **more,
            **by_slot,
            **fresh,
            **stream,
            **units,
            **by_class,
            **limit,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build the plan that `to_json` wrote.

        LdpError if a key is missing, of the wrong type, or breaks a rule.
        """
        try:
            indicators = tuple(_indicator_from_json(entry) for entry in data["indicators"])
            return cls(
                mechanism=data["mechanism"],
                unit=data["unit"],
                version=data["version"],
                days=data["days"],
                indicators=indicators,
                epsilon=Fraction(data["epsilon"]) if "epsilon" in data else None,
                shares=tuple(int(share) for share in data["shares"]) if "shares" in data else None,
                location=LocationSpec.from_json(data["location"]) if "location" in data else None,
                presence=PresenceSpec.from_json(data["presence"]) if "presence" in data else None,
                tallies=tuple(data.get("tallies", ())),
                slots=SlotSpec.from_json(data["slots"]) if "slots" in data else None,
                first=FirstReports.from_json(data["first"]) if "first" in data else None,
                window_days=data.get("window_days"),
                events=data.get("events", False),
                classes=tuple(ClassSpec.from_json(each) for each in data.get("classes", ())),
                max_events=data.get("max_events"),
            )
        except LdpError:
            raise
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise PlanError(f"plan must be an object as to_json writes it, got {error!r}") from error


@lru_cache(maxsize=1024)
def _answer_channel(mechanism: Mechanism, epsilon: Fraction, domain_size: int) -> AnswerChannel:
    """Kept, since pages ask for the same few again and again."""
    return ORACLES[mechanism.split("-")[1]](epsilon=epsilon, domain_size=domain_size)


@lru_cache(maxsize=64)
def _fake_data_channel(protocol: FakeProtocol, answers: Fraction, sizes: tuple[int, ...]) -> FakeDataChannel:
    # Per profile, since what is given is the epsilon of the answers already.
    return fake_data_channel(protocol, epsilon=answers, unit="profile", domain_sizes=sizes)


def check_static(*, slug: str, kind: Kind, mechanism: Mechanism) -> None:
    """Raise PlanError for a daily indicator under fake data that hide one value."""
    if kind != "static":
        raise PlanError(
            f"kind of {slug} must be static: under {mechanism} with the unit attribute a report "
            f"that changes would be the answer, got {kind!r}"
        )


def _check_range(name: str, value: int, *, low: int, high: int) -> None:
    if not low <= value <= high:
        raise PlanError(f"{name} must be in [{low}, {high}], got {value}")


_LEFT_OUT: Final = ("parts", "scale", "moves", "by_code", "lookup", "regions", "sensitive")


def _indicator_to_json(spec: IndicatorSpec) -> dict[str, Any]:
    """Without `_LEFT_OUT` where there are none: hashes of older plans stay what they were."""
    found = asdict(spec) | {"epsilon": exact_text(spec.epsilon), "parts": list(spec.parts)}
    found |= {"regions": list(spec.regions), "sensitive": list(spec.sensitive)}
    if spec.scale is not None:
        found["scale"] = spec.scale.to_json()
    if spec.moves is not None:
        found["moves"] = spec.moves.to_json()
    return {key: value for key, value in found.items() if value or key not in _LEFT_OUT}


def _indicator_from_json(entry: Mapping[str, Any]) -> IndicatorSpec:
    return IndicatorSpec(
        slug=entry["slug"],
        kind=entry["kind"],
        domain_size=entry["domain_size"],
        epsilon=Fraction(entry["epsilon"]),
        max_values=entry["max_values"],
        parts=_parts_from_json(entry.get("parts", [])),
        scale=Scale.from_json(entry.get("scale")),
        moves=MoveSpec.from_json(entry.get("moves")),
        by_code=bool(entry.get("by_code", False)),
        lookup=entry.get("lookup", ""),
        regions=tuple(map(int, entry.get("regions", ()))),
        sensitive=tuple(map(int, entry.get("sensitive", ()))),
    )


def _parts_from_json(parts: Any) -> tuple[str, ...]:
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise PlanError(f"parts must be a list of texts, got {parts!r}")
    return tuple(parts)

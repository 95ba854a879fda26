"""The form of the simulator: all of its state, which is the address of the page."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, cast, get_args

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext, gettext_lazy, pgettext

from ldp.estimation.simulation import LARGEST_EPSILON, LEAST_EPSILON, Crowd
from ldp.privacy.first_reports import HashCells
from ldp.privacy.plans import MAX_DAYS, MAX_EVENTS, OF_FIRST, Kind, Mechanism
from ldp.privacy.slots import MAX_SLOTS_PER_DAY
from ldp.protocols.channels import MAX_DOMAIN_SIZE, Unit
from mobility.plans.class_shares import (
    EPSILON,
    SHARE,
    class_errors_in,
    class_fields,
    class_names,
    class_shares,
)
from mobility.plans.pages.mechanism_field import MechanismField
from mobility.plans.pages.simulator_source import Source
from reports.simulator.combinations import with_combination
from reports.simulator.model import Question, Recommendation, Setting, recommended, with_sizes
from reports.simulator.slots import MOST_ZONES, SlotSetting
from reports.simulator.texts import cells_words, mechanism_words

MOST_VISITORS = 10**9
# A page should not take seconds; a longer report is useless.
MOST_INDICATORS, MOST_CATEGORIES = 50, 1000
COMBINED = ("combine_1", "combine_2", "combine_3")
WORST = ""  # of all indicators that follow the plan


@dataclass(frozen=True, slots=True)
class Slider:
    """A number with a slider; both of its ends are named.

    low, high : ends of the slider; the number itself may lie beyond
    """

    field: forms.BoundField
    low: Decimal
    high: Decimal
    scale: str  # "log" or "linear"
    low_words: str
    high_words: str

    @property
    def digits(self) -> int:
        """Decimals that the number takes: 0 = whole numbers."""
        return 2 if isinstance(self.field.field, forms.DecimalField) else 0


class SimulatorForm(forms.Form):
    """Settings that an administrator may change; missing fields have the value of the source."""

    mechanism = forms.ChoiceField(
        label=gettext_lazy("Mechanism"),
        choices=lambda: [(each, mechanism_words(each)) for each in get_args(Mechanism)],
    )
    unit = forms.ChoiceField(
        label=gettext_lazy("Privacy unit"),
        widget=forms.RadioSelect,
        choices=[
            ("profile", gettext_lazy("all of a person's values (profile)")),
            ("attribute", gettext_lazy("one of a person's values (attribute)")),
        ],
    )
    epsilon = forms.DecimalField(
        label=gettext_lazy("Epsilon"), min_value=LEAST_EPSILON, max_value=LARGEST_EPSILON, max_digits=12
    )
    epsilon_first = forms.DecimalField(
        label=gettext_lazy("Epsilon per report (leave empty to use half of the plan's epsilon)"),
        required=False,
        min_value=LEAST_EPSILON,
        max_value=LARGEST_EPSILON,
        max_digits=12,
    )
    hash_cells = forms.ChoiceField(
        label=gettext_lazy("Number of sets of categories"),
        required=False,
        choices=lambda: [("", cells_words("two")), ("optimal", cells_words("optimal"))],
    )
    window_days = forms.IntegerField(
        label=gettext_lazy("Window length in days (leave empty for 7 days, or all days of a shorter study)"),
        required=False,
        min_value=1,
        max_value=MAX_DAYS,
    )
    visitors = forms.IntegerField(
        label=gettext_lazy("Visitors per day"), min_value=1, max_value=MOST_VISITORS
    )
    stay = forms.DecimalField(
        label=gettext_lazy("Average number of days on which a visitor is present"),
        min_value=1,
        max_value=MAX_DAYS,
        max_digits=8,
    )
    presence_epsilon = forms.DecimalField(
        label=gettext_lazy("Presence epsilon (leave empty for exact totals)"),
        required=False,
        min_value=Decimal("0.001"),
        max_value=LARGEST_EPSILON,
        max_digits=12,
    )
    presence_days = forms.IntegerField(
        label=gettext_lazy("Maximum days counted per person (leave empty for all)"),
        required=False,
        min_value=1,
        max_value=MAX_DAYS,
    )
    slots_epsilon = forms.DecimalField(
        label=gettext_lazy("Epsilon per person per day (leave empty if the study has no time slots)"),
        required=False,
        min_value=Decimal("0.001"),
        max_value=20,
        max_digits=12,
    )
    slots_per_day = forms.IntegerField(
        label=gettext_lazy("Maximum number of time slots counted per person per day"),
        min_value=1,
        max_value=MAX_SLOTS_PER_DAY,
    )
    slots_levels = forms.IntegerField(label=gettext_lazy("Number of zone levels"), min_value=1, max_value=4)
    slots_zones = forms.IntegerField(
        label=gettext_lazy("Number of zones at the most detailed level"), min_value=1, max_value=MOST_ZONES
    )
    events_per_day = forms.IntegerField(
        label=gettext_lazy("Events per day (leave empty if the study counts people)"),
        required=False,
        min_value=1,
        max_value=MOST_VISITORS,
    )
    max_events = forms.IntegerField(
        label=gettext_lazy("Maximum answered events per person (leave empty for no limit)"),
        required=False,
        min_value=1,
        max_value=MAX_EVENTS,
    )
    show = forms.ChoiceField(label=gettext_lazy("Indicator used in the example"), required=False)
    wanted = forms.DecimalField(
        label=gettext_lazy("Target error (± percentage points)"),
        required=False,
        min_value=Decimal("0.001"),
        max_value=100,
        max_digits=8,
    )
    of = forms.ChoiceField(label=gettext_lazy("Indicator (for the target error)"), required=False)
    over = forms.ChoiceField(
        label=gettext_lazy("Period for which the target error must be met"),
        required=False,
        choices=[("", gettext_lazy("one day")), ("union", gettext_lazy("all days together"))],
    )

    def __init__(self, query: QueryDict, *, source: Source) -> None:
        values = _with_fitting_cap({"mechanism": "smp-adp", **source.initial, **query.dict()}, source)
        super().__init__(values, auto_id="simulator-%s")
        self.source = source
        names = [(each.slug, each.name) for each in source.questions]
        without = {"show": gettext("the least accurate indicator"), "of": gettext("every indicator")}
        for name, words in without.items():
            cast(forms.ChoiceField, self.fields[name]).choices = [(WORST, words), *names]
        self.fields |= {
            name: forms.IntegerField(label=label, min_value=low, max_value=high)
            for name, label, low, high in self._numbers()
        }
        whole = [(each.slug, each.name) for each in source.questions if each.has_size]
        self.fields |= {
            name: forms.ChoiceField(label=label, required=False, choices=[("", gettext("none")), *whole])
            for name, label in (_combined_fields() if len(whole) > 1 else {}).items()
        }
        self.class_names = class_names(source.classes)
        self.fields |= class_fields(self.class_names)
        for field in self.fields.values():
            field.widget.attrs["autocomplete"] = "off"
        if not {"mechanism"} & {*source.initial, *query} and self.is_valid():
            self.data = {**values, "mechanism": recommended(self.setting).mechanism}
            self.full_clean()

    def clean(self) -> dict[str, Any]:
        """Check what concerns several fields."""
        given: dict[str, Any] = super().clean() or {}
        days = given.get("days", self.source.days)
        too_long = gettext("Enter at most %(days)d. This is the number of days in the study.")
        stays = gettext("A person cannot be present on more days than the study has. Enter at most %(days)d.")
        for name, text in (
            ("stay", stays),
            ("cap", too_long),
            ("presence_days", too_long),
            ("window_days", too_long),
        ):
            if given.get(name) is not None and given[name] > days:
                self.add_error(name, text % {"days": days})
        if given.get("daily", 0) > given.get("indicators", MOST_INDICATORS):
            self.add_error(
                "daily",
                gettext("Enter a number that is no greater than the number of indicators in the plan."),
            )
        first, epsilon = given.get("epsilon_first"), given.get("epsilon")
        if given.get("mechanism") in OF_FIRST and first and epsilon and first >= epsilon:
            self.add_error("epsilon_first", gettext("This must be lower than epsilon."))
        self._check_combination(given)
        for name, text in class_errors_in(self.class_names, given):
            self.add_error(name, text)
        if not self.errors and (classes := class_shares(self.class_names, given)):
            given["epsilon"] = max(each.epsilon for each in classes)
        return given

    def _check_combination(self, given: dict[str, Any]) -> None:
        parts = [given.get(name, "") for name in COMBINED]
        chosen = [part for part in parts if part]
        if len(chosen) == 1:
            empty = COMBINED[0] if not parts[0] else COMBINED[1]
            self.add_error(empty, gettext("Choose at least two indicators to combine."))
        elif len(set(chosen)) < len(chosen):
            self.add_error(COMBINED[0], gettext("Choose each indicator only once."))

    @property
    def is_combined(self) -> bool:
        """Return whether the fields of a combination must not be folded away."""
        return any(self[name].value() or self[name].errors for name in COMBINED if name in self.fields)

    @property
    def mechanism_field(self) -> MechanismField:
        """Return the choice of a mechanism, as it is laid out."""
        field = self["mechanism"]
        return MechanismField(
            name="mechanism",
            label=str(field.label),
            value=str(field.value()),
            errors=list(map(str, field.errors)),
            recommendation=self.recommendation,
        )

    @property
    def recommendation(self) -> Recommendation:
        """Return the mechanism for these settings; that for most studies where they are not valid."""
        return recommended(self.setting) if self.is_valid() else Recommendation()

    @property
    def setting(self) -> Setting:
        """Return the setting of a valid form."""
        given = self.cleaned_data
        days = given.get("days", self.source.days)
        crowd = Crowd(visitors=float(given["visitors"]), days_present=float(given["stay"]))
        parts = [given[name] for name in COMBINED if given.get(name)]
        setting = Setting(
            mechanism=cast(Mechanism, given["mechanism"]),
            unit=cast(Unit, given["unit"]),
            epsilon=given["epsilon"],
            days=days,
            crowd=crowd,
            questions=self._capped(self._questions(), days=days),
            small_cell=self.source.small_cell,
            presence_epsilon=given["presence_epsilon"],
            presence_days=given["presence_days"] or days,
            epsilon_first=given["epsilon_first"],
            hash_cells=cast(HashCells, given["hash_cells"]) or None,
            window_days=given["window_days"],
            classes=class_shares(self.class_names, given),
        )
        return with_combination(setting, parts) if parts else setting

    @property
    def slots(self) -> SlotSetting | None:
        """Return the counts by slot of a valid form; None if there are none."""
        given = self.cleaned_data
        if given["slots_epsilon"] is None:
            return None
        return SlotSetting(
            epsilon_day=given["slots_epsilon"],
            delta=self.source.slots_delta,
            slots_per_day=given["slots_per_day"],
            levels=given["slots_levels"],
            zones=given["slots_zones"],
            people=given["visitors"],
        )

    def class_fields(self) -> list[forms.BoundField]:
        """Shares and epsilons of classes."""
        return [self[f"{part}{slug}"] for slug, _ in self.class_names for part in (SHARE, EPSILON)]

    @property
    def are_classes_shown(self) -> bool:
        """Return whether these fields must not be folded away."""
        return any(field.value() or field.errors for field in self.class_fields())

    def slot_fields(self) -> list[forms.BoundField]:
        """Fields of the counts by slot."""
        return [self[name] for name in self.fields if name.startswith("slots_")]

    @property
    def are_slots_shown(self) -> bool:
        """Return whether these fields must not be folded away."""
        return bool(self["slots_epsilon"].value()) or any(field.errors for field in self.slot_fields())

    @property
    def category_errors(self) -> bool:
        """Return whether a number of categories is wrong, so that its field must not be folded away."""
        return any(field.errors for field in self.category_fields())

    def category_fields(self) -> list[forms.BoundField]:
        """Numbers of categories of the indicators of a study."""
        return [self[name] for name in self.fields if name.startswith("k-")]

    def query(self, **changes: str) -> str:
        """Address of this state with some values changed; an empty one is left out."""
        query = QueryDict(mutable=True)
        typed = {name: self.data.get(name, "") for name in self.fields}
        changed = {self._name_of(name): value for name, value in changes.items()}
        state = {**self.source.kept, **typed, **changed}
        query.update({name: value for name, value in state.items() if value not in ("", None)})
        return query.urlencode()

    def hidden(self, *without: str) -> list[tuple[str, str]]:
        """Names and values of this state, for another form that keeps all but some fields."""
        query = QueryDict(self.query(**dict.fromkeys(without, "")))
        return [(name, str(value)) for name, value in query.items()]

    def _name_of(self, name: str) -> str:
        """Typed numbers have one number of categories for all indicators."""
        return "categories" if name.startswith("k-") and name not in self.fields else name

    def _numbers(self) -> Iterator[tuple[str, str, int, int]]:
        """Whole numbers that depend on the source: name, label, and limits."""
        if "days" in self.source.initial:
            yield "days", gettext("Days of the study"), 1, MAX_DAYS
        if not self.source.questions:
            yield "indicators", gettext("Indicators"), 1, MOST_INDICATORS
            yield "daily", gettext("Daily indicators"), 0, MOST_INDICATORS
            yield "categories", gettext("Categories per indicator"), 2, MOST_CATEGORIES
        for each in self.source.questions:
            if each.has_size:
                yield f"k-{each.slug}", each.name, 2, MAX_DOMAIN_SIZE
        if "cap" in self.source.initial:
            label = gettext("Maximum number of days per person for daily indicators")
            yield "cap", label, 1, MAX_DAYS

    def _questions(self) -> tuple[Question, ...]:
        given = self.cleaned_data
        if self.source.questions:
            sizes = {each.slug: given[f"k-{each.slug}"] for each in self.source.questions if each.has_size}
            return with_sizes(self.source.questions, sizes)
        n, n_daily, size = given["indicators"], given["daily"], given["categories"]
        kinds: list[Kind] = ["static" if number < n - n_daily else "daily" for number in range(n)]
        return tuple(
            Question(slug=f"i{number}", name=typed_name(kind, number=number), kind=kind, domain_size=size)
            for number, kind in enumerate(kinds, start=1)
        )

    def _capped(self, questions: tuple[Question, ...], *, days: int) -> tuple[Question, ...]:
        if "cap" not in self.cleaned_data:
            return questions
        cap = self.cleaned_data["cap"]
        most = None if cap >= days else cap
        return tuple(each if each.kind == "static" else replace(each, max_values=most) for each in questions)

    def sliders(self) -> Iterator[Slider]:
        """Numbers that are worth trying out."""
        private = pgettext("end of a slider", "more private")
        accurate = pgettext("end of a slider", "more accurate")
        yield Slider(self["epsilon"], Decimal("0.1"), Decimal(10), "log", private, accurate)
        few = pgettext("end of a slider", "fewer people, more noise")
        many = pgettext("end of a slider", "many people, less noise")
        yield Slider(self["visitors"], Decimal(100), Decimal(1_000_000), "log", few, many)
        others = pgettext("end of a slider", "different people every day")
        same = pgettext("end of a slider", "the same people every day")
        yield Slider(self["stay"], Decimal(1), Decimal(max(self.source.days, 2)), "linear", others, same)
        if "categories" in self.fields:
            few = pgettext("end of a slider", "fewer categories, each more accurate")
            many = pgettext("end of a slider", "many categories, each less accurate")
            yield Slider(self["categories"], Decimal(2), Decimal(100), "log", few, many)
            one = pgettext("end of a slider", "one indicator")
            many = pgettext("end of a slider", "many indicators, fewer answers for each")
            yield Slider(self["indicators"], Decimal(1), Decimal(20), "linear", one, many)


def _with_fitting_cap(values: dict[str, Any], source: Source) -> dict[str, Any]:
    """Values with a cap that fits the typed days, if it is the default or no daily indicator needs it."""
    default, days = source.initial.get("cap"), str(values.get("days", ""))
    is_unused = "daily" in source.initial and str(values["daily"]) == "0"
    if default is None or not days.isdecimal() or not (is_unused or str(values["cap"]) == str(default)):
        return values
    return values | {"cap": max(1, min(int(default), int(days)))}


def recommendation_for(source: Source, *, query: str = "") -> Recommendation:
    """Mechanism for a study or a draft, or for numbers."""
    return SimulatorForm(QueryDict(query), source=source).recommendation


def _combined_fields() -> dict[str, str]:
    labels = (
        gettext("First indicator to combine"),
        gettext("Second indicator to combine"),
        gettext("Third indicator to combine (optional)"),
    )
    return dict(zip(COMBINED, labels, strict=True))


def typed_name(kind: Kind, *, number: int) -> str:
    """Name of an indicator that is only a number."""
    if kind == "daily":
        return gettext("Indicator %(n)d (daily)") % {"n": number}
    return gettext("Indicator %(n)d") % {"n": number}

"""The form of the simulator: all of its state, which is the address of the page."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, cast, get_args

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext, pgettext

from ldp.estimation.simulation import LARGEST_EPSILON, LEAST_EPSILON, Crowd
from ldp.privacy.plans import MAX_DAYS, Kind, Mechanism
from ldp.protocols.channels import MAX_DOMAIN_SIZE, Unit
from mobility.plans.pages.simulator_source import Source
from reports.simulator.model import Question, Setting
from reports.simulator.texts import mechanism_words

MOST_VISITORS = 10**9
# A page should not take seconds; a longer report is useless.
MOST_INDICATORS, MOST_CATEGORIES = 50, 1000
WORST = ""  # of all indicators that follow the plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """A number with a slider; both of its ends are named.

    low, high : ends of the slider; the number itself may lie beyond
    """

    field: forms.BoundField
    low: Decimal
    high: Decimal
    low_words: str
    high_words: str
    scale: str  # "log" or "linear"

    @property
    def digits(self) -> int:
        """Decimals that the number takes: 0 = whole numbers."""
        return 2 if isinstance(self.field.field, forms.DecimalField) else 0


class SimulatorForm(forms.Form):
    """Settings that an administrator may change; missing fields have the value of the source."""

    mechanism = forms.ChoiceField()
    unit = forms.ChoiceField(widget=forms.RadioSelect)
    epsilon = forms.DecimalField(min_value=LEAST_EPSILON, max_value=LARGEST_EPSILON, max_digits=12)
    visitors = forms.IntegerField(min_value=1, max_value=MOST_VISITORS)
    stay = forms.DecimalField(min_value=1, max_value=MAX_DAYS, max_digits=8)
    presence_epsilon = forms.DecimalField(
        required=False, min_value=Decimal("0.001"), max_value=LARGEST_EPSILON, max_digits=12
    )
    presence_days = forms.IntegerField(required=False, min_value=1, max_value=MAX_DAYS)
    show = forms.ChoiceField(required=False)
    wanted = forms.DecimalField(required=False, min_value=Decimal("0.001"), max_value=100, max_digits=8)
    of = forms.ChoiceField(required=False)
    over = forms.ChoiceField(required=False)

    def __init__(self, query: QueryDict, *, source: Source) -> None:
        super().__init__({**source.initial, **query.dict()}, auto_id="simulator-%s", label_suffix="")
        self.source = source
        self._label()
        if not source.questions:
            self._add_typed()
        self._add_categories(source.questions)
        if "cap" in source.initial:
            self.fields["cap"] = forms.IntegerField(
                label=gettext("Maximum days on which a person reports on daily indicators"),
                min_value=1,
                max_value=MAX_DAYS,
            )
        for field in self.fields.values():
            field.widget.attrs["autocomplete"] = "off"

    def clean(self) -> dict[str, Any]:
        """Check what concerns several fields."""
        given: dict[str, Any] = super().clean() or {}
        days = given.get("days", self.source.days)
        for name, text in (
            (
                "stay",
                gettext(
                    "A person cannot be present on more days than the study has. Enter at most %(days)d."
                ),
            ),
            ("cap", gettext("This is more than the number of days in the study. Enter at most %(days)d.")),
            (
                "presence_days",
                gettext("This is more than the number of days in the study. Enter at most %(days)d."),
            ),
        ):
            if given.get(name) is not None and given[name] > days:
                self.add_error(name, text % {"days": days})
        if given.get("daily", 0) > given.get("indicators", MOST_INDICATORS):
            self.add_error(
                "daily",
                gettext("This is more than the number of indicators in the plan. Enter a smaller number."),
            )
        return given

    @property
    def setting(self) -> Setting:
        """Return the setting of a valid form."""
        given = self.cleaned_data
        days = given.get("days", self.source.days)
        crowd = Crowd(visitors=float(given["visitors"]), days_present=float(given["stay"]))
        return Setting(
            mechanism=cast(Mechanism, given["mechanism"]),
            unit=cast(Unit, given["unit"]),
            epsilon=given["epsilon"],
            days=days,
            crowd=crowd,
            questions=self._capped(self._questions(), days=days),
            small_cell=self.source.small_cell,
            presence_epsilon=given["presence_epsilon"],
            presence_days=given["presence_days"] or days,
        )

    def sliders(self) -> list[Slider]:
        """Numbers that are worth trying out."""
        return list(self._sliders())

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
        state = {
            **self.source.kept,
            **typed,
            **{self._name_of(name): value for name, value in changes.items()},
        }
        query.update({name: value for name, value in state.items() if value not in ("", None)})
        return query.urlencode()

    def hidden(self, *without: str) -> list[tuple[str, str]]:
        """Names and values of this state, for another form that keeps all but some fields."""
        query = QueryDict(self.query(**dict.fromkeys(without, "")))
        return [(name, str(value)) for name, value in query.items()]

    def _name_of(self, name: str) -> str:
        """Typed numbers have one number of categories for all indicators."""
        return "categories" if name.startswith("k-") and name not in self.fields else name

    def _label(self) -> None:
        self.fields["mechanism"] = forms.ChoiceField(
            label=gettext("Mechanism"),
            choices=[(each, mechanism_words(each)) for each in get_args(Mechanism)],
        )
        self.fields["unit"] = forms.ChoiceField(
            label=gettext("Privacy unit"),
            widget=forms.RadioSelect,
            choices=[
                ("profile", gettext("all of a person's values (profile)")),
                ("attribute", gettext("one of a person's values (attribute)")),
            ],
        )
        self.fields["epsilon"].label = gettext("Epsilon")
        self.fields["visitors"].label = gettext("Visitors per day")
        self.fields["stay"].label = gettext("Mean number of days on which a visitor is present")
        self.fields["presence_epsilon"].label = gettext("Presence epsilon (leave empty for exact totals)")
        self.fields["presence_days"].label = gettext("Maximum days counted per person (leave empty for all)")
        names = [(each.slug, each.name) for each in self.source.questions]
        self.fields["show"] = forms.ChoiceField(
            label=gettext("Indicator in the example"),
            required=False,
            choices=[("", gettext("the least accurate indicator")), *names],
        )
        self.fields["wanted"].label = gettext("Target error (± points)")
        self.fields["of"] = forms.ChoiceField(
            label=gettext("for which indicator"),
            required=False,
            choices=[(WORST, gettext("every indicator")), *names],
        )
        self.fields["over"] = forms.ChoiceField(
            label=gettext("over which days"),
            required=False,
            choices=[("", gettext("one day")), ("union", gettext("all days together"))],
        )

    def _add_typed(self) -> None:
        for name, label, low, high in (
            ("days", gettext("Days of the study"), 1, MAX_DAYS),
            ("indicators", gettext("Indicators"), 1, MOST_INDICATORS),
            ("daily", gettext("Daily indicators"), 0, MOST_INDICATORS),
            ("categories", gettext("Categories of each indicator"), 2, MOST_CATEGORIES),
        ):
            self.fields[name] = forms.IntegerField(label=label, min_value=low, max_value=high)

    def _add_categories(self, questions: tuple[Question, ...]) -> None:
        for each in questions:
            self.fields[f"k-{each.slug}"] = forms.IntegerField(
                label=each.name, min_value=2, max_value=MAX_DOMAIN_SIZE
            )

    def _questions(self) -> tuple[Question, ...]:
        given = self.cleaned_data
        if self.source.questions:
            return tuple(replace(each, domain_size=given[f"k-{each.slug}"]) for each in self.source.questions)
        n, n_daily = given["indicators"], given["daily"]
        kinds: list[Kind] = ["static" if number < n - n_daily else "daily" for number in range(n)]
        return tuple(
            Question(
                slug=f"i{number}",
                name=typed_name(kind, number=number),
                kind=kind,
                domain_size=given["categories"],
            )
            for number, kind in enumerate(kinds, start=1)
        )

    def _capped(self, questions: tuple[Question, ...], *, days: int) -> tuple[Question, ...]:
        if "cap" not in self.cleaned_data:
            return questions
        cap = self.cleaned_data["cap"]
        most = None if cap >= days else cap
        return tuple(each if each.kind == "static" else replace(each, max_values=most) for each in questions)

    def _sliders(self) -> Iterator[Slider]:
        yield Slider(
            field=self["epsilon"],
            low=Decimal("0.1"),
            high=Decimal(10),
            low_words=pgettext("end of a slider", "more private"),
            high_words=pgettext("end of a slider", "more accurate"),
            scale="log",
        )
        yield Slider(
            field=self["visitors"],
            low=Decimal(100),
            high=Decimal(1_000_000),
            low_words=pgettext("end of a slider", "few people, much noise"),
            high_words=pgettext("end of a slider", "many people, little noise"),
            scale="log",
        )
        yield Slider(
            field=self["stay"],
            low=Decimal(1),
            high=Decimal(max(self.source.days, 2)),
            low_words=pgettext("end of a slider", "different people every day"),
            high_words=pgettext("end of a slider", "the same people every day"),
            scale="linear",
        )
        if "categories" in self.fields:
            yield Slider(
                field=self["categories"],
                low=Decimal(2),
                high=Decimal(100),
                low_words=pgettext("end of a slider", "few categories, each accurate"),
                high_words=pgettext("end of a slider", "many categories, each less accurate"),
                scale="log",
            )
            yield Slider(
                field=self["indicators"],
                low=Decimal(1),
                high=Decimal(20),
                low_words=pgettext("end of a slider", "one indicator"),
                high_words=pgettext("end of a slider", "many indicators, fewer answers for each"),
                scale="linear",
            )


def typed_name(kind: Kind, *, number: int) -> str:
    """Name of an indicator that is only a number."""
    if kind == "daily":
        return gettext("Indicator %(n)d (daily)") % {"n": number}
    return gettext("Indicator %(n)d") % {"n": number}

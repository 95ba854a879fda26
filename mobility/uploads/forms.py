"""Small forms of operators: which day, and that they know what it means."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext

from mobility.batches.quality.words import files_words
from mobility.batches.queries import StudyDay
from mobility.vault.models.subscribers import VaultDay
from reports.base.formats import colon, day_title

Choices = list[tuple[int, str]]


class DayForm(forms.Form):
    """A day of the study, and a confirmation."""

    day = forms.TypedChoiceField(coerce=int)
    confirm = forms.BooleanField()

    def __init__(self, data: QueryDict | None = None, *, choices: Choices, name: str) -> None:
        super().__init__(data, auto_id=f"{name}_%s")
        self.choices = choices
        self.fields["day"] = forms.TypedChoiceField(coerce=int, choices=choices)


class SlotsForm(forms.Form):
    """A local time of the study, and a confirmation."""

    through = forms.CharField(max_length=25)
    confirm = forms.BooleanField()

    def clean_through(self) -> datetime:
        """Return the time without an offset: it is that of the study's clocks."""
        try:
            return datetime.fromisoformat(self.cleaned_data["through"]).replace(tzinfo=None)
        except ValueError:
            raise forms.ValidationError("must be a time") from None


def close_form(days: Sequence[StudyDay], data: QueryDict | None = None) -> DayForm:
    """Closing makes every day up to the chosen one final."""
    open_days = [each for each in days if each.state != VaultDay.State.CLOSED]
    return DayForm(data, choices=_choices(open_days), name="close")


def void_form(
    days: Sequence[StudyDay],
    data: QueryDict | None = None,
    *,
    files: Mapping[int, Mapping[str, int]] = MappingProxyType({}),
) -> DayForm:
    """Undoing takes everything back that was uploaded for a day; `files` names it by day and source."""
    choices = [(each.day, _undo_title(each, files)) for each in days if each.can_be_undone]
    return DayForm(data, choices=choices, name="void")


def _undo_title(each: StudyDay, files: Mapping[int, Mapping[str, int]]) -> str:
    """Day with its files, and that none of them was published."""
    title = day_title(each.date)
    if each.state == VaultDay.State.OPEN:
        title = gettext("%(day)s (not published)") % {"day": title}
    return f"{title}{colon()} {files_words(files[each.day])}" if each.day in files else title


def _choices(days: Sequence[StudyDay]) -> Choices:
    return [(each.day, day_title(each.date)) for each in days]

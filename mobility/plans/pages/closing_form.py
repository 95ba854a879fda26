"""The form that closes a study: its short name once more, and what may be lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext, gettext_lazy

from mobility.plans import closing
from mobility.plans.closing import Leave
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacles:
    """Obstacles between a study and its end.

    merging : batches that can only be waited for
    cancellable : batches that have changed nothing yet
    unpublished_days : days with rows that no one published
    waiting_subscribers : subscribers whose changes are too few to be published, and will be dropped
    opted_out : those of them who have opted out, and whom the totals will count permanently
    """

    merging: int
    cancellable: int
    unpublished_days: Sequence[date]
    waiting_subscribers: int
    opted_out: int

    @classmethod
    def of(cls, study: VaultStudy) -> "Obstacles":
        """Look at a study; a closing that has begun has none."""
        if study.certificate is not None:
            return cls(merging=0, cancellable=0, unpublished_days=(), waiting_subscribers=0, opted_out=0)
        left = closing.unfinished(study)
        waiting, opted_out = closing.waiting_subscribers(study)
        cancellable = left.filter(state__in=Batch.CANCELLABLE).count()
        return cls(
            merging=left.count() - cancellable,
            cancellable=cancellable,
            unpublished_days=closing.unpublished_days(study),
            waiting_subscribers=waiting,
            opted_out=opted_out,
        )


class ClosingForm(forms.Form):
    """Anyone who types the short name of a study has read which one it is."""

    slug = forms.CharField(
        label=gettext_lazy("To confirm, type the short name of the study"),
        strip=True,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )
    cancel_batches = forms.BooleanField(required=False)
    drop_unpublished = forms.BooleanField(required=False)

    def __init__(self, data: QueryDict | None = None, *, study: VaultStudy, obstacles: Obstacles) -> None:
        super().__init__(data)
        self._slug = study.slug
        # Losses must be agreed to; a form without losses has no question.
        self.fields["cancel_batches"].required = bool(obstacles.cancellable)
        self.fields["drop_unpublished"].required = bool(obstacles.unpublished_days)

    def clean_slug(self) -> str:
        typed = str(self.cleaned_data["slug"])
        if typed != self._slug:
            raise forms.ValidationError(
                gettext("This is not the short name of the study. Nothing was changed.")
            )
        return typed

    @property
    def leave(self) -> Leave:
        """Return the permissions of a valid form."""
        return Leave(
            cancel_batches=self.cleaned_data["cancel_batches"],
            drop_unpublished=self.cleaned_data["drop_unpublished"],
        )

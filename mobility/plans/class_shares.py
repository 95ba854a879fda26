"""Classes in the simulator: fields for share and epsilon of each, and the address that carries them."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.utils.translation import gettext

from ldp.estimation.simulation import LARGEST_EPSILON, LEAST_EPSILON
from ldp.privacy.classes import MAX_CLASSES, MIN_CLASSES
from reports.base import formats
from reports.simulator.classes import ClassShare
from reports.studies.studyfile.table import SLUG

CLASSES: Final = "classes"  # in addresses: short names, or short names with epsilons
SHARE, EPSILON = "share-", "class-"  # of names of fields
BLANK_ROWS: Final = 4
_WHOLE, _TOLERATED = Decimal(100), Decimal("0.5")  # percent

Names = Sequence[tuple[str, str]]  # slug and name


def class_names(known: Names) -> Names:
    """Classes that have fields: those of a study, or some that can be filled in."""
    blank = [
        (f"class-{number}", gettext("Class %(n)d") % {"n": number}) for number in range(1, BLANK_ROWS + 1)
    ]
    return known or blank


def class_fields(names: Names) -> dict[str, forms.Field]:
    """Two fields for each class, neither of which is required."""
    fields: dict[str, forms.Field] = {}
    for slug, name in names:
        fields[f"{SHARE}{slug}"] = forms.DecimalField(
            label=gettext("%(name)s: visitors (%%)") % {"name": name},
            required=False,
            min_value=Decimal("0.1"),
            max_value=_WHOLE,
            max_digits=6,
        )
        fields[f"{EPSILON}{slug}"] = forms.DecimalField(
            label=gettext("%(name)s: epsilon") % {"name": name},
            required=False,
            min_value=LEAST_EPSILON,
            max_value=LARGEST_EPSILON,
            max_digits=12,
        )
    return fields


def class_errors_in(names: Names, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Fields that do not fit the others, each with its error."""
    pairs = [(slug, given.get(f"{SHARE}{slug}"), given.get(f"{EPSILON}{slug}")) for slug, _ in names]
    used = [each for each in pairs if each[1:] != (None, None)]
    for slug, share, epsilon in used:
        if share is None:
            yield f"{SHARE}{slug}", gettext("Enter a percentage, or leave both fields of the class empty.")
        if epsilon is None:
            yield f"{EPSILON}{slug}", gettext("Enter an epsilon, or leave both fields of the class empty.")
    if not used:
        return
    first, total = f"{SHARE}{used[0][0]}", sum((each[1] or 0 for each in used), start=Decimal(0))
    if len(used) < MIN_CLASSES:
        yield first, gettext("Enter at least two classes, or none.")
    elif abs(total - _WHOLE) > _TOLERATED:
        text = gettext("The percentages of all classes must add up to 100. Their sum is %(total)s.")
        yield first, text % {"total": formats.decimal(float(total), decimals=1)}


def class_shares(names: Names, given: Mapping[str, Any]) -> tuple[ClassShare, ...]:
    """Classes of a valid form; their shares add up to 1."""
    used = [(slug, name) for slug, name in names if given.get(f"{EPSILON}{slug}") is not None]
    total = sum(given[f"{SHARE}{slug}"] for slug, _ in used)
    return tuple(
        ClassShare(
            slug=slug,
            name=name,
            share=float(given[f"{SHARE}{slug}"] / total),
            epsilon=given[f"{EPSILON}{slug}"],
        )
        for slug, name in used
    )


def initial_classes(epsilons: Mapping[str, Decimal]) -> dict[str, str]:
    """Values of the fields at first: the epsilons of a plan, and equal shares."""
    if not epsilons:
        return {}
    equal = (_WHOLE / len(epsilons)).quantize(Decimal("0.1"))
    found = {f"{EPSILON}{slug}": f"{epsilon.normalize():f}" for slug, epsilon in epsilons.items()}
    return found | {f"{SHARE}{slug}": str(equal) for slug in epsilons}


def named_classes(text: str) -> Names:
    """Classes whose short names an address has; none if it was not made here."""
    slugs = text.split()
    is_right = all(SLUG.fullmatch(slug) for slug in slugs) and len({*slugs}) == len(slugs) <= MAX_CLASSES
    return [(slug, slug) for slug in slugs] if is_right else []


def classes_text(classes: Sequence[ClassShare]) -> str:
    """Classes for an address: "minor:0.5 panel:3"."""
    return " ".join(f"{each.slug}:{each.epsilon.normalize():f}" for each in classes)


def read_classes_text(text: str) -> Iterator[tuple[str, str]]:
    """Yield short name and epsilon of each class of an address."""
    for each in text.split():
        slug, _, epsilon = each.partition(":")
        if SLUG.fullmatch(slug):
            yield slug, epsilon

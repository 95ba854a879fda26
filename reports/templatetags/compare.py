"""Filters for comparisons; the words themselves are in `reports.compare.texts`."""

from django import template

from reports.base import formats
from reports.compare import texts

register = template.Library()
for function in (
    formats.amount,
    texts.change,
    texts.change_range,
    texts.value_range,
    texts.verdict_sign,
    texts.verdict_word,
):
    register.filter(function)

"""Filters for comparisons; the words themselves are in `reports.compare.texts`."""

from django import template

from reports.compare import texts as wording_compare

register = template.Library()
for function in (
    wording_compare.amount,
    wording_compare.change,
    wording_compare.change_range,
    wording_compare.value_range,
    wording_compare.verdict_sign,
    wording_compare.verdict_word,
):
    register.filter(function)

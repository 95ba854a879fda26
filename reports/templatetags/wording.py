"""Filters for numbers, days, epsilons and estimates; the words themselves are in `reports.wording`."""

from django import template

from reports import wording

register = template.Library()
for function in (
    wording.compact,
    wording.day_title,
    wording.epsilon,
    wording.number,
    wording.odds,
    wording.percent,
    wording.plan_words,
    wording.points,
    wording.share_range,
    wording.short_day,
    wording.visitors_range,
):
    register.filter(function)

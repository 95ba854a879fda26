"""Filters for losses."""

from django import template

from reports.wording_budget import spent_words

register = template.Library()
register.filter("spent", spent_words)

"""Labels of forms."""

from django import template
from django.forms import BoundField
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def label(field: BoundField) -> SafeString:
    """Label of a field, without Django's colon."""
    return field.label_tag(label_suffix="")

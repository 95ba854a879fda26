"""Arguments that commands have in common."""

from django.core.management.base import CommandError

from reports.studies.models import Study


def study_named(slug: str) -> Study:
    """The study of the argument STUDY.

    Raises
    ------
    CommandError : there is none; says which there are
    """
    found = Study.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(Study.objects.values_list("slug", flat=True)) or "none"
        raise CommandError(f"STUDY must be the slug of a study ({known}), got {slug}")
    return found

"""Find the study of a page of the operator zone, if it is open to the account."""

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext

from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy
from reports.studies.policies import Role, require_role, studies_for, study_for

operators_only = require_role(Role.OPERATOR)


def crumbs_to(name: str, slug: str) -> list[tuple[str, str]]:
    """Breadcrumbs of a page below that of a study."""
    return [(gettext("Uploads"), reverse("operator:studies")), (name, reverse("operator:study", args=[slug]))]


def vault_study_or_404(request: HttpRequest, slug: str, *roles: Role, whole: bool = False) -> VaultStudy:
    """Row of a study in the vault.

    Parameters
    ----------
    roles : those in which the account acts; an operator by default
    whole : with its definition and plan, which are large
    """
    study_for(request.user, slug, *(roles or (Role.OPERATOR,)))
    rows = VaultStudy.objects.all() if whole else VaultStudy.objects.defer("definition", "plan")
    return get_object_or_404(rows, slug=slug)


def batch_or_404(request: HttpRequest, batch_id: Any) -> Batch:
    """A batch of a study that is open to the operator who asks."""
    found = get_object_or_404(Batch, pk=batch_id)
    slug = VaultStudy.objects.values_list("slug", flat=True).get(pk=found.study_id)
    study_for(request.user, slug, Role.OPERATOR)
    return found


def slugs_of(request: HttpRequest) -> set[str]:
    """Studies that are open to the operator who asks."""
    return set(studies_for(request.user, Role.OPERATOR).values_list("slug", flat=True))

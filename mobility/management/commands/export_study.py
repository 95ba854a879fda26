"""Write a study or a draft as a file from which another installation makes the same."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from mobility.base.errors import MobilityError
from mobility.plans.models import PlanDraft
from mobility.plans.study_files import export_draft, export_study
from mobility.vault.queries import find_study
from reports.base.commands import ReadingCommand
from reports.management.arguments import naming_files, refusing


class Command(ReadingCommand):
    help = (
        "Print a study as a file for import_study (docs/study_export.schema.json): definition, area "
        "and plan versions, without data or keys."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("--draft", action="store_true", help="export the open draft instead")
        parser.add_argument("--out", type=Path, metavar="FILE", help="output file")

    @refusing(MobilityError)
    @naming_files()
    def handle(self, *args: Any, study: str, draft: bool, out: Path | None, **options: Any) -> None:
        content = export_draft(_open_draft(study)) if draft else export_study(find_study(study))
        text = json.dumps(content, ensure_ascii=False, indent=1)
        if out is not None:
            out.write_text(text + "\n")
            facts = {name: content[name] for name in ("kind", "definition_sha256")}
            text = json.dumps({"study": study, "file": str(out), **facts})
        self.stdout.write(text)


def _open_draft(slug: str) -> PlanDraft:
    draft = PlanDraft.objects.filter(slug=slug, state__in=PlanDraft.OPEN).first()
    if draft is None:
        raise CommandError(f"study {slug!r} has no open draft")
    return draft

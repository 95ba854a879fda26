"""Print the data protection pack of a study."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from reports.base.commands import ReadingCommand
from reports.dpia import dpia_pack, to_pdf
from reports.dpia.markdown import to_markdown
from reports.management.arguments import study_named


class Command(ReadingCommand):
    help = "Print the data protection pack of a study (articles 30 and 35 GDPR) as Markdown, or write it."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("--out", type=Path, help="file to write, .md or .pdf")

    def handle(self, *, study: str, out: Path | None, **options: Any) -> None:
        pack = dpia_pack(study_named(study))
        if out is None:
            self.stdout.write(to_markdown(pack))
        elif out.suffix == ".md":
            out.write_text(to_markdown(pack))
        elif out.suffix == ".pdf":
            out.write_bytes(to_pdf(pack))
        else:
            raise CommandError(f"--out must end in .md or .pdf, got {out.name}")

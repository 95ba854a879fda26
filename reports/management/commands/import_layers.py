"""Import base layers for the maps of a study, from files on the server."""

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from reports.management.arguments import naming_files, refusing, study_named
from reports.maps.base_layers import COMMAND_LINE, LayersError, import_layers
from reports.studies.geography.files.rules import layer_in


class Command(BaseCommand):
    help = (
        "Replace the base layers (water, roads, borders) of a study's maps by GeoJSON, GeoPackage, PMTiles "
        "or zipped shapefiles. Without files, remove them."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("files", nargs="*", metavar="FILE[#LAYER]", help="in the order of the legend")

    def handle(self, *, study: str, files: list[str], **_: Any) -> None:
        found = study_named(study)
        paths = {Path(layer_in(each)[0]) for each in files}
        with naming_files():
            contents = {path.name: path.read_bytes() for path in sorted(paths)}
        names = [Path(file).name + (f"#{layer}" if layer else "") for file, layer in map(layer_in, files)]
        with refusing(LayersError):
            layers, notes = import_layers(found, names, files=contents, by=COMMAND_LINE)
        for note in notes:
            self.stderr.write(f"note: {note}")
        self.stdout.write(json.dumps({"study": found.slug, "layers": layers}, ensure_ascii=False))

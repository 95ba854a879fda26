"""Write the synthetic population of a study."""

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from reports.base.commands import ReadingCommand
from reports.ledger.handouts import record_file
from reports.management.arguments import refusing, study_named
from reports.scenario.population import SEED, PopulationError, synthesise
from reports.scenario.population_errors import error_rates


class Command(ReadingCommand):
    help = "Write made-up people who together have the published figures of a study. No row is a real person."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("--out", type=Path, required=True, help="folder to write")
        parser.add_argument(
            "--people", type=int, metavar="N", help="scale the population to N people; shares stay the same"
        )
        parser.add_argument("--seed", type=int, default=SEED, help="the same seed gives the same bytes")

    def handle(self, *, out: Path, seed: int, people: int | None, **options: Any) -> None:
        from reports.scenario.population_files import population_files  # noqa: PLC0415 - pyarrow: not for --help

        study = study_named(options["study"])
        if seed < 0:
            raise CommandError(f"--seed must be at least 0, got {seed}")
        with refusing(PopulationError):
            population = synthesise(study, seed=seed, people=people)
        files = population_files(population)
        # Before the files are there: none may be without its entry.
        facts = {"way": "command", "format": "population", "seed": str(seed)}
        if people is not None:
            facts["people"] = str(people)
        record_file(study=study.slug, by="command line", facts=facts)
        try:
            out.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (out / name).write_bytes(content)
        except OSError as error:
            raise CommandError(f"--out must be a folder to write to: {error}") from error
        summary = {
            "directory": str(out),
            "files": list(files),
            "people": int(population.presence.size),
            "person_days": population.person_days,
            "seed": seed,
            "error_rates": error_rates(population.errors),
        }
        self.stdout.write(json.dumps(summary))

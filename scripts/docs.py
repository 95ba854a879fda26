"""The documentation site: its reference pages, written from the code, and its build.

`make docs` writes the pages again and builds the site into the folder `site` of the data folder.
`make docs CHECK=1` says which pages are not what the code says, and changes nothing.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
CLIENT = ROOT / "clients" / "python" / "src" / "mobility_reports_client" / "operations.py"
GENERATED = ("commands.md", "settings.md", "http-api.md", "findings.md", "batch-states.md", "questions.md")


def generated() -> dict[str, str]:
    """Text of each generated page, by its name below docs/reference/."""
    from scripts import docs_api, docs_commands, docs_findings, docs_questions, docs_settings, docs_states

    return {
        "commands.md": docs_commands.page(),
        "settings.md": docs_settings.page(),
        "http-api.md": docs_api.page(),
        "findings.md": docs_findings.page(),
        "batch-states.md": docs_states.page(),
        "questions.md": docs_questions.page(),
    }


def outdated() -> list[str]:
    """Names of the generated pages that are not what the code says."""
    return [
        name
        for name, text in generated().items()
        if not (REFERENCE / name).is_file() or (REFERENCE / name).read_text() != text
    ]


def is_client_old() -> bool:
    """Return whether the operations of the Python client are not those of the OpenAPI document."""
    from scripts.client_python import module

    return not CLIENT.is_file() or CLIENT.read_text() != module()


def build(site: Path) -> int:
    """Build the site into `site`; any broken link is an error. Returns the exit code."""
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    # The theme says on the terminal that it has a successor: docs/adr/0020 knows.
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say what is not as the code says")
    parser.add_argument("--site", type=Path, help="folder of the built site")
    options = parser.parse_args()
    _set_up()
    from django.conf import settings

    names = outdated()
    if options.check:
        for name in names:
            sys.stderr.write(f"docs: docs/reference/{name} is out of date: run make docs\n")
        is_old = is_client_old()
        if is_old:
            sys.stderr.write("docs: the Python client is out of date: run make docs\n")
        return 1 if names or is_old else 0
    for name, text in generated().items():
        REFERENCE.mkdir(exist_ok=True)
        (REFERENCE / name).write_text(text)
    from scripts.client_python import module

    CLIENT.write_text(module())
    site = options.site or settings.MOBILITY_DATA_DIR / "site"
    code = build(site)
    if code == 0:
        sys.stderr.write(f"docs: open {site}/index.html\n")
    return code


def _set_up() -> None:
    """Set Django up for an installation with both zones, in English."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "mobility.settings"
    os.environ["MOBILITY_ZONE"] = "all"
    import django
    from django.utils import translation

    django.setup()
    translation.activate("en")


if __name__ == "__main__":
    sys.exit(main())

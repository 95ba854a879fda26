"""The server starts without the libraries that draw: they come with the first download that needs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("matplotlib", "fpdf", "xlsxwriter", "fontTools", "PIL")


def test_addresses_and_formats_load_nothing_that_draws(tmp_path: Path) -> None:
    program = (
        "import json, sys, django; django.setup();"
        "import reports.urls, reports.exports.formats, reports.templatetags.downloads;"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        env=os.environ | {"MOBILITY_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "mobility.settings"},
        text=True, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []

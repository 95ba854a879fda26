"""Why staged bytes are sealed: else a worker that is killed leaves raw rows, and the search finds them.

Should this test ever pass with sealing switched on, the search of test_no_trace has become blind.
"""

from pathlib import Path

import pytest

from scripts import services
from tests.e2e.deployment import Deployment
from tests.e2e.test_no_trace import MARKERS, STAGES, VALUE, VISITOR, planted, staged_files, study

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
__all__ = ["planted"]  # the fixture


@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed", "unsealed"])
def test_killed_worker_leaves_raw_rows_only_when_nothing_is_sealed(
    planted: Path, tmp_path: Path, is_sealed: bool
) -> None:
    settings = "mobility.settings" if is_sealed else "tests.e2e.unsealed.settings"
    with services.private_folder("unsealed") as root, Deployment(root, settings=settings) as deployment:
        slug = study(deployment, "killed", tmp_path)
        with deployment.command("ingest", slug, str(planted)) as command:
            deployment.wait_for(slug, *STAGES[STAGES.index("reading") :])
            deployment.worker.kill()
            command.kill()
        assert staged_files(deployment)
        found = deployment.traces(MARKERS)
    if is_sealed:
        assert found == []
        return
    for marker in (VISITOR, VALUE):
        assert [place for place in found if "/staging/" in place and marker in place], found

"""The bundle: unpacked in an empty folder, with numpy alone, it gives every number of the export again."""

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.exports.records import to_json
from reports.exports.selection import select_study
from reports.models import DayNote, Study, Tally
from reports.selectors import visitor_unions
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


def unpacked(content: bytes, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        assert bundle.testzip() is None
        bundle.extractall(folder)
    return folder


@pytest.fixture(scope="session")
def only_numpy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with numpy in it and nothing else."""
    folder = tmp_path_factory.mktemp("packages")
    installed = Path(np.__file__).parent
    for source in (installed, installed.with_name("numpy.libs")):
        if source.exists():
            (folder / source.name).symlink_to(source)
    return folder


def recompute(folder: Path, packages: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Without the packages of this installation (-S), without our environment, elsewhere."""
    return subprocess.run(
        [sys.executable, "-S", str(folder / "recompute.py"), *options],
        env={"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder.parent, text=True, capture_output=True, check=False, timeout=120,
    )  # fmt: skip


def published(**changes: Any) -> Study:
    study = factory.create(**changes)
    factory.publish(study, factory.crowd(study, n=1500))
    return study


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"mechanism": "spl-grr", "market_share": Decimal("0.37")},
        {"mechanism": "smp-oue"},
        {"mechanism": "smp-adp"},
        {"mechanism": "rsfd-grr"},
        {"mechanism": "rsfd-ouez"},
        {"mechanism": "rsfd-adp"},
    ],
    ids=lambda changes: changes.get("mechanism", "smp-grr"),
)
def test_recomputes_the_export_bit_for_bit(changes: dict[str, Any], tmp_path: Path, only_numpy: Path) -> None:
    study = published(**changes)
    folder = unpacked(bundle_of(study), tmp_path / "bundle")
    done = recompute(folder, only_numpy, "--out", str(tmp_path / "computed.json"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the same, byte for byte: 80 estimates recomputed\n"
    assert (tmp_path / "computed.json").read_text() == to_json(select_study(study).reports)


def test_blanks_are_recomputed_too(tmp_path: Path, only_numpy: Path) -> None:
    study = factory.create(factory.GENDER, replace(factory.STAY, max_values=2))
    people = factory.crowd(study, n=300)
    factory.publish(study, factory.absent_on(people, day=4))
    DayNote.objects.create(study=study, day=2, kind="outage", text="mast down", by="adam")
    folder = unpacked(bundle_of(study), tmp_path / "bundle")
    records = json.loads((folder / "export.json").read_text())
    assert {record["status"] for record in records} >= {"ok", "not_collected", "outage"}
    assert "not_reliable" in {estimate["status"] for record in records for estimate in record["estimates"]}
    assert len(records) == 10 + 4
    assert recompute(folder, only_numpy).returncode == 0


def test_changed_number_or_file_is_noticed(fair: Study, tmp_path: Path, only_numpy: Path) -> None:
    folder = unpacked(bundle_of(fair), tmp_path / "bundle")
    exported = folder / "export.json"
    text = exported.read_text()
    records = json.loads(text)
    records[3]["estimates"][1]["std_error"] = np.nextafter(records[3]["estimates"][1]["std_error"], 1.0)
    exported.write_text(json.dumps(records, ensure_ascii=False, indent=1))
    done = recompute(folder, only_numpy)
    assert (done.returncode, done.stderr) == (1, "not as in manifest.json: export.json\n")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"]["export.json"] = hashlib.sha256(exported.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    done = recompute(folder, only_numpy)
    assert done.returncode == 1
    assert done.stderr.startswith("different: line ") and '"std_error"' in done.stderr


def test_holds_what_is_stored_and_nothing_else(fair: Study, tmp_path: Path) -> None:
    folder = unpacked(bundle_of(fair), tmp_path)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert files == {"manifest.json", *manifest["sha256"]}
    assert {name for name in files if name.startswith("tallies/")} == {
        "tallies/visitors.npy",
        *(
            f"tallies/{slug}.{what}.npy"
            for slug in ("gender", "age", "stay")
            for what in ("counts", "n_reports")
        ),
    }
    for name, expected in manifest["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
    stored = Tally.objects.get(indicator__slug="age")
    assert np.load(folder / "tallies/age.counts.npy").tobytes() == bytes(stored.counts)
    assert json.loads((folder / "plan.json").read_text()) == stored.plan.spec
    assert json.loads((folder / "statement.json").read_text())["plan"]["version"] == 1
    assert set(manifest["software"]) == {"name", "version"}


def test_same_data_give_the_same_bytes(fair: Study) -> None:
    assert bundle_of(fair) == bundle_of(Study.objects.get())


def test_study_that_hides_small_windows_has_no_bundle(fair: Study) -> None:
    unions = visitor_unions(fair)
    least = int(unions[unions > 0].min())
    fair.small_cell = least
    assert bundle_of(fair)
    fair.small_cell = least + 1
    with pytest.raises(ExportError, match=rf"hides windows with fewer than {least + 1} visitors"):
        bundle_of(fair)


def test_answers_that_come_in_meanwhile_do_not_mix(
    fair: Study, tmp_path: Path, only_numpy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reports.exports import bundle

    arriving = [factory.crowd(fair, n=200, seed=9)]

    def select(study: Study) -> Any:
        selection = select_study(study)
        if arriving:
            factory.publish(study, arriving.pop())
        return selection

    monkeypatch.setattr(bundle, "select_study", select)
    assert recompute(unpacked(bundle_of(fair), tmp_path / "bundle"), only_numpy).returncode == 0

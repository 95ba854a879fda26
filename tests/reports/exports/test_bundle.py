"""their own Programs: the bundle, with numpy alone, gives every number again; the server starts light."""

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from reports.estimates.queries import visitor_unions
from reports.exports import bundle
from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.exports.records import to_json
from reports.exports.selection import select_study
from reports.models import DayNote, Study, Tally
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


def unpacked(study, folder):
    with zipfile.ZipFile(io.BytesIO(bundle_of(study))) as packed:
        assert packed.testzip() is None
        packed.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def recompute(tmp_path_factory):
    """Run the program of a folder with numpy and no other package (-S), without our environment."""
    only_numpy, installed = tmp_path_factory.mktemp("packages"), Path(np.__file__).parent
    for source in filter(Path.exists, (installed, installed.with_name("numpy.libs"))):
        (only_numpy / source.name).symlink_to(source)

    def run(folder, *options):
        return subprocess.run(
            [sys.executable, "-S", str(folder / "recompute.py"), *options],
            env={"PYTHONPATH": str(only_numpy), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=folder.parent, text=True, capture_output=True, check=False, timeout=120,
        )  # fmt: skip

    return run


MIXED = (factory.GENDER, factory.MANY, factory.STAY)  # adaptive: few categories have codes, many have bits
OF_DAY = factory.joint("of_day", factory.AGE, factory.STAY, kind="daily")
ONCE = {"slug": "spent", "kind": "static", "column": "spent", "derive": None}
WAVE = replace(factory.LENGTH, **ONCE, scale=replace(factory.SCALE, report="wave"))
DECODED = (factory.GENDER, factory.AGE, factory.STAY, factory.BOTH, OF_DAY, factory.LENGTH, WAVE)


@pytest.mark.parametrize(
    ("mechanism", "asked"),
    [
        ("smp-grr", DECODED),
        *((name, MIXED) for name in ("smp-adp", "smp-loloha", "smp-allomfree", "smp-stream", "rsfd-adp")),
    ],
)
def test_recomputes_the_export_bit_for_bit(mechanism, asked, tmp_path, recompute):
    share = Decimal("0.37") if mechanism == "smp-adp" else Decimal(1)
    study = factory.published(*asked, n=1500, mechanism=mechanism, market_share=share)
    folder, reports = unpacked(study, tmp_path / "bundle"), select_study(study).reports
    done = recompute(folder, "--out", str(tmp_path / "computed.json"))
    assert (done.returncode, done.stderr) == (0, "")
    n_estimates = sum(len(report.estimates) for report in reports)
    assert done.stdout == f"the same, byte for byte: {n_estimates} estimates recomputed\n"
    assert (tmp_path / "computed.json").read_text() == to_json(reports)
    n_codes = {each.slug: len(np.load(folder / f"tallies/{each.slug}.counts.npy")) for each in asked}
    coded = {each.slug for each in asked if n_codes[each.slug] > len(each.categories)}
    assert asked is MIXED or coded == {"both", "of_day", "length", "spent"}


def test_a_number_is_recomputed_where_a_cut_has_no_reports(tmp_path, recompute):
    study = factory.published(factory.LENGTH, factory.GENDER, n=40)
    done = recompute(unpacked(study, tmp_path / "bundle"))
    assert (done.returncode, done.stderr) == (0, "")
    assert any(report.status == "not_reliable" for report in select_study(study).reports)


def test_blanks_are_recomputed_too(tmp_path, recompute):
    study = factory.create(factory.GENDER, factory.HALF_STAY)
    factory.publish(study, factory.absent_on(factory.crowd(study, n=300), day=4))
    DayNote.objects.create(study=study, day=2, kind="outage", text="mast down", by="adam")
    folder = unpacked(study, tmp_path / "bundle")
    records = json.loads((folder / "export.json").read_text())
    assert {record["status"] for record in records} >= {"ok", "not_collected", "outage"}
    assert "not_reliable" in {estimate["status"] for record in records for estimate in record["estimates"]}
    assert (len(records), recompute(folder).returncode) == (10 + 4, 0)


def test_changed_number_or_file_is_noticed(fair, tmp_path, recompute):
    folder = unpacked(fair, tmp_path / "bundle")
    exported, manifest_file = folder / "export.json", folder / "manifest.json"
    records = json.loads(exported.read_text())
    changed = records[3]["estimates"][1]
    changed["std_error"] = np.nextafter(changed["std_error"], 1.0)
    exported.write_text(json.dumps(records, ensure_ascii=False, indent=1))
    done = recompute(folder)
    assert (done.returncode, done.stderr) == (1, "not as in manifest.json: export.json\n")
    manifest = json.loads(manifest_file.read_text())
    manifest["sha256"]["export.json"] = hashlib.sha256(exported.read_bytes()).hexdigest()
    manifest_file.write_text(json.dumps(manifest))
    done = recompute(folder)
    assert done.returncode == 1
    assert done.stderr.startswith("different: line ") and '"std_error"' in done.stderr


def test_holds_what_is_stored_and_nothing_else_and_the_same_bytes_each_time(fair, tmp_path):
    folder = unpacked(fair, tmp_path)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert files == {"manifest.json", *manifest["sha256"]}
    tallies = {f"{slug}.{what}" for slug in ("gender", "age", "stay") for what in ("counts", "n_reports")}
    found = {name for name in files if name.startswith("tallies/")}
    assert found == {f"tallies/{name}.npy" for name in ("visitors", *tallies)}
    for name, expected in manifest["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
    stored = Tally.objects.get(indicator__slug="age")
    assert np.load(folder / "tallies/age.counts.npy").tobytes() == bytes(stored.counts)
    assert json.loads((folder / "plan.json").read_text()) == stored.plan.spec
    assert json.loads((folder / "statement.json").read_text())["plan"]["version"] == 1
    assert set(manifest["software"]) == {"name", "version"}
    assert bundle_of(fair) == bundle_of(Study.objects.get())


def test_study_that_hides_small_windows_has_no_bundle(fair):
    unions = visitor_unions(fair)
    least = int(unions[unions > 0].min())
    fair.small_cell = least
    assert bundle_of(fair)
    fair.small_cell = least + 1
    with pytest.raises(ExportError, match=rf"suppresses date ranges with fewer than {least + 1} visitors"):
        bundle_of(fair)


def test_answers_that_come_in_meanwhile_do_not_mix(fair, tmp_path, recompute, monkeypatch):
    arriving = [factory.crowd(fair, n=200, seed=9)]

    def select(study):
        if arriving:
            factory.publish(study, arriving.pop())
        return select_study(study)

    monkeypatch.setattr(bundle, "select_study", select)
    assert recompute(unpacked(fair, tmp_path / "bundle")).returncode == 0

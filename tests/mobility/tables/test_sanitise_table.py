"""A table of places through the command: checked, approved by a second person, and written once."""

import csv
import gzip
import json
import re
from math import log

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError
from django.db import IntegrityError, transaction

from ldp import KeyedStream
from mobility.models import TableRequest, VaultStudy
from mobility.plans.studies import create_study
from mobility.tables import approvals
from mobility.tables.options import TableError
from mobility.tables.placing import TableArea, noise_purpose, spec_of
from mobility.tables.sanitising import distance_m
from mobility.vault.keystore import keystore
from reports.ledger.actions import record
from reports.models import LedgerEntry, LedgerKind
from reports.studies.studyfile import StudyDefinition
from tests.mobility.commands import printed
from tests.mobility.pipeline import MASTER_KEY

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
ARGS = ["--id", "call", "--lat", "lat", "--lon", "lon", "--level", "ln 3", "--radius", "200"]
N = 300
LAT, LON = 47.64, 6.86
SQUARE = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "properties": {"zone": name}, "geometry": {"type": "Polygon", "coordinates": [
            [[west, 47.5], [west + 0.2, 47.5], [west + 0.2, 47.8], [west, 47.8], [west, 47.5]]]}}
        for name, west in (("West", 6.66), ("East", 6.86))
    ],
}  # fmt: skip


@pytest.fixture
def study(data_dir, definition):
    create_study(definition, by="adam")
    row = VaultStudy.objects.get()
    (keystore().folder / f"{row.key_id}.key").write_bytes(MASTER_KEY)
    return row


def calls(n=N):
    """Calls of a table: id, place, zone, and two columns that say nothing of places."""
    stream = KeyedStream(b"calls of a table")
    lat, lon, minutes = ((stream.words(n) >> np.uint64(11)) * 2.0**-53 for _ in range(3))
    return [
        {"call": f"C{i}", "lat": f"{LAT + 0.06 * (a - 0.5):.6f}", "lon": f"{LON + 0.1 * (o - 0.5):.6f}",
         "zone": "?", "minutes": f"{10 * m:.2f}", "severity": "high" if m > 0.6 else "low"}
        for i, (a, o, m) in enumerate(zip(lat, lon, minutes, strict=True))
    ]  # fmt: skip


def written(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def file(tmp_path):
    return written(tmp_path / "calls.csv", calls())


@pytest.fixture
def zones(tmp_path):
    """Two zones in a file; the area is smaller than that of the study, so squares are 140 m, not 400 m."""
    path = tmp_path / "zones.geojson"
    path.write_text(json.dumps(SQUARE))
    return path


def run(study, file, to, *more):
    return printed("sanitise_table", study.slug, str(file), str(to), *ARGS, *more)


def approved(study, file, to, *more, by="petra"):
    with pytest.raises(CommandError, match="needs approval from a second person"):
        run(study, file, to, *more)
    approvals.approve(TableRequest.objects.get(is_approved=None), by=by)
    return run(study, file, to, *more)


def table_of(path):
    with path.open(newline="") as opened:
        return list(csv.DictReader(opened))


def told():
    entries = LedgerEntry.objects.filter(kind="table.sanitised").order_by("number")
    return [(entry.actor, entry.facts["what"]) for entry in entries]


def refuses(words, study, file, *more, to="out.csv"):
    out = file.with_name(to)
    with pytest.raises(CommandError, match=words) as refused:
        run(study, file, out, *more)
    assert not TableRequest.objects.exists()
    assert not LedgerEntry.objects.filter(kind="table.sanitised").exists()
    return str(refused.value)


class TestApproval:
    def test_it_is_written_once_after_another_person_approved_exactly_it(self, study, file, tmp_path):
        out = tmp_path / "out.csv"
        for _ in range(2):  # asked once
            with pytest.raises(CommandError, match="Request 1 needs approval from a second person"):
                run(study, file, out)
        assert not out.exists()
        approvals.approve(TableRequest.objects.get(), by="petra")
        with pytest.raises(CommandError, match="needs approval from a second person"):  # other options
            run(study, file, out, "--drop", "minutes")
        made = run(study, file, out)
        assert (made["rows"], made["ids"], made["request"], made["not_checked"]) == (N, N, 1, [])
        with pytest.raises(CommandError, match="there is a file"):
            run(study, file, out)
        out.unlink()
        with pytest.raises(CommandError, match="Request 3 needs approval from a second person"):
            run(study, file, out)
        assert told() == [
            ("command line", "asked"), ("petra", "approved"), ("command line", "asked"),
            ("command line", "written"), ("command line", "asked"),
        ]  # fmt: skip

    def test_another_file_takes_another_approval(self, study, file, tmp_path):
        with pytest.raises(CommandError, match="needs approval"):
            run(study, file, tmp_path / "out.csv")
        approvals.approve(TableRequest.objects.get(), by="petra")
        file.write_text(file.read_text().replace("high", "High", 1))
        with pytest.raises(CommandError, match="needs approval"):
            run(study, file, tmp_path / "out.csv")

    def test_whoever_asked_or_could_act_as_them_approves_nothing(self, study, file, tmp_path):
        with pytest.raises(CommandError, match="needs approval"):
            run(study, file, tmp_path / "out.csv")
        asked = TableRequest.objects.get()
        TableRequest.objects.update(asked_by="olga")
        asked.refresh_from_db()
        record(LedgerKind.ACCESS_CHANGED, actor="olga", facts={"account": "petra", "change": "created"})
        for by, words in (("olga", "olga made this request"), ("petra", "olga created the account petra")):
            with pytest.raises(TableError, match=words):
                approvals.approve(asked, by=by)
        approvals.refuse(asked, by="petra")
        with pytest.raises(TableError, match="petra has already approved or refused"):
            approvals.approve(asked, by="mona")

    def test_where_one_person_works_it_is_written_at_once(self, study, file, tmp_path, settings):
        settings.MOBILITY_SECOND_PERSON = False
        assert run(study, file, tmp_path / "out.csv")["request"] is None
        assert told() == [("command line", "written")]

    @pytest.mark.database
    def test_the_database_refuses_an_approval_by_whoever_asked(self, study, file, tmp_path):
        with pytest.raises(CommandError, match="needs approval"):
            run(study, file, tmp_path / "out.csv")
        asked = TableRequest.objects.get()
        own = {"is_approved": True, "decided_by": asked.asked_by, "decided_at": asked.asked_at}
        for changes in (own, {"written_at": asked.asked_at}):
            with pytest.raises(IntegrityError), transaction.atomic(using="vault"):
                TableRequest.objects.update(**changes)

    def test_nothing_is_written_that_the_ledger_does_not_know(self, study, file, tmp_path, monkeypatch):
        with pytest.raises(CommandError, match="needs approval"):
            run(study, file, tmp_path / "out.csv")
        approvals.approve(TableRequest.objects.get(), by="petra")

        def fails(*_, **__):
            raise OSError("disk full")

        monkeypatch.setattr(approvals, "record", fails)
        with pytest.raises(CommandError, match="disk full"):
            run(study, file, tmp_path / "out.csv")
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["calls.csv"]
        assert TableRequest.objects.get().written_at is None

    def test_without_the_key_there_is_no_table(self, study, file, tmp_path):
        keystore().destroy(study.key_id)
        refuses("was destroyed", study, file)


class TestContent:
    def test_places_have_noise_and_zone_and_distance_follow_from_it(self, study, file, zones, tmp_path):
        out = tmp_path / "out.csv"
        made = approved(study, file, out, "--zones", str(zones), "--distance-to", f"centre={LAT},{LON}")
        rows, truth = table_of(out), calls()
        assert list(rows[0]) == [*truth[0], "distance_to_centre_m"]
        kept = ("minutes", "severity")
        assert [[row[name] for name in kept] for row in rows] == [
            [row[name] for name in kept] for row in truth
        ]
        lat, lon = (np.array([float(row[name]) for row in rows]) for name in ("lat", "lon"))
        away = distance_m(lat=lat, lon=lon, lat_to=LAT, lon_to=LON)
        assert away == pytest.approx([float(row["distance_to_centre_m"]) for row in rows], abs=0.51)
        shift = [
            distance_m(
                lat=np.array([b]), lon=np.array([o]), lat_to=float(row["lat"]), lon_to=float(row["lon"])
            )[0]
            for b, o, row in zip(lat, lon, truth, strict=True)
        ]
        # Mean 2 / epsilon = 364 m, standard deviation 257 m: 15 m is one standard error of 300 rows.
        assert np.mean(shift) == pytest.approx(400 / log(3), abs=60)
        assert [row["zone"] for row in rows] == ["East" if each > LON else "West" for each in lon]
        true_lon = np.array([float(row["lon"]) for row in truth])
        assert made["zone_changed"] == pytest.approx(np.mean((lon > LON) != (true_lon > LON)), abs=1e-3)
        assert made["zone_changed"] > 0

    def test_a_place_repeated_under_one_id_has_one_report_in_every_run(self, study, tmp_path):
        rows = calls()
        rows.append({**rows[7], "minutes": "3.25"})
        rows.append({**rows[7], "call": "another"})
        file = written(tmp_path / "calls.csv", rows)
        first = tmp_path / "one.csv"
        approved(study, file, first)
        found = table_of(first)
        assert [found[N][name] for name in ("lat", "lon")] == [found[7][name] for name in ("lat", "lon")]
        assert found[N + 1]["lat"] != found[7]["lat"]  # another id has its own noise
        # Another file, format and run: the same noise for the same id and place.
        other = tmp_path / "two.parquet"
        pq.write_table(
            pyarrow.csv.read_csv(file).select(["lon", "lat", "call"]).slice(0, 50), tmp_path / "b.parquet"
        )
        approved(study, tmp_path / "b.parquet", other)
        again = pq.read_table(other)
        assert again["lat"].to_pylist() == [float(row["lat"]) for row in found[:50]]
        assert again.column_names == ["lon", "lat", "call", "zone"]
        assert again["call"].to_pylist() == [row["call"] for row in found[:50]]  # the same pseudonyms

    def test_a_pseudonym_stands_in_place_of_each_id(self, study, tmp_path):
        """An id that is the exact place does not leave, nor does its column when it is dropped."""
        rows = [row | {"call": f"{row['lat']},{row['lon']}"} for row in calls()]
        rows.append({**rows[7], "minutes": "3.25"})
        file, out = written(tmp_path / "calls.csv", rows), tmp_path / "out.csv"
        assert "call" not in approved(study, file, out)["columns"]
        assert not any(row["call"] in out.read_text() for row in rows)
        ids = [row["call"] for row in table_of(out)]
        assert ids[N] == ids[7]
        assert len(set(ids)) == N
        assert all(re.fullmatch("[0-9a-f]{16}", each) for each in ids)
        approved(study, file, tmp_path / "none.csv", "--drop", "call")
        assert "call" not in table_of(tmp_path / "none.csv")[0]

    def test_another_level_has_other_noise(self, study, file, zones, tmp_path):
        approved(study, file, tmp_path / "one.csv", "--zones", str(zones))
        approved(study, file, tmp_path / "two.csv", "--zones", str(zones), "--level", "ln 2")
        one, two = (table_of(tmp_path / name) for name in ("one.csv", "two.csv"))
        truth = calls()
        # With the same bits, both reports would lie in one direction from the true place.
        turns = [
            np.cos(_direction(row, a) - _direction(row, b)) for row, a, b in zip(truth, one, two, strict=True)
        ]
        assert abs(np.mean(turns)) < 0.2  # one if it were the same; 0.04 is its standard error

    def test_zones_of_a_file_and_a_gzip_table(self, study, file, zones, tmp_path):
        packed = tmp_path / "calls.csv.gz"
        packed.write_bytes(gzip.compress(file.read_bytes()))
        out = tmp_path / "out.csv"
        approved(study, packed, out, "--zones", str(zones), "--zone", "half", "--drop", "zone")
        rows = table_of(out)
        assert "zone" not in rows[0]
        assert all(row["half"] == ("East" if float(row["lon"]) > 6.86 else "West") for row in rows)

    def test_rows_in_the_order_of_their_places_are_mixed(self, study, tmp_path):
        rows = sorted(calls(2_000), key=lambda row: float(row["lat"]) // 0.005)
        file, out = written(tmp_path / "calls.csv", rows), tmp_path / "out.csv"
        assert approved(study, file, out)["reordered"]
        ids = [row["call"] for row in table_of(out)]
        assert ids == sorted(ids)
        assert len(set(ids)) == len(rows)

    def test_nothing_but_the_table_is_left_and_only_its_owner_reads_it(self, study, file, tmp_path):
        out = tmp_path / "out.csv"
        approved(study, file, out)
        assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"calls.csv", "out.csv"}
        assert out.stat().st_mode & 0o777 == 0o600

    def test_facts_of_a_parquet_file_do_not_come_along(self, study, file, tmp_path):
        given = pyarrow.csv.read_csv(file).replace_schema_metadata(
            {"geo": '{"bbox": [6.8, 47.6, 6.9, 47.7]}'}
        )
        pq.write_table(given, tmp_path / "in.parquet")
        approved(study, tmp_path / "in.parquet", tmp_path / "out.parquet")
        assert b"bbox" not in (tmp_path / "out.parquet").read_bytes()

    @pytest.mark.parametrize("value_type", [pa.string(), pa.int64()])
    def test_values_that_no_row_uses_do_not_leave(self, study, file, tmp_path, value_type):
        """A column of categories from pandas still has those of the rows that were taken out."""
        given = pyarrow.csv.read_csv(file)
        values = pa.array(["47641234", "12", "13"]).cast(value_type)
        crew = pa.DictionaryArray.from_arrays(pa.array([1, 2] * (N // 2), pa.int8()), values)
        pq.write_table(given.append_column("crew", crew), tmp_path / "in.parquet")
        approved(study, tmp_path / "in.parquet", tmp_path / "out.parquet")
        made = pq.read_table(tmp_path / "out.parquet")["crew"]
        assert made.type == value_type
        assert made.to_pylist() == crew.to_pylist()


class TestRefusals:
    def test_it_says_what_is_wrong(self, study, tmp_path):
        for change, more, words in (
            ({"city": "Belfort"}, (), r"'city' \(its name is that of a place\).* --drop city"),
            ({"lat2": "47"}, ("--drop", "zone"), "lat2"),
            ({"call": ""}, (), "column 'call', rows 2, 3, 4, 5, 6 and 295 more: the id is empty"),
            ({}, ("--drop", "nothing"), "the file has no column 'nothing'"),
            ({}, ("--drop", "lat"), "column 'lat' is replaced by the sanitised position: do not drop it"),
            ({}, ("--zone", "call"), "column 'call' is named for two purposes"),
            ({}, ("--grid", "10", "--radius", "50000"), r"squares, more than .*option --grid"),
        ):
            refuses(words, study, written(tmp_path / "in.csv", [row | change for row in calls()]), *more)

    def test_errors_name_column_and_row_and_no_value(self, study, tmp_path):
        rows = calls()
        for wrong in ("", "x", "91", "nan", "48,5 high street"):
            rows[4]["lat"] = wrong
            told = refuses(
                r"column 'lat', row 6: must be a number of degrees from -90 to 90",
                study, written(tmp_path / "in.csv", rows),
            )  # fmt: skip
            assert not wrong or wrong not in told.replace("-90 to 90", "")

    def test_exchanged_columns_and_the_other_side_of_the_earth(self, study, tmp_path):
        rows = [row | {"lat": row["lon"], "lon": row["lat"]} for row in calls()]
        refuses("no row is in the area: see that 'lat' and 'lon'", study, written(tmp_path / "in.csv", rows))
        far = [*calls(), calls()[0] | {"call": "far", "lat": "-47.64", "lon": "-173.1"}]
        file = written(tmp_path / "far.csv", far)
        assert approved(study, file, tmp_path / "out.csv")["outside"] == 1

    def test_an_id_has_one_place(self, study, tmp_path):
        rows = calls()
        rows[9]["call"] = rows[8]["call"]
        told = refuses(
            "column 'call', row 11: the id has another place", study, written(tmp_path / "in.csv", rows)
        )
        assert "only if they belong to different people" in told

    def test_later_rows_of_an_id_are_checked(self, study, tmp_path):
        rows = [row | {"node": node} for row in calls(2_000) for node in ("", row["lat"])]
        refuses(r"'node' \(rows close to each other", study, written(tmp_path / "in.csv", rows))

    def test_a_column_that_follows_from_the_place_is_refused(self, study, tmp_path):
        rows = calls(3_000)
        for row in rows:
            row["away"] = f"{np.hypot(float(row['lat']) - 47.65, float(row['lon']) - 6.85):.5f}"
        refuses(r"'away' \(rows close to each other", study, written(tmp_path / "in.csv", rows))

    def test_files_that_are_no_table(self, study, tmp_path):
        for text, words in (
            ("call,lat,lon\n", "the file has no rows"),
            ("call,lat,lon,lat\nC1,47,6,47\n", "column 'lat' appears more than once"),
            ("call,lat,lon\nC1,47.6,6.8\nC2,47.6\n", "line 3 has another number of columns"),
            ("call,lat\nC1,47\n", "the file has no column 'lon'"),
            ("PAR1 and no more", "Parquet file is damaged"),
        ):
            (tmp_path / "in.csv").write_text(text)
            refuses(words, study, tmp_path / "in.csv")

    def test_binary_columns_are_dropped_or_refused(self, study, file, tmp_path):
        given = pyarrow.csv.read_csv(file)
        given = given.append_column("shape", pa.array([b"\x01"] * N))
        pq.write_table(given, tmp_path / "in.parquet")
        refuses("column 'shape' has nested or binary values", study, tmp_path / "in.parquet")
        approved(study, tmp_path / "in.parquet", tmp_path / "out.parquet", "--drop", "shape")

    def test_other_endings_and_missing_files(self, study, file, tmp_path, settings):
        settings.MOBILITY_SECOND_PERSON = False
        with pytest.raises(CommandError, match=r"must end in .csv or .parquet"):
            run(study, file, tmp_path / "out.xlsx")
        with pytest.raises(CommandError, match="No such file"):
            run(study, tmp_path / "none.csv", tmp_path / "out.csv")

    def test_wrong_options(self, study, file):
        for more, words in (
            (("--level", "8"), "--level must be a number > 0 and <= 7"),
            (("--level", "ln x"), "--level must be a number"),
            (("--radius", "9"), "--radius must be from 10 to 50000 metres"),
            (("--grid", "9"), "--grid must be from 10 to 50000 metres"),
            (("--radius", "x"), "argument --radius"),
            (("--distance-to", "centre=91,0"), "argument --distance-to: must be a name and degrees"),
        ):
            refuses(words, study, file, *more)


def test_each_promise_and_area_has_a_key_of_its_own(study):
    area = TableArea(_area(study))
    made = [
        noise_purpose(area, spec_of(area, level=level, radius_m=radius_m, grid_m=grid_m))
        for level, radius_m, grid_m in ((1, 200, 500), (2, 200, 500), (1, 300, 500), (1, 200, 600))
    ]
    assert len(set(made)) == 4


def _area(study):
    return StudyDefinition.from_json(study.definition).area


def _direction(true, noisy):
    return np.arctan2(
        float(noisy["lat"]) - float(true["lat"]), 0.674 * (float(noisy["lon"]) - float(true["lon"]))
    )

"""GeoPackages and shapefiles, read by GDAL from a folder where nothing else is."""

import io
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

import geopandas as gpd
import pandas as pd
import pyogrio
from pyogrio.errors import DataLayerError, DataSourceError
from shapely.errors import GEOSException

from reports.studies.geography.files.geopackages import check_geopackage
from reports.studies.geography.files.rules import Rules, Source
from reports.studies.geography.files.shapefiles import check_index
from reports.studies.studyfile.problems import Problems, nearest

SHAPEFILE: Final = (".shp", ".shx", ".dbf", ".prj", ".cpg")
MAX_UNPACKED_BYTES: Final = 400_000_000
MAX_ENTRIES: Final = 10_000  # of a zip file: each takes memory before any is looked at
_ENTRY: Final = b"PK\x01\x02"
# GDAL goes by content where it can, and knows formats that name other files: these two are let through.
_BEGINS: Final = {".shp": b"\x00\x00\x27\x0a", ".gpkg": b"SQLite format 3\0"}


def read_container(source: Source, problems: Problems, *, rules: Rules) -> gpd.GeoDataFrame | None:
    """Return the features of a GeoPackage or a shapefile in their own system; None after a problem."""
    files = _files(source, problems)
    if files is None:
        return None
    with TemporaryDirectory(prefix="geography-") as folder:
        for suffix, data in files.items():
            (Path(folder) / f"file{suffix}").write_bytes(data)
        path = Path(folder) / f"file{next(iter(files))}"
        _check(path, files, problems)
        if problems.found:
            return None
        try:
            layers = _layers(path, problems, rules=rules, is_shapefile=path.suffix == ".shp")
            frames = [
                pyogrio.read_dataframe(path, layer=layer, max_features=rules.max_features) for layer in layers
            ]
        except (DataSourceError, DataLayerError, GEOSException, ValueError, OSError) as error:
            reason = str(error).replace(str(path), source.name)
            problems.add("content", f"must be a {_format(path)} that can be read: {reason}")
            return None
    frames = [frame for frame in frames if isinstance(frame, gpd.GeoDataFrame)]
    if problems.found or not frames:
        return None
    if len({frame.crs for frame in frames}) > 1:
        frames = [frame.to_crs(frames[0].crs) for frame in frames]
    return gpd.GeoDataFrame(pd.concat(frames, ignore_index=True)) if len(frames) > 1 else frames[0]


def _check(path: Path, files: dict[str, bytes], problems: Problems) -> None:
    """Note what would let GDAL compute, or read, more than the files hold."""
    if path.suffix == ".gpkg":
        check_geopackage(path, problems)
    elif ".shx" in files:
        check_index(files[".shp"], files[".shx"], problems)


def _format(path: Path) -> str:
    return "shapefile" if path.suffix == ".shp" else "GeoPackage"


def _files(source: Source, problems: Problems) -> dict[str, bytes] | None:
    """Return the files for GDAL, by suffix, the main file first; None after a problem."""
    if source.suffix == ".zip":
        files = _unzipped(source.data, problems)
    else:
        files = {source.suffix: source.data, **source.beside}
    if files is None:
        return None
    main = next(iter(files))
    if not files[main].startswith(_BEGINS[main]):
        problems.add("content", f"must be a {_format(Path('file' + main))}, but does not start like one")
        return None
    if main == ".shp" and ".dbf" not in files:
        problems.add("content", "must have the .dbf of the shapefile, which holds the attributes")
        return None
    return files


def _unzipped(data: bytes, problems: Problems) -> dict[str, bytes] | None:
    """The one shapefile, or GeoPackage, of a zip file."""
    if data.count(_ENTRY) > MAX_ENTRIES:
        problems.add("content", f"must be a zip file of at most {MAX_ENTRIES} files")
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.filename.startswith("__MACOSX/")]
            mains = [entry for entry in entries if _suffix(entry) in _BEGINS]
            if len(mains) != 1:
                names = ", ".join(entry.filename for entry in mains) or "none"
                problems.add("content", "must hold one shapefile, or one GeoPackage", names)
                return None
            stem = PurePosixPath(mains[0].filename).with_suffix("")
            beside = [e for e in entries if PurePosixPath(e.filename).with_suffix("") == stem]
            chosen = [*mains, *(e for e in beside if e is not mains[0] and _suffix(e) in SHAPEFILE)]
            if sum(entry.file_size for entry in chosen) > MAX_UNPACKED_BYTES:
                problems.add("content", f"must be at most {MAX_UNPACKED_BYTES // 1_000_000} MB unpacked")
                return None
            return {_suffix(entry): archive.read(entry) for entry in chosen}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, zlib.error) as error:
        problems.add("content", f"must be a readable zip file without a password: {error}")
        return None


def _suffix(entry: zipfile.ZipInfo) -> str:
    return PurePosixPath(entry.filename).suffix.lower()


def _layers(path: Path, problems: Problems, *, rules: Rules, is_shapefile: bool) -> list[str]:
    """Names of the layers to read; none after a problem."""
    known = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
    if is_shapefile:  # its layer has the name of the file, which is ours
        if rules.layer:
            problems.add("layers", "must not be set: a shapefile has only one layer", rules.layer)
        chosen = known
    elif rules.layer:
        chosen = [rules.layer] if rules.layer in known else []
        if not chosen:
            rule = f"must have the named layer, has {', '.join(known) or 'none with geometries'}"
            problems.add("layers", rule + nearest(rules.layer, known=known), rules.layer)
    else:
        chosen = known
        if not known:
            problems.add("layers", "must be at least one with geometries")
        elif len(known) > 1 and not rules.all_layers:
            problems.add(
                "layers", f"must be one, or zones_layer must name one of {', '.join(known)}", len(known)
            )
    n_features = sum(int(pyogrio.read_info(path, layer=layer)["features"]) for layer in chosen)
    if n_features > rules.max_features:
        problems.add("features", f"must be at most {rules.max_features} {rules.noun}s", n_features)
    if chosen and not n_features:
        problems.add("features", f"must be at least one {rules.noun}")
    return [] if problems.found else chosen

"""Files of geometries as programs for maps write them."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas as gpd
import pytest


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., bytes]:
    """Content of a file that GeoPandas writes; a shapefile as a zip file of all its parts."""

    def write(table: gpd.GeoDataFrame, name: str, **options: Any) -> bytes:
        path = tmp_path / name
        if path.suffix != ".zip":
            table.to_file(path, **options)
            return path.read_bytes()
        table.to_file(path.with_suffix(".shp"), **options)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for suffix in (".cpg", ".dbf", ".prj", ".shp", ".shx"):
                if (part := path.with_suffix(suffix)).exists():
                    archive.write(part, f"folder/{part.name}")
        return packed.getvalue()

    return write

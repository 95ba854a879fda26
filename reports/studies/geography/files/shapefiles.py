"""Checks of a shapefile before GDAL: an index that names the same large record again and again."""

from typing import Final

import numpy as np

from reports.studies.studyfile.problems import Problems

_HEADER_BYTES: Final = 100  # of .shp and .shx
_WORD_BYTES: Final = 2  # places and lengths are counted in words


def check_index(shp: bytes, shx: bytes, problems: Problems) -> None:
    """Note if records of a shapefile share bytes: then there is more to read than the file holds."""
    entries = shx[_HEADER_BYTES:]
    index = np.frombuffer(entries[: len(entries) // 8 * 8], ">i4").reshape(-1, 2).astype(np.int64)
    index = index[index[:, 1] > 0]  # a deleted record has no length
    begins, lengths = index[:, 0] * _WORD_BYTES, index[:, 1] * _WORD_BYTES
    if len(begins) and (begins.min() < _HEADER_BYTES or begins.max() + 8 > len(shp)):
        problems.add("content", "must be a shapefile whose index matches: save all its files again")
        return
    # Each record says its length, too, and GDAL believes it where the index says less.
    places = begins[:, None] + np.arange(4, 8)
    said = np.frombuffer(shp, np.uint8)[places].copy().view(">i4")[:, 0].astype(np.int64) * _WORD_BYTES
    order = np.argsort(begins, kind="stable")
    ends = (begins + 8 + np.maximum(lengths, said))[order]
    if (begins[order][1:] < ends[:-1]).any():
        problems.add("content", "must be a shapefile whose records do not overlap: save all its files again")

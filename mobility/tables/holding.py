"""Columns that still hold the place: by their names, and by following from the place in the data.

A sanitised position protects nothing if the district, the address or a distance from the true place is in the
same row. Names find most such columns. The data find others: rows that are close to each other have the
same value of them, or nearly the same number, and rows that are far from each other have not.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

# Words of a column's name, in English and French, without accents and plurals.
_OF_POSITIONS = """lat latitude lon lng long longitude coord coordinate coordonnee x y z easting northing gps
wgs lambert utm mercator geo geom geometry geometrie geohash geocode wkt wkb h3 hexagon w3w what3words point
location loc localisation lieu place position altitude elevation grid grille tile"""
_OF_ADDRESSES = """address adresse addr street rue road route voie avenue boulevard house building batiment
city ville town village commune municipality municipalite insee iris zip zipcode postal postcode cp parcel
parcelle cadastre"""
_OF_AREAS = """district arrondissement quartier neighbourhood neighborhood neighbour suburb borough county
canton departement department dept province region state country pays zone zonage area secteur sector"""
_OF_NETWORKS = """cell cellule antenna antenne mast bts enodeb site tower lac tac hub station stop arret
distance dist itinerary itineraire commute"""
PLACE_WORDS: Final = frozenset(" ".join((_OF_POSITIONS, _OF_ADDRESSES, _OF_AREAS, _OF_NETWORKS)).split())
MIN_ROWS: Final = 30  # with another row at their place or in their square, before the data say anything
SCORE: Final = 0.8  # of what a column of the place would reach
SQUARES_M: Final = tuple(50 * 2**n for n in range(8))  # 50 m to 6.4 km
MOSTLY_DISTINCT: Final = 0.5  # share of rows with their own text
NUMERIC: Final = 0.95  # share of texts that are numbers

Metres = NDArray[np.float64]
Groups = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Columns that hold the place, and those that the data could not judge.

    by_name, by_data : names, in file order; none is in both
    unjudged : too few rows are close to each other, or nearly every row has its own text
    by_order : whether the order of the rows follows from their places
    """

    by_name: tuple[str, ...]
    by_data: tuple[str, ...]
    unjudged: tuple[str, ...]
    by_order: bool


def holding_place(table: pa.Table, *, x_m: Metres, y_m: Metres, one_each: NDArray[np.int64]) -> Findings:
    """Look for columns that hold the place.

    Parameters
    ----------
    table : the columns that would stay
    x_m, y_m : float64 (n,); true place of each row, in metres
    one_each : int64; one row of each id: rows of one id share their place anyway
    """
    by_name = tuple(name for name in table.column_names if is_named_as_place(name))
    groups = [_ids(x_m, y_m), *(_squares(x_m, y_m, side_m) for side_m in SQUARES_M)]
    chosen = [group[one_each] for group in groups]
    by_data, unjudged = [], []
    for name in table.column_names:
        if name in by_name:
            continue
        values = table[name].combine_chunks().take(pa.array(one_each))
        scores = list(_scores(values, chosen))
        if any(score >= SCORE for score in scores):
            by_data.append(name)
        elif not scores:
            unjudged.append(name)
    by_order = any(score >= SCORE for score in _scores(pa.array(one_each), chosen))
    return Findings(by_name=by_name, by_data=tuple(by_data), unjudged=tuple(unjudged), by_order=by_order)


def is_named_as_place(name: str) -> bool:
    """Return whether a word of the name is one of places: "homeCity", "code_insee", "LAT2"."""
    letters = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).casefold()
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    words = re.findall(r"[a-z]+[0-9]*[a-z]*", plain)
    return any(form in PLACE_WORDS for word in words for form in _forms(word))


def _forms(word: str) -> Iterable[str]:
    """A word, and the same without digits at its end and without its plural."""
    bare = word.rstrip("0123456789")
    return {word, bare, bare.removesuffix("s")}


def _ids(x_m: Metres, y_m: Metres) -> Groups:
    """Number of the place of each row; the same exact place has the same."""
    _, found = np.unique(np.column_stack([x_m, y_m]), axis=0, return_inverse=True)
    return np.asarray(found, np.int64).ravel()


def _squares(x_m: Metres, y_m: Metres, side_m: int) -> Groups:
    column, row = (np.floor(each / side_m).astype(np.int64) for each in (x_m, y_m))
    width = int(column.max() - column.min()) + 1
    return np.asarray((row - row.min()) * width + column - column.min(), np.int64)


def _scores(values: pa.Array, groups: list[Groups]) -> Iterator[float]:
    """Share of a column that follows from the place, at most 1, for each size of squares that can tell."""
    codes, n_distinct = _codes(values)
    ranks = _ranks(values)
    for place, group in enumerate(groups):
        _, group_of, sizes = np.unique(group, return_inverse=True, return_counts=True)
        shared = sizes[group_of] > 1
        if shared.sum() < MIN_ROWS:
            continue
        # Texts of nearly every row agree only where a place is exactly the same.
        if place == 0 or n_distinct <= MOSTLY_DISTINCT * len(codes):
            yield _agreement(codes, group_of, sizes)
        if ranks is not None:
            yield _closeness(ranks, group_of, shared)


def _codes(values: pa.Array) -> tuple[NDArray[np.int64], int]:
    """Number of each value, and how many there are; no value is one of them."""
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def _ranks(values: pa.Array) -> Metres | None:
    """Rank of each number, so that outliers do not count for more; None of a column that is none."""
    kind = values.type
    if pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        return None
    texts = pc.replace_substring(values.cast(pa.string()), ",", ".")
    is_number = pc.match_substring_regex(texts, r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$")
    known = np.asarray(pc.fill_null(is_number, False).to_numpy(zero_copy_only=False), np.bool_)
    n_texts = len(texts) - texts.null_count - int(pc.sum(pc.equal(texts, "")).as_py() or 0)
    if known.sum() < max(NUMERIC * n_texts, MIN_ROWS):
        return None
    numbers = np.full(len(known), np.nan)
    numbers[known] = [float(text) for text in texts.filter(pa.array(known)).to_pylist()]
    ranks = np.full(len(known), np.nan)
    _, ranks[known] = np.unique(numbers[known], return_inverse=True)
    return ranks


def _agreement(codes: NDArray[np.int64], group_of: Groups, sizes: NDArray[np.int64]) -> float:
    """Share of a row's neighbours with its value, beyond what chance would give, averaged over rows."""
    total = np.bincount(codes)
    n = len(codes)
    chance = float((total * (total - 1.0)).sum()) / (n * (n - 1.0))
    if chance >= 1:  # one value for all rows: it says nothing
        return 0.0
    pairs, counts = np.unique(group_of * (codes.max() + 1) + codes, return_counts=True)
    of_group = sizes[pairs // (codes.max() + 1)]
    many = of_group > 1
    agreeing = (counts * (counts - 1.0) / np.maximum(of_group - 1.0, 1))[many].sum()
    return (float(agreeing) / float(sizes[sizes > 1].sum()) - chance) / (1 - chance)


def _closeness(ranks: Metres, group_of: Groups, shared: NDArray[np.bool_]) -> float:
    """Share of the variance of ranks that squares explain (as intraclass correlation); 0 without any."""
    rows = shared & ~np.isnan(ranks)
    _, group, sizes = np.unique(group_of[rows], return_inverse=True, return_counts=True)
    free = int((sizes - 1).sum())
    variance = float(np.nanvar(ranks, ddof=1)) if free else 0.0
    if free < MIN_ROWS / 2 or variance == 0:
        return 0.0
    values = ranks[rows]
    means = np.bincount(group, weights=values) / sizes
    within = float(((values - means[group]) ** 2).sum()) / free
    return 1 - within / variance

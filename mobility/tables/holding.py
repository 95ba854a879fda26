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
wgs lambert utm mercator geom geometry geometrie wkt wkb h3 hexagon quadkey mgrs w3w what3words point
location loc localisation lieu place position pos altitude elevation grid grille tile"""
_OF_ADDRESSES = """address adresse addr street rue road route voie avenue boulevard house building batiment
city ville town village commune municipality municipalite insee iris zip zipcode postal postcode
codepostal plz cp parcel parcelle cadastre"""
_OF_AREAS = """district arrondissement quartier neighbourhood neighborhood neighbour suburb borough county
canton departement department dept province region state country pays zone zonage area secteur sector"""
_OF_NETWORKS = """cell cellule antenna antenne mast bts enodeb site tower lac tac hub station stop arret
distance dist itinerary itineraire commute"""
PLACE_WORDS: Final = frozenset(" ".join((_OF_POSITIONS, _OF_ADDRESSES, _OF_AREAS, _OF_NETWORKS)).split())
PLACE_PREFIXES: Final = ("lat", "lon", "geo")
# Words that begin like those, and name no place.
_OTHERS = """late later latest lateness latent latence latency latencies lateral laterale lateralite latex
latin lone lonely longer longest longtemps longue longueur longevity longevite"""
OTHER_WORDS: Final = frozenset(_OTHERS.split())
MIN_IDS: Final = 30  # with another id at their place or in their square, before the data say anything
SCORE: Final = 0.8  # of what a column of the place would reach
UNSURE: Final = 0.3  # from here on, a person has to look
NO_VALUES: Final = ("", "-", "?", "na", "n/a", "nan", "nil", "none", "null")
SQUARES_M: Final = tuple(50 * 2**n for n in range(8))  # 50 m to 6.4 km
MOSTLY_DISTINCT: Final = 0.5  # share of rows with their own text
NUMERIC: Final = 0.95  # share of texts that are numbers

Metres = NDArray[np.float64]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Columns that hold the place, and those that the data could not judge.

    by_name, by_data : names, in file order; none is in both
    unjudged : too few ids are close to each other, nearly every id has its own text, or the column follows
        from the place in part
    by_order : whether the order of the rows follows from their places
    """

    by_name: tuple[str, ...]
    by_data: tuple[str, ...]
    unjudged: tuple[str, ...]
    by_order: bool


def holding_place(table: pa.Table, *, x_m: Metres, y_m: Metres, id_of: Ints) -> Findings:
    """Look for columns that hold the place, in all rows.

    Parameters
    ----------
    table : the columns that would stay
    x_m, y_m : float64 (n,); true place of each row, in metres
    id_of : int64 (n,); number of the id of each row, from 0. Only rows of different ids are compared: those
        of one id share their place anyway
    """
    by_name = tuple(name for name in table.column_names if is_named_as_place(name))
    choices = _choices(id_of)
    first = choices[0]
    squares = [_places(x_m, y_m), *(_squares(x_m, y_m, side_m) for side_m in SQUARES_M)]
    groups = [np.unique(each[first], return_inverse=True)[1].astype(np.int64) for each in squares]

    def highest(values: pa.Array) -> float | None:
        found = [_scores(values.take(pa.array(rows)), id_of[rows], groups) for rows in choices]
        return max((score for scores in found for score in scores), default=None)

    scores = {
        name: highest(table[name].combine_chunks()) for name in table.column_names if name not in by_name
    }
    order = highest(pa.array(np.arange(len(id_of))))
    return Findings(
        by_name=by_name,
        by_data=tuple(name for name, score in scores.items() if score is not None and score >= SCORE),
        unjudged=tuple(name for name, score in scores.items() if score is None or UNSURE <= score < SCORE),
        by_order=order is not None and bool(order >= SCORE),
    )


def is_named_as_place(name: str) -> bool:
    """Return whether a word of the name is one of places: "homeCity", "code_insee", "LAT2"."""
    letters = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).casefold()
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    words = re.findall(r"[a-z]+[0-9]*[a-z]*", plain)
    return any(_is_of_places(form) for word in words for form in _forms(word))


def _is_of_places(word: str) -> bool:
    return word in PLACE_WORDS or (word.startswith(PLACE_PREFIXES) and word not in OTHER_WORDS)


def _forms(word: str) -> Iterable[str]:
    """A word, and the same without digits at its end and without its plural."""
    bare = word.rstrip("0123456789")
    return {word, bare, bare.removesuffix("s")}


def _choices(id_of: Ints) -> list[Ints]:
    """Rows that are judged together: the first of each id; where ids come again, also the last, and all.

    A value that is in one row of each id alone is not hidden by what the other rows have.
    """
    _, first = np.unique(id_of, return_index=True)
    if len(first) == len(id_of):
        return [first]
    _, from_end = np.unique(id_of[::-1], return_index=True)
    return [first, len(id_of) - 1 - from_end, np.arange(len(id_of))]


def _places(x_m: Metres, y_m: Metres) -> Ints:
    """Number of the place of each row; the same exact place has the same."""
    _, found = np.unique(np.column_stack([x_m, y_m]), axis=0, return_inverse=True)
    return np.asarray(found, np.int64).ravel()


def _squares(x_m: Metres, y_m: Metres, side_m: int) -> Ints:
    column, row = (np.floor(each / side_m).astype(np.int64) for each in (x_m, y_m))
    width = int(column.max() - column.min()) + 1
    return np.asarray((row - row.min()) * width + column - column.min(), np.int64)


@dataclass(frozen=True, slots=True)
class _Held:
    """Values that ids have, each pair once.

    ids, values : int64 (p,)
    shares : float64 (p,); share of the id's rows with the value: they sum to 1 for each id
    """

    ids: Ints
    values: Ints
    shares: Floats

    @property
    def is_mostly_distinct(self) -> bool:
        """Return whether nearly every pair has its own value."""
        return len(np.unique(self.values)) > MOSTLY_DISTINCT * len(self.values)


def _held(values: Ints, ids: Ints) -> _Held:
    width = int(values.max(initial=0)) + 1
    pairs, counts = np.unique(ids * width + values, return_counts=True)
    of_id = pairs // width
    rows = np.bincount(of_id, weights=counts)
    return _Held(of_id, pairs % width, counts / rows[of_id])


def _scores(values: pa.Array, ids: Ints, groups: list[Ints]) -> Iterator[float]:
    """Share of a column that follows from the place, at most 1, for each size of squares that can tell.

    ids : int64 (n,), of each value
    groups : for each size, the square of each id
    """
    is_filled = _is_filled(values)
    codes = _codes(values)
    columns = [(_held(codes, ids), _agreement)]
    if not is_filled.all():  # whether there is a value can hold the place, and so can the value
        columns.append((_held(codes[is_filled], ids[is_filled]), _agreement))
    ranks, is_number = _ranks(values, is_filled)
    columns.append((_held(ranks, ids[is_number]), _closeness))
    for held, score in columns:
        is_text = score is _agreement and held.is_mostly_distinct
        # Texts of nearly every id agree only where a place is exactly the same.
        for squares in groups[:1] if is_text else groups:
            group_of = squares[held.ids]
            n_ids = np.rint(np.bincount(group_of, weights=held.shares))
            if n_ids[n_ids > 1].sum() >= MIN_IDS:
                yield score(held, group_of, n_ids)


def _is_filled(values: pa.Array) -> NDArray[np.bool_]:
    """Return which rows have a value."""
    if pa.types.is_temporal(values.type) or pa.types.is_boolean(values.type):
        return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(pc.fill_null(values.cast(pa.string()), "")))
    is_none = pc.is_in(texts, pa.array(NO_VALUES))
    return ~np.asarray(is_none.to_numpy(zero_copy_only=False), np.bool_)


def _codes(values: pa.Array) -> Ints:
    """Number of each value; no value is one of them."""
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _ranks(values: pa.Array, is_filled: NDArray[np.bool_]) -> tuple[Ints, NDArray[np.bool_]]:
    """Rank of each number, so that outliers do not count for more, and which rows have one; none of texts."""
    none = np.empty(0, np.int64), np.zeros(len(values), np.bool_)
    if pa.types.is_temporal(values.type) or pa.types.is_boolean(values.type):
        return none
    texts = pc.replace_substring(values.cast(pa.string()), ",", ".")
    is_number = pc.match_substring_regex(texts, r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$")
    known = np.asarray(pc.fill_null(is_number, False).to_numpy(zero_copy_only=False), np.bool_)
    if known.sum() < max(NUMERIC * is_filled.sum(), MIN_IDS):
        return none
    numbers = np.array([float(text) for text in texts.filter(pa.array(known)).to_pylist()])
    _, ranks = np.unique(numbers, return_inverse=True)
    return np.asarray(ranks, np.int64), known


def _agreement(held: _Held, group_of: Ints, n_ids: Floats) -> float:
    """Share of an id's neighbours with its value, beyond what chance would give, averaged over ids.

    group_of : int64 (p,), of each pair
    n_ids : float64 (k,), of each group
    """
    n = float(n_ids.sum())
    chance = float(_across(held.values, held.shares).sum()) / (n * (n - 1))
    if chance >= 1:  # one value for all ids: it says nothing
        return 0.0
    width = int(held.values.max()) + 1
    cells, cell_of = np.unique(group_of * width + held.values, return_inverse=True)
    n_there = n_ids[cells // width]
    agreeing = float((_across(cell_of, held.shares) / np.maximum(n_there - 1, 1))[n_there > 1].sum())
    return (agreeing / float(n_ids[n_ids > 1].sum()) - chance) / (1 - chance)


def _across(cell_of: Ints, shares: Floats) -> Floats:
    """Ordered pairs of different ids in each cell, counted by both shares; an id is there at most once."""
    return np.asarray(np.bincount(cell_of, shares) ** 2 - np.bincount(cell_of, shares**2), np.float64)


def _closeness(held: _Held, group_of: Ints, n_ids: Floats) -> float:
    """Share of the variance of ranks that squares explain (as intraclass correlation).

    Parameters : as `_agreement`
    """
    n = float(n_ids.sum())
    ranks = held.values - float(held.values @ held.shares) / n
    first, squared = held.shares * ranks, held.shares * ranks**2
    of_ids = np.bincount(held.ids, squared) - np.bincount(held.ids, first) ** 2  # within each id
    variance = (n * float(squared.sum()) - float(of_ids.sum())) / (n * (n - 1))
    if variance <= 0:
        return 0.0
    inner = np.bincount(group_of, of_ids[held.ids] * held.shares)
    between = n_ids * np.bincount(group_of, squared) - np.bincount(group_of, first) ** 2 - inner
    many = n_ids > 1
    within = float((between[many] / n_ids[many]).sum()) / float((n_ids - 1)[many].sum())
    return 1 - within / variance

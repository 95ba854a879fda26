"""Limits of the chunks of an extract; `mobility.extracts.readers.chunks` reads them."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self

WHOLE: Final = "whole"
BYTES: Final = "bytes"
ROW_GROUPS: Final = "row_groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPlan:
    """Limits of a chunk.

    kind : "whole" file, a range of "bytes" of plain text, or a range of "row_groups" of Parquet
    begin, end : the range; of the whole in bytes
    first_row : number of its first row in the file, from 1; of Parquet only
    """

    kind: Literal["whole", "bytes", "row_groups"]
    begin: int
    end: int
    first_row: int = 1

    @classmethod
    def whole(cls, size: int) -> Self:
        return cls(kind=WHOLE, begin=0, end=size)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

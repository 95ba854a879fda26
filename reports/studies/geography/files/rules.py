"""Kinds of files of shapes, and their rules."""

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

MAX_FEATURES: Final = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that [area] names; `beside` has the other files of a shapefile, by suffix."""

    name: str
    data: bytes
    beside: dict[str, bytes] = field(default_factory=dict)

    @property
    def suffix(self) -> str:
        """Ending of the name, in lower case."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def stem(self) -> str:
        """The name without folder and ending."""
        return PurePosixPath(self.name).stem


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Limits of a file.

    kinds : types of geometry
    noun : what a feature is
    layer : name of the layer to read; "" = the only one
    all_layers : whether several layers are read together
    """

    kinds: tuple[str, ...]
    noun: str
    max_features: int = MAX_FEATURES
    layer: str = ""
    all_layers: bool = False

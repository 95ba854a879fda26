"""Width of a coded row: uploads are measured by it before they are read."""


def code_slots(n_static: int, *, is_sampled: bool, has_classes: bool = False) -> int:
    """Return how many codes a row has: the class, and where one indicator is answered only that one's."""
    return (min(n_static, 1) if is_sampled else n_static) + has_classes


def packed_row_bytes(slots: int) -> int:
    """Return the bytes of a row in `Events.pack`, without the header."""
    return 8 + 4 + 4 + 1 + 2 * slots

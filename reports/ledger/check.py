"""Checking the ledger: its own tables, or an exported file. Only what can be computed again counts."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from reports.ledger.chain import BEFORE_THE_FIRST, SignedHead, canonical_hash, entry_hash
from reports.ledger.key import own_public_key
from reports.ledger.models import LedgerEntry, LedgerHead

ROWS_AT_ONCE = 2000
CONTENT = ("at", "kind", "actor", "study", "facts", "event_id", "salt")
WHOLE = frozenset({"number", *CONTENT, "previous_hash", "hash"})
LEFT_OUT = frozenset({"number", "content_hash", "previous_hash", "hash"})  # of an export of one study
HEAD = "ledger_head"

Line = Mapping[str, Any]


class ChainError(Exception):
    """The ledger is not what it was. `number` names the first entry that is wrong, if it is about one."""

    def __init__(self, what: str, *, number: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.number = number


class Chain:
    """Check of entries one after the other, from the first, and its result.

    `entries` were checked; `left_out`: those of which an export shows the hashes only.
    """

    def __init__(self, *, public_key: str | None, earlier: SignedHead | None = None) -> None:
        self.public_key = public_key
        self.earlier = earlier
        self.entries = 0
        self.left_out = 0
        self.head: SignedHead | None = None
        self.problem: ChainError | None = None
        self._hash = BEFORE_THE_FIRST
        self._at: str | None = None  # of the last entry; None where its content is left out

    @property
    def is_ok(self) -> bool:
        return self.problem is None

    def to_json(self) -> dict[str, Any]:
        problem = self.problem and {"number": self.problem.number, "what": self.problem.what}
        return {
            "ok": self.is_ok,
            "entries": self.entries,
            "left_out": self.left_out,
            HEAD: self.head and self.head.to_json(),
            "public_key": self.public_key,
            "earlier_head": self.earlier and self.earlier.to_json(),
            "problem": problem,
        }

    def run(self, work: Callable[[], None]) -> "Chain":
        """Check that the earlier head is one of this ledger, then let `work` hand over all entries."""
        try:
            if self.earlier:
                _check_signature(self.earlier, self.public_key, what="the earlier head")
            work()
        except ChainError as error:
            self.problem = error
        return self

    def take(self, line: Line) -> None:
        """Check the next entry; ChainError if it does not fit."""
        expected = self.entries + 1
        number = line.get("number")
        if set(line) not in (WHOLE, LEFT_OUT):
            raise ChainError(
                f"the line does not have the fields of an entry: {', '.join(sorted(line))}", number=expected
            )
        if number != expected or isinstance(number, bool):
            text = f"number must be {expected}, got {number}: an entry was removed, added or moved here"
            raise ChainError(text, number=expected)
        if line["previous_hash"] != self._hash:
            text = "previous_hash is not the hash of the previous entry: one of the two was changed"
            raise ChainError(text, number=expected)
        if entry_hash(number=expected, previous_hash=self._hash, content_hash=_content(line)) != line["hash"]:
            raise ChainError("its hash does not match its content: it was changed", number=expected)
        self._check_earlier(expected, line["hash"])
        self.entries, self._hash, self._at = expected, line["hash"], line.get("at")
        self.left_out += "content_hash" in line

    def finish(self, head: SignedHead | None) -> None:
        """Check that the entries end where the signed head says, and not before an earlier head."""
        self.head = head
        if self.earlier and self.earlier.number > self.entries:
            raise ChainError(
                f"the ledger ends after entry {self.entries}, but at {self.earlier.at} it had "
                f"{self.earlier.number} entries: its end was cut off, or an older state was restored",
                number=self.entries + 1,
            )
        if head is None or not head.number:
            self._check_empty()
            return
        if head.number != self.entries:
            text = (
                f"the signed head is for entry {head.number}, but the ledger ends after entry {self.entries}"
            )
            raise ChainError(text, number=min(head.number, self.entries) + 1)
        if head.hash != self._hash or self._at not in (None, head.at):
            raise ChainError("the signed head is for a different entry with this number", number=head.number)
        _check_signature(head, self.public_key, what="the head")

    def _check_earlier(self, number: int, entry: str) -> None:
        if self.earlier and self.earlier.number == number and self.earlier.hash != entry:
            signed = f"the head of {self.earlier.at} was signed for a different entry"
            raise ChainError(f"{signed}: the ledger was rewritten", number=number)

    def _check_empty(self) -> None:
        if self.entries:
            raise ChainError("there is no signed head")
        if self.public_key is not None:
            raise ChainError(
                "the ledger is empty, although its key exists: all entries were removed, or none could be "
                "recorded"
            )


def check_tables(*, public_key: str | None = None, earlier: SignedHead | None = None) -> Chain:
    """Check the ledger in the main database by a public key (None: that of this installation).

    `earlier` is a head that was kept: the ledger must continue from it.
    """
    chain = Chain(public_key=public_key or own_public_key(), earlier=earlier)

    def work() -> None:
        while True:
            for line in _stored_lines(after=chain.entries or -1):
                chain.take(line)
            stored = LedgerHead.objects.filter(pk=LedgerHead.ONLY).first()
            # Entries may be added meanwhile; the head is committed together with its entry.
            more = LedgerEntry.objects.filter(number__gt=chain.entries)
            if stored is None or stored.number <= chain.entries or not more.exists():
                chain.finish(stored.signed if stored else None)
                return

    return chain.run(work)


def check_lines(
    lines: Iterable[bytes], *, public_key: str | None = None, earlier: SignedHead | None = None
) -> Chain:
    """Check an exported ledger; parameters as in `check_tables`. It asks no database."""
    chain = Chain(public_key=public_key or own_public_key(), earlier=earlier)

    def work() -> None:
        head = None
        for place, text in enumerate(lines, start=1):
            if head is not None:
                raise ChainError(f"line {place} follows the head, which must be the last line")
            line = _parsed(text, place)
            if set(line) == {HEAD}:
                head = _head_of(line[HEAD])
            else:
                chain.take(line)
        chain.finish(head)

    return chain.run(work)


def read_head(text: bytes) -> SignedHead:
    """A head that was kept: alone, in the output of `verify_ledger`, or the last line of an export.

    ValueError if it is none of these.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = json.loads((text.strip().splitlines() or [b""])[-1])
    if isinstance(value, dict) and HEAD in value:
        value = value[HEAD]
    return SignedHead.from_json(value)


def line_of(entry: LedgerEntry, *, is_left_out: bool = False) -> dict[str, Any]:
    """An entry as an export writes it, and as it is checked; or one of which it shows the hashes only."""
    content = {"content_hash": entry.content.hash} if is_left_out else entry.content.to_json()
    return {"number": entry.number, **content, "previous_hash": entry.previous_hash, "hash": entry.hash}


def _content(line: Line) -> str:
    if "content_hash" in line:
        return str(line["content_hash"])
    try:
        return canonical_hash({name: line[name] for name in CONTENT})
    except ValueError:  # no text that could ever have been hashed
        return ""


def _stored_lines(*, after: int) -> Iterator[dict[str, Any]]:
    rows = LedgerEntry.objects.order_by("number")
    while True:
        try:
            lines = [line_of(entry) for entry in rows.filter(number__gt=after)[:ROWS_AT_ONCE]]
        except (ValueError, TypeError, AttributeError):
            lines = list(_until_unreadable(after))
        yield from lines
        if not lines:
            return
        after = lines[-1]["number"]


def _until_unreadable(after: int) -> Iterator[dict[str, Any]]:
    """Yield entries one by one, up to the first line that is not an entry."""
    numbers = LedgerEntry.objects.filter(number__gt=after).order_by("number")
    for number in numbers.values_list("number", flat=True)[:ROWS_AT_ONCE]:
        try:
            yield line_of(LedgerEntry.objects.get(number=number))
        except (ValueError, TypeError, AttributeError):
            yield {"number": number}


def _parsed(text: bytes, place: int) -> Line:
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except ValueError:
        raise ChainError(f"line {place} is not JSON that an export writes") from None
    if not isinstance(value, dict):
        raise ChainError(f"line {place} is not an entry")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no name comes twice: readers would differ about which counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _head_of(value: Any) -> SignedHead:
    try:
        return SignedHead.from_json(value)
    except ValueError as error:
        raise ChainError(str(error)) from None


def _check_signature(head: SignedHead, public_key: str | None, *, what: str) -> None:
    if public_key is None:
        raise ChainError(f"there is no public key to check the signature of {what} : give its file")
    if not head.is_signed_by(public_key):
        raise ChainError(
            f"the signature of {what} was not made with the key of this ledger", number=head.number
        )

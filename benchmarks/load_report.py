"""Result of a run of the load: tables, and whether its goals were met.

A kind of page with fewer than 20 requests gets no 95th percentile (it would be the slowest one): it
is judged with all others only, and shown as '-'.
"""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from benchmarks.load_feeds import Sent
from benchmarks.load_readers import EXPORT, Asked

GOAL_S: Final = 0.3  # of the 95th percentile
JUDGED: Final = 20  # requests of a kind at least, for its own percentile
WAIT_S: Final = 30.0  # an answer that takes longer is an error, also during outages
UNAVAILABLE: Final = 503
SAMPLES: Final = 5  # of errors, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A service was stopped and restarted; times are of the monotonic clock.

    settled : when it counts as back: seconds are given to anyone who waits for its next try
    """

    what: str
    stopped: float
    started: float
    settled: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Resources used by a group of processes: seconds of processors in the run, largest sum of memory in MB.

    cpu_s : None where the group was started again in between
    """

    name: str
    cpu_s: float | None
    peak_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Seconds of the answers to one kind of page; no p95 and p99 of too few."""

    page: str
    count: int
    p50: float
    p95: float | None
    p99: float | None
    longest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that was seen; speed counts from `warm_at` on, errors from the first request."""

    warm_at: float
    asked: Sequence[Asked]
    sent: Sequence[Sent]
    outages: Sequence[Outage]
    used: Sequence[Used]
    rows_per_file: int
    analysts: int
    think_s: float
    wrong_totals: Sequence[str]
    exporters: int = 0


def during(asked: Asked, outages: Sequence[Outage]) -> Outage | None:
    """The outage in which a request was under way, if any."""
    return next(
        (each for each in outages if asked.at <= each.settled and asked.at + asked.seconds >= each.stopped),
        None,
    )


def is_refused(asked: Asked) -> bool:
    """Return whether the answer is the page that says: not now, come again."""
    return asked.status == UNAVAILABLE and asked.retry_after


def undisturbed(run: Run) -> list[Asked]:
    """Requests of a warm server that no outage touched; exports are judged apart."""
    warm = [each for each in run.asked if each.at >= run.warm_at and each.page != EXPORT]
    return [each for each in warm if during(each, run.outages) is None]


def exports(run: Run) -> list[Asked]:
    """Files that exporters waited for, from asking to the last byte."""
    return [each for each in run.asked if each.page == EXPORT]


def errors(run: Run) -> list[Asked]:
    """Requests that were not answered in time, except those refused during an outage."""
    return [each for each in run.asked if is_wrong(each, run.outages)]


def is_wrong(asked: Asked, outages: Sequence[Outage]) -> bool:
    """Return whether a request went wrong."""
    if asked.seconds > WAIT_S and asked.page != EXPORT:
        return True
    return bool(asked.error) and not (is_refused(asked) and during(asked, outages) is not None)


def in_words(wrong: Asked) -> str:
    """Errors found."""
    return wrong.error or f"{wrong.page} took {wrong.seconds:.0f} s"


def speeds(asked: Sequence[Asked]) -> Iterator[Speed]:
    """A line for each kind of page, and one for all of them."""
    for page in ["all", *sorted({each.page for each in asked})]:
        seconds = [each.seconds for each in asked if page in ("all", each.page) and not each.error]
        if len(seconds) > 1:
            cuts = statistics.quantiles(seconds, n=100, method="inclusive")
            is_judged = page == "all" or len(seconds) >= JUDGED
            yield Speed(
                page=page, count=len(seconds), p50=cuts[49], p95=cuts[94] if is_judged else None,
                p99=cuts[98] if is_judged else None, longest=max(seconds),
            )  # fmt: skip


def phases(run: Run) -> Iterator[Speed]:
    """A line for each part of the run since the first byte of a file, by when a page was asked for.

    `page` names the part. A part without an end lasts to the end of the run.
    """
    began = min((sent.began for sent in run.sent), default=float("inf"))
    received = max((sent.received or float("inf") for sent in run.sent), default=began)
    ended = max((sent.ended or float("inf") for sent in run.sent), default=received)
    parts = {
        "files come in": (began, received),
        "batches are at work": (received, ended),
        "batches have ended": (ended, float("inf")),
    }
    for name, (since, until) in parts.items():
        asked = [each for each in undisturbed(run) if since <= each.at < until]
        yield from (replace(each, page=name) for each in speeds(asked) if each.page == "all")


def rows_per_second(run: Run) -> float:
    """Duration of all batches together, from the first byte sent to the end of the last one."""
    ends = [sent.ended for sent in run.sent if sent.ended]
    if not ends or len(ends) < len(run.sent):
        return 0.0
    return len(run.sent) * run.rows_per_file / (max(ends) - min(sent.began for sent in run.sent))


def missed(run: Run) -> list[str]:
    """Goals that were not met, in words."""
    found = []
    if wrong := errors(run):
        examples = "; ".join(map(in_words, wrong[:SAMPLES]))
        found.append(f"{len(wrong)} of {len(run.asked)} requests went wrong: {examples}")
    found += [
        f"{each.page}: 95th percentile {1000 * each.p95:.0f} ms, the goal is {1000 * GOAL_S:.0f} ms"
        for each in speeds(undisturbed(run))
        if each.p95 is not None and each.p95 >= GOAL_S
    ]
    if not undisturbed(run):
        found.append("nobody read anything")
    for sent in run.sent:
        if sent.problem or not sent.ended:
            found.append(f"{sent.study}: the batch did not end: {sent.problem or 'time is over'}")
        elif sent.batch["state"] != "done":
            found.append(f"{sent.study}: the batch is {sent.batch['state']}: {sent.batch['failure']}")
        if sent.sent_again and not run.outages:
            found.append(f"{sent.study}: the file had to be sent {1 + len(sent.sent_again)} times")
    return [*found, *run.wrong_totals]


def tables(run: Run) -> str:
    """Return the tables for a person."""
    lines = [
        f"{run.analysts} analysts, {run.think_s:g} s between an answer and the next page on average; "
        f"{len(run.sent)} batches of {run.rows_per_file:,} rows; {len(run.asked):,} requests, "
        f"{len(errors(run))} went wrong.",
        "",
        *_speed_lines("page", speeds(undisturbed(run))),
        "",
        *_speed_lines("while", phases(run)),
        *(("", *_speed_lines(f"{run.exporters} exporters", speeds(exports(run)))) if run.exporters else ()),
        "",
        "| batch | received after s | ended after s | state | sent again |",
        "| --- | --- | --- | --- | --- |",
        *(_batch_line(sent) for sent in run.sent),
        "",
        f"All batches together: {rows_per_second(run):,.0f} rows/s.",
        "",
        "| processes | CPU s | peak MB (proportional) |",
        "| --- | --- | --- |",
        *(f"| {each.name} | {_seconds(each.cpu_s)} | {each.peak_mb:,.0f} |" for each in run.used),
    ]
    return "\n".join([*lines, *_outage_lines(run)])


def _speed_lines(title: str, found: Iterable[Speed]) -> Iterator[str]:
    yield f"| {title} | requests | p50 ms | p95 ms | p99 ms | longest ms |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for each in found:
        figures = " | ".join(map(_ms, (each.p50, each.p95, each.p99, each.longest)))
        yield f"| {each.page} | {each.count} | {figures} |"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.0f}"


def _batch_line(sent: Sent) -> str:
    received, ended = (
        f"{at - sent.began:.1f}" if at >= sent.began > 0 else "never" for at in (sent.received, sent.ended)
    )
    return f"| {sent.study} | {received} | {ended} | {sent.batch.get('state', '')} | {len(sent.sent_again)} |"


def _outage_lines(run: Run) -> list[str]:
    if not run.outages:
        return []
    lines = [
        "",
        "| away | seconds | requests under way | answered | refused (503, come again) | went wrong | "
        "longest s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for outage, facts in zip(run.outages, _outages(run), strict=True):
        lines.append(
            f"| {outage.what} | {facts['away_s']:.1f} | {facts['requests']} | {facts['answered']} | "
            f"{facts['refused']} | {facts['wrong']} | {facts['longest_s']:.1f} |"
        )
    return lines


def _outages(run: Run) -> list[dict[str, Any]]:
    found = []
    for outage in run.outages:
        touched = [each for each in run.asked if during(each, run.outages) is outage]
        fine = [each for each in touched if not is_wrong(each, run.outages)]
        refused = sum(map(is_refused, fine))
        found.append(
            {
                "what": outage.what,
                "away_s": outage.started - outage.stopped,
                "requests": len(touched),
                "answered": len(fine) - refused,
                "refused": refused,
                "wrong": len(touched) - len(fine),
                "longest_s": max((each.seconds for each in touched), default=0.0),
            }
        )
    return found


def as_json(run: Run) -> Mapping[str, Any]:
    """Return the results for a program; seconds everywhere."""
    return {
        "analysts": run.analysts,
        "exporters": run.exporters,
        "exports": [asdict(each) for each in speeds(exports(run))],
        "think_s": run.think_s,
        "rows_per_file": run.rows_per_file,
        "requests": len(run.asked),
        "errors": len(errors(run)),
        "speeds": [asdict(each) for each in speeds(undisturbed(run))],
        "phases": [asdict(each) for each in phases(run)],
        "rows_per_second": rows_per_second(run),
        "batches": [
            {
                "study": sent.study,
                "received_s": sent.received - sent.began,
                "ended_s": sent.ended - sent.began,
                "state": sent.batch.get("state"),
                "sent_again": len(sent.sent_again),
            }
            for sent in run.sent
        ],
        "processes": [asdict(each) for each in run.used],
        "outages": _outages(run),
        "missed": missed(run),
    }

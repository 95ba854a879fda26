"""The benchmark measures its stated job: every job counts every subscriber, and the table is complete."""

import numpy as np
import pytest

from benchmarks import sanitise
from benchmarks.jobs import DOMAIN_SIZES, JOBS, Subscribers, make_subscribers
from ldp import KeyedPrf

N = 20_000
PEOPLE = make_subscribers(N)


def same_value(value, *, n):
    profiles, column = np.full((6, n), value, np.uint16), np.full(n, value, np.int32)
    return Subscribers(pseudonyms=PEOPLE.pseudonyms[:n], profiles=profiles, columns=(column,) * 6)


@pytest.mark.parametrize("name", JOBS)
def test_each_job_counts_the_value_that_all_have_most(name):
    counts = JOBS[name](same_value(2, n=N), KeyedPrf(bytes(16)))
    assert [column.size for column in counts] == list(DOMAIN_SIZES)
    assert [int(column.argmax()) for column in counts] == [2] * 6
    if name == "Smp[GRR]":
        assert sum(int(column.sum()) for column in counts) == N
    if name in {"Spl[GRR]", "RS+FD[GRR]"}:
        assert [int(column.sum()) for column in counts] == [N] * 6


def test_threads_count_what_one_counts():
    for job in JOBS.values():
        expected = job(PEOPLE, KeyedPrf(sanitise.KEY))
        for together, alone in zip(sanitise.on_threads(job, PEOPLE), expected, strict=True):
            assert np.array_equal(together, alone)
    assert sanitise.blocks_each(JOBS["Smp[GRR]"], PEOPLE) == 2
    assert sanitise.blocks_each(JOBS["Spl[GRR]"], PEOPLE) == 6

"""Any files, for as long as one likes: none may crash or hang a reader, or be counted wrongly.

    python -m scripts.fuzz_readers [--minutes N]

Text is compared with a slow reading in Python, and chunks with the whole. Failing input is made as small
as it can be and printed; the exit status says whether anything did.
"""

import argparse
import os
import secrets
import sys
import time
from datetime import timedelta

EXAMPLES = 500  # between two looks at the clock
HANG_S = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mobility.settings")
    end = time.monotonic() + 60 * options.minutes
    n = 0
    while time.monotonic() < end:
        n += run_once(secrets.randbits(64))
        sys.stdout.write(f"{n} files, {max(end - time.monotonic(), 0):.0f} s left\n")
        sys.stdout.flush()


def run_once(number: int) -> int:
    """Read EXAMPLES files, the same for the same number; returns how many."""
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis import strategies as st

    from tests.mobility.extracts.readers.any_file import check, files

    @seed(number)
    @settings(
        max_examples=EXAMPLES, database=None, deadline=timedelta(seconds=HANG_S),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(data=files, block=st.sampled_from([64, 300, 4 << 20]), step=st.integers(1, 400))
    def is_read_or_refused(data: bytes, block: int, step: int) -> None:
        check(data, block=block, step=step)

    is_read_or_refused()
    return EXAMPLES


if __name__ == "__main__":
    main()

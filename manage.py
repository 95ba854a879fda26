#!/usr/bin/env python
"""Entry point of every command."""

import gc
import os
import sys

import django
from django.core.management import execute_from_command_line

from mobility.base.runtime import dump_no_core
from mobility.embedded import unread, zones
from mobility.embedded.databases import prepare
from mobility.startup import refuse_shared, refuse_unreadable

# Nearly all that a command makes while it starts stays: Python's own threshold of 700 lets it look for
# garbage in vain for up to a fifth of its processor time.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    dump_no_core()
    if why_not := unread.refusal(sys.argv):
        sys.exit(why_not)
    refuse_unreadable()
    if why_not := zones.refusal(sys.argv):
        sys.exit(why_not)
    os.umask(0o077)  # databases, logs and sockets are for this user alone
    try:
        prepare(sys.argv)
    except OSError as error:
        sys.exit(
            f"{error.filename}: {error.strerror}; MOBILITY_DATA_DIR must name a folder that can be written"
        )
    if zones.counts(sys.argv):
        django.setup()
        refuse_shared()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

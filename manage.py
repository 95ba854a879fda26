#!/usr/bin/env python
"""Entry point of every command."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mobility.settings")
    from django.core.management import execute_from_command_line

    from mobility.embedded import prepare

    prepare(sys.argv)
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

"""Commands, run in this process."""

import io
import json
from typing import Any

from django.core.management import call_command


def printed(*words: str, **options: Any) -> Any:
    out = io.StringIO()
    call_command(*words, stdout=out, **options)
    return json.loads(out.getvalue())

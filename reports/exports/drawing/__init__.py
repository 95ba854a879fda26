"""Charts and maps drawn on the server. Only what writes a drawn file imports this: it loads matplotlib."""

import os
from pathlib import Path

from django.conf import settings

# Before matplotlib is imported: the home may be read-only.
os.environ.setdefault("MPLCONFIGDIR", str(Path(settings.MOBILITY_DATA_DIR) / "matplotlib"))

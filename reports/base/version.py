"""The version of this software, written once: in pyproject.toml."""

import tomllib
from functools import cache

from django.conf import settings


@cache
def software() -> dict[str, str]:
    """Name and version, as statements print them."""
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    return {"name": project["name"], "version": project["version"]}

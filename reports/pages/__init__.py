"""Studies, one indicator, all days: pages that put several subjects together."""

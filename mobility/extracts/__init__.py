"""Files of an operator: readers, profiles, rows to coded events. No database and no keys of a study."""

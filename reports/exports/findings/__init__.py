"""Files of findings: comparisons, movements, scenarios and cross-tabulations. Imports their subjects."""

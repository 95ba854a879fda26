"""Studies: models, study file, geography. Shared by both zones; no figures (estimates)."""

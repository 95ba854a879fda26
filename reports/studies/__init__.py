"""Studies: models, study file, geography. What both zones know of a study; no figures (estimates)."""

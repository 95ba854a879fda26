"""Extract profiles: how the files of one source are read."""

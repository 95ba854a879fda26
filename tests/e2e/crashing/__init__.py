"""An app of one test, in which taking files in fails and quotes what it read."""

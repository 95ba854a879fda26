"""The questions that analysts ask, and which of them a study can answer."""

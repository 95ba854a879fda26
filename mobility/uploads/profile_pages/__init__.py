"""Pages on which operators make extract profiles."""

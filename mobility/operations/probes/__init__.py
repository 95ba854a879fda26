"""Probes: quick looks at one thing each. `looking` runs them; none can stop the others."""

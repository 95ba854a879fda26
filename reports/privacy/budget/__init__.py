"""The privacy budget of a population: what is spent, caps, approvals, page."""

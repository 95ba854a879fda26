"""Numbers from their reports: means, shares above cuts, quantiles, differences of means."""

"""Studies of events: sums by day, ISO week, month, quarter and year. Imports estimates."""

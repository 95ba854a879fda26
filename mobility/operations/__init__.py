"""Running it for years: signs of life, findings, alerts, metrics, backups. An app of every zone."""

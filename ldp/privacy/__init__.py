"""Plans and what they promise: certificates, accounting, attackers. Imports protocols; no data."""

"""People, roles, grants and the rule of two persons. Sign-in is in mobility.signin."""

"""Audits and estimators that no product code imports. May import all of ldp."""

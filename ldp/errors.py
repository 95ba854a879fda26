"""Errors of the library: each message says name, rule and value."""


class LdpError(ValueError):
    """An argument breaks a rule: it is not what the description of what was called allows."""


class InvalidBudgetError(LdpError):
    """An epsilon is not a number that a mechanism can realise."""


class InvalidDomainError(LdpError):
    """A domain is too small or too large."""


class InvalidGridError(LdpError):
    """A grid has sides, or a number of squares, that no map of a study has."""


class PlanError(LdpError):
    """A plan contradicts itself, or promises more than it keeps."""


class FewVisitorsError(LdpError):
    """A number is about so few visitors that the study does not show it."""


class NoReportsError(LdpError):
    """There are visitors, but none of them reported: nothing can be estimated."""


class FewReportsError(LdpError):
    """A test cannot be made, because it has too few reports for the number of values."""

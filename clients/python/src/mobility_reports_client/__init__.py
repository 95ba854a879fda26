"""Client of the reading API: operations of its OpenAPI document, a token in a header, lists in parts."""

from mobility_reports_client.client import Client, ClientError, ProblemError, every

__all__ = ["Client", "ClientError", "ProblemError", "every"]

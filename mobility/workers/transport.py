"""Kombu's transport for Redis, with which a worker outlives a broker that dies while it holds messages.

Kombu gives messages back, and acknowledges those of tasks that end later, over the channel that they came by.
Of a connection that was lost and closed it reads the address all the same, and the AttributeError ends the
worker. Here it is a lost connection, which Celery expects everywhere.
"""

from typing import Any

from kombu.transport import redis
from redis.exceptions import ConnectionError as LostConnectionError


class Channel(redis.Channel):
    """A channel that says of a connection that was closed that it is lost."""

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - kombu's
        if getattr(self.connection, "client", None) is None:
            raise LostConnectionError("the connection to the broker was lost and closed")
        parameters: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[no-untyped-call]
        return parameters


class Transport(redis.Transport):
    """The transport of every address that begins with redis: or rediss:; `app` names it to kombu."""

    Channel = Channel

"""Staging in a bucket of an S3-compatible service; apart, since its client is large and rarely needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.utils.translation import gettext_noop as _
from storages.backends.s3 import S3Storage
from storages.utils import clean_name

from mobility.base.errors import StagingUnavailableError
from mobility.batches.storages import Pieces
from reports.base.reasons import Reason

MISSING = frozenset({"NoSuchKey", "404"})


class StagingBucket(S3Storage):  # type: ignore[misc]
    """Objects of an S3-compatible service: private, asked for with signed requests, never by an address."""

    def __init__(self, **options: Any) -> None:
        # A service of one's own rarely has a host name per bucket, and may not know the newer checksums;
        # the seal authenticates all that matters.
        style = "path" if options.get("endpoint_url") else "auto"
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": style},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            connect_timeout=5,
            read_timeout=60,
            retries={"mode": "standard", "max_attempts": 4},
        )
        super().__init__(client_config=config, file_overwrite=True, default_acl=None, **options)

    @cached_property
    def _client(self) -> Any:
        # One for all threads, which is safe for a client; the connection of the parent class is one a thread.
        return self.connection.meta.client

    def _place(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket_name, "Key": self._normalize_name(clean_name(name))}

    def _save(self, name: str, content: Pieces) -> str:
        body = b"".join(content.chunks())
        with _explained():
            self._client.put_object(**self._place(name), Body=body)
        return name

    def read_range(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            return b""
        last = "" if length is None else str(offset + length - 1)
        part = {"Range": f"bytes={offset}-{last}"} if offset or length is not None else {}
        with _explained():
            return bytes(self._client.get_object(**self._place(name), **part)["Body"].read())

    def read_into(self, name: str, buffer: memoryview) -> int:
        data = self.read_range(name)[: len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def delete(self, name: str) -> None:
        with _explained():
            self._client.delete_object(**self._place(name))

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        with _explained():
            folders, files = super().listdir(name)
        return folders, files

    def size(self, name: str) -> int:
        try:
            with _explained():
                return int(self._client.head_object(**self._place(name))["ContentLength"])
        except FileNotFoundError:  # deleted since it was listed
            return 0

    def delete_folder(self, name: str) -> None:
        with _explained():
            self.bucket.objects.filter(Prefix=f"{self._place(name)['Key']}/").delete()

    def free_bytes(self) -> int | None:
        return None


@contextmanager
def _explained() -> Iterator[None]:
    """Errors of the S3 client, which quote addresses and keys of objects, in our words."""
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in MISSING:
            raise FileNotFoundError("no such object in the staging bucket") from None
        raise StagingUnavailableError(
            _("the staging bucket returned %(code)s: check MOBILITY_STAGING_S3_* and the service"),
            code=code or Reason(_("an error")),
        ) from None
    except BotoCoreError as error:
        raise StagingUnavailableError(
            _(
                "the staging bucket is not responding (%(error)s): check the service, and "
                "MOBILITY_STAGING_S3_ENDPOINT_URL"
            ),
            error=type(error).__name__,
        ) from None

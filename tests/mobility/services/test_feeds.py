"""Tokens of feeds: they open one study, for a while, and only their digest is kept."""

import hashlib
import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.forms.models import model_to_dict
from django.utils import timezone

from mobility.errors import FeedTokenError, KeyMissingError
from mobility.keystore import keystore
from mobility.models import FeedToken
from mobility.services import feeds
from tests.mobility.services.conftest import Pipeline

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)


def make(pipeline: Pipeline, **options: Any) -> tuple[FeedToken, str]:
    return feeds.create_token(pipeline.study, **({"name": "nightly", "days": 30, "by": "olga"} | options))


def test_a_token_opens_its_study(pipeline: Pipeline) -> None:
    token, text = make(pipeline)
    found = feeds.token_of(text)
    assert found == token
    assert found is not None
    assert found.study == pipeline.study
    assert (token.name, token.created_by) == ("nightly", "olga")
    assert timedelta(days=29.9) < token.expires_at - timezone.now() < timedelta(days=30)


def test_only_its_digest_is_kept(pipeline: Pipeline) -> None:
    token, text = make(pipeline)
    assert text.startswith("mobility-feed-")
    assert len(text) >= len("mobility-feed-") + 43
    assert text not in str(model_to_dict(token))
    assert token.digest == hashlib.sha256(text.encode()).hexdigest()
    assert make(pipeline)[1] != text


def test_what_is_not_the_token_opens_nothing(pipeline: Pipeline) -> None:
    token, text = make(pipeline)
    for other in ("", "mobility-feed-", text[:-1], text + "x", text.upper(), token.digest, "ä"):
        assert feeds.token_of(other) is None


def test_expired_and_revoked_tokens_open_nothing(pipeline: Pipeline) -> None:
    token, text = make(pipeline)
    FeedToken.objects.update(expires_at=timezone.now())
    assert feeds.token_of(text) is None
    FeedToken.objects.update(expires_at=timezone.now() + timedelta(days=1))
    assert feeds.token_of(text) == token
    feeds.revoke(token, by="olga")
    token.refresh_from_db()
    revoked_at = token.revoked_at
    assert feeds.token_of(text) is None
    feeds.revoke(token, by="olga")
    token.refresh_from_db()
    assert token.revoked_at == revoked_at is not None


def test_use_is_noted_when_it_opens_the_door(pipeline: Pipeline) -> None:
    token, text = make(pipeline)
    feeds.token_of(text + "x")
    token.refresh_from_db()
    assert token.last_used_at is None
    feeds.token_of(text)
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert timezone.now() - token.last_used_at < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"name": " "}, "1 to 80"), ({"name": "x" * 81}, "1 to 80"), ({"name": "a\nb"}, "printable"),
     ({"days": 0}, "1 to 3650 days, got 0"), ({"days": 3651}, "got 3651")],
)  # fmt: skip
def test_names_and_days_have_bounds(pipeline: Pipeline, options: dict[str, Any], words: str) -> None:
    with pytest.raises(FeedTokenError, match=words):
        make(pipeline, **options)
    assert not FeedToken.objects.exists()


def test_a_study_without_its_key_gets_no_token(pipeline: Pipeline) -> None:
    keystore().destroy(pipeline.study.key_id)
    with pytest.raises(KeyMissingError):
        make(pipeline)


class TestCommand:
    def test_it_prints_the_token_once(self, pipeline: Pipeline) -> None:
        output = StringIO()
        call_command("create_feed_token", pipeline.study.slug, "nightly", "--days", "7", stdout=output)
        made = json.loads(output.getvalue())
        assert list(made) == ["study", "name", "token", "expires_at"]
        token = feeds.token_of(made["token"])
        assert token is not None
        assert made["expires_at"] == token.expires_at.isoformat()
        assert (token.created_by, made["name"]) == ("command line", "nightly")

    def test_it_refuses_with_a_reason(self, pipeline: Pipeline) -> None:
        with pytest.raises(CommandError, match="no study 'nothing'"):
            call_command("create_feed_token", "nothing", "nightly")
        with pytest.raises(CommandError, match="got 0"):
            call_command("create_feed_token", pipeline.study.slug, "nightly", "--days", "0")

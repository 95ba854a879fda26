"""Tokens of feeds: they open one study, for a while, and only their digest is kept."""

import hashlib
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.forms.models import model_to_dict
from django.utils import timezone

from mobility.base.errors import FeedTokenError, KeyMissingError
from mobility.uploads.feeds import actions as feeds
from mobility.vault.keystore import keystore
from mobility.vault.models.profiles import FeedToken
from reports.accounts.actions import COMMAND_LINE
from tests.mobility.commands import printed
from tests.mobility.pipeline import fresh

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


def make(pipeline, **options):
    given = {"name": "nightly", "days": 30, "by": COMMAND_LINE} | options
    return feeds.create_token(pipeline.study, **given)


def test_a_token_opens_its_study_and_only_its_digest_is_kept(pipeline):
    token, text = make(pipeline)
    found = feeds.token_of(text)
    assert (found, found.study) == (token, pipeline.study)
    assert (token.name, token.created_by) == ("nightly", COMMAND_LINE)
    assert timedelta(days=29.9) < token.expires_at - timezone.now() < timedelta(days=30)
    assert text.startswith("mobility-feed-")
    assert len(text) >= len("mobility-feed-") + 43
    assert text not in str(model_to_dict(token))
    assert token.digest == hashlib.sha256(text.encode()).hexdigest()
    assert make(pipeline)[1] != text


def test_what_is_not_the_token_opens_nothing_and_use_is_noted_when_it_opens_the_door(pipeline):
    token, text = make(pipeline)
    for other in ("", "mobility-feed-", text[:-1], text + "x", text.upper(), token.digest, "ä"):
        assert feeds.token_of(other) is None
    assert fresh(token).last_used_at is None
    feeds.token_of(text)
    assert timezone.now() - fresh(token).last_used_at < timedelta(minutes=1)


def test_a_token_is_revoked_once(pipeline):
    token, _ = make(pipeline)
    feeds.revoke(token, by="olga")
    revoked_at = fresh(token).revoked_at
    feeds.revoke(token, by="olga")
    assert fresh(token).revoked_at == revoked_at is not None


def test_names_and_days_have_bounds_and_the_study_its_key(pipeline):
    names = [({"name": " "}, "1 to 80"), ({"name": "x" * 81}, "1 to 80"), ({"name": "a\nb"}, "printable")]
    for options, words in (*names, ({"days": 0}, "1 to 3650 days, got 0"), ({"days": 3651}, "got 3651")):
        with pytest.raises(FeedTokenError, match=words):
            make(pipeline, **options)
    keystore().destroy(pipeline.study.key_id)
    with pytest.raises(KeyMissingError):
        make(pipeline)
    assert not FeedToken.objects.exists()


def test_the_command_prints_the_token_once_or_refuses_with_a_reason(pipeline):
    made = printed("create_feed_token", pipeline.study.slug, "nightly", "--days", "7")
    assert list(made) == ["study", "name", "token", "expires_at"]
    token = feeds.token_of(made["token"])
    assert made["expires_at"] == token.expires_at.isoformat()
    assert (token.created_by, made["name"]) == ("command line", "nightly")
    for slug, days, reason in (("nothing", "7", "no study 'nothing'"), (pipeline.study.slug, "0", "got 0")):
        with pytest.raises(CommandError, match=reason):
            call_command("create_feed_token", slug, "nightly", "--days", days)

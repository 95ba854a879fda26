"""Sessions that have ended: neither they nor the addresses that came with them are kept."""

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone


@transaction.atomic
def forget_ended() -> int:
    """Remove sessions past their time, and what is known of where they were; how many sessions went."""
    ended, _ = Session.objects.filter(expire_date__lt=timezone.now()).delete()
    UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()
    return ended

"""The name under which accounts of an OpenID provider are kept."""

import hashlib


def provider_id(issuer: str) -> str:
    """Another issuer's people are other people, even where both call someone by the same number."""
    return f"oidc-{hashlib.sha256(issuer.rstrip('/').encode()).hexdigest()[:16]}"

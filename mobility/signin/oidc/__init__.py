"""Sign-in through an OpenID provider, and the accounts that it makes."""

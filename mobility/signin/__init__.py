"""Sign-in of people: passwords, an OpenID provider, second factors, limits of guesses. All zones have it."""

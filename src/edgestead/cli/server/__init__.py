"""Commands on a server itself: start, examine, copy, credentials, tokens, import."""

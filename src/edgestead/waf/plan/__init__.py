"""Which rules a request needs at all, and one search for all of their patterns."""

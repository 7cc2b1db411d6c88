"""`edgecli deprecations`."""

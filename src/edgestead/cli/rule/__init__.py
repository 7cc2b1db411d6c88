"""`edgecli ruleset`."""

"""`edgecli kv`."""

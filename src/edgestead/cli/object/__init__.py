"""`edgecli object` and `objects`."""

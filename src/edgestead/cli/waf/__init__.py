"""`edgecli waf`."""

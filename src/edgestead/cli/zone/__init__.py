"""`edgecli zone`, `record` and `dns`."""

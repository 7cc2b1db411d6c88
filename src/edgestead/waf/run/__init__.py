"""One request on its way through the rules."""

"""The access log: a line for each answer."""

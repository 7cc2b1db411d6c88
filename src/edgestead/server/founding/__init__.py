"""Operators' work on a whole cluster: making one, moving a data folder in and out, looking at it."""

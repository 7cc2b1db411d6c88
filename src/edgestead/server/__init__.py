"""Supervisor, processes, wiring, start order and shutdown."""

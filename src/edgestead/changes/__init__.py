"""Behaviours that changed on a date, as a table."""

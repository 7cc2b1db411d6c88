"""Zones: their settings, what they serve, their history, zone files in and out."""

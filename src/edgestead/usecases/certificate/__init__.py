"""Certificates of zones: ordered from authorities, uploaded, shown."""

"""Accounts, the calling user, and who belongs where."""

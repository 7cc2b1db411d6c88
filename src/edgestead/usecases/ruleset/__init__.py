"""Rulesets and their rules: checked, changed, versioned and shown."""

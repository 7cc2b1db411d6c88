"""Challenges: asking a browser for proof."""

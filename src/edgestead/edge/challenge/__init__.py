"""Challenges: asking a browser for proof, and remembering that it gave it."""

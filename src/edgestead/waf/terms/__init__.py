"""The terms of rules: what they look at, what they do to a value first, what they ask of it."""

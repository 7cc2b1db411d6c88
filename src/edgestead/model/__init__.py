"""The nouns of the platform: values, limits and refusals. No I/O, no async."""

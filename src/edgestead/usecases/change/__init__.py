"""One change of a zone: its records and settings, the rules between them, what is written, in which order."""

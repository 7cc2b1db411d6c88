"""What a zone serves: its records and settings as DNS and the edge get them."""

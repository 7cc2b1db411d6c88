"""Bodies as rules see them."""

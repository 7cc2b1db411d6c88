"""Key-value namespaces, and what is in them."""

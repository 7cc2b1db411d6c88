"""The filter expression language: text to typed tree to closures. No I/O."""

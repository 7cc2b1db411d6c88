"""Whether the server is well: facts to rows, and rows to alerts. No I/O."""

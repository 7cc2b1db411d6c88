"""HTTP/1.1 with strict framing: one reading and one connection for the API, the edge and objects."""

"""HTTP/1.1 server protocol with strict framing, shared by edge and objects."""

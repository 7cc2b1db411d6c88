"""HTTP/1.1 server and client protocol with strict framing, shared by edge and objects."""

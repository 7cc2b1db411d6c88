"""HTTP/2 (RFC 9113): frames, fields, and a connection on either side, for the edge and for DNS over HTTPS."""

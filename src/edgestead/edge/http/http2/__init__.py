"""HTTP/2 (RFC 9113) for clients: a further driver of the exchange."""

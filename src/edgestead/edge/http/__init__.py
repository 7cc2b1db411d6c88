"""HTTP at the edge: clients, origins, and a request on its way between them."""

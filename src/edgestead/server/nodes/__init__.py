"""Who the machines of a cluster are to one another: identities, invitations, the port between them."""

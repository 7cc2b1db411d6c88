"""Rules of users: what they see of a request, and what they do."""

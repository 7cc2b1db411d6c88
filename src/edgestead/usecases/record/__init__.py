"""DNS records: checked, changed, listed and shown."""

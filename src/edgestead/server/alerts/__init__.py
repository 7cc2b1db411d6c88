"""The process that sends alerts, so that no request waits for a mail server."""

"""What users' tests and ours share."""

"""`edgecli export`, `plan`, `apply` and `diff`: everything as one file."""

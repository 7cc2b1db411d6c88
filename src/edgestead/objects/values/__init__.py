"""What may be stored and sent: values and their bytes."""

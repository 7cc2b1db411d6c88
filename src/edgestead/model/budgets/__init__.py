"""What one peer may cost: memory, time, work and connections, of each subject that can ask for them."""

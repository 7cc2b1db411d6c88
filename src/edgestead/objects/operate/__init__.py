"""What operators may do with objects, whatever their classes do."""

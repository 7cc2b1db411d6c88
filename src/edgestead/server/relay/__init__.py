"""The process that follows a control node for a machine without control."""

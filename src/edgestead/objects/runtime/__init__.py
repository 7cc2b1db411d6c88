"""Running objects: their lives, their gates, their storage, their alarms."""

"""The stateful objects' log in a cluster's database: fenced commits, bases, the past, alarms."""

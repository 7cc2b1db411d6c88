"""The stateful objects' log on local files: segments, group commit, recovery, catalogue."""

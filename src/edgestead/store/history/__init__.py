"""The past of stateful objects: blocks of commits, snapshots, what is kept; wherever they are stored."""

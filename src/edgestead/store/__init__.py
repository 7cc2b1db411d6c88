"""The storage interfaces; implementations in sub-packages."""

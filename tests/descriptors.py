"""Counting open files."""

import gc
import os


def open_descriptors():
    """How many files this process has open, but for those of earlier tests that wait for the collector."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))

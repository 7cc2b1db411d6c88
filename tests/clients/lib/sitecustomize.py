"""Makes a client script's random label the one that the test asked for: EDGE_CLIENT_SEED.

Python imports this by its name, before the script. Only the scripts themselves are seeded, not the programs
that they start.
"""

import os
import random
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent / "clients"

if "EDGE_CLIENT_SEED" in os.environ and any(
    Path(word).resolve().parent == SCRIPTS for word in sys.orig_argv[1:]
):
    random.seed(os.environ["EDGE_CLIENT_SEED"])

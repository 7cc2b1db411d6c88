"""Compile the managed rules' patterns, in a process that yields to all others.

Owns  the process.
Not   using the patterns.

`python -m edgestead.server.waf_make CRS FOLDER LEVEL`: CRS is empty for the system's rules, LEVEL the log's.
"""

import os
import sys
from pathlib import Path

from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID
from edgestead.server import log, process, waf_part
from edgestead.server.edge import rules

NICENESS = 15


def main() -> None:
    process.die_with_parent()
    os.nice(NICENESS)
    log.configure("rules", int(sys.argv[3]), "text" if sys.argv[4] == "text" else "json")
    crs, folder = sys.argv[1], Path(sys.argv[2])
    rule_set = rules.read(Path(crs) if crs else None, RULESET_ID, ANOMALY_RULE_ID).rule_set
    waf_part.database(rule_set, folder)


if __name__ == "__main__":
    main()

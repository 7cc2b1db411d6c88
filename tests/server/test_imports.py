"""What processes of a server load, and what they never need: an import is time of each start, and memory."""

import subprocess
import sys

import pytest

BEGINS = ("edgestead.postgres.incarnations", "edgestead.server.nodes.identity")
NEVER = {  # by what is imported
    "what control does before it is loaded: that alone takes longer than a cluster may be without a leader": (
        ("edgestead.server.control.waiting", *BEGINS),
        ("edgestead.rest", "edgestead.server.control.main", "edgestead.tables", "edgestead.sqlite"),
    ),
    "the supervisor, which parses nothing": (
        ("edgestead.server.supervisor.main",),
        ("edgestead.waf", "edgestead.edge.phases", "edgestead.rest", "edgestead.web", "hyperscan", "dns."),
    ),
    "control, which inspects no visitor's request": (
        ("edgestead.server.control.main",),
        ("edgestead.waf.engine", "edgestead.waf.plan", "edgestead.edge.phases", "hyperscan", "psycopg"),
    ),
}


@pytest.mark.parametrize("process", NEVER)
def test_a_process_loads_nothing_that_it_does_not_use(process):
    imported, never = NEVER[process]
    code = (
        f"import sys, {', '.join(imported)}\nprint([one for one in sys.modules if one.startswith({never!r})])"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"

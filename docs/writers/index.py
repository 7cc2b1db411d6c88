"""The index of all pages, written from the folders.

Owns  the order of tasks and sections.
Not   titles: each page's first line is its own.
"""

from pathlib import Path

DOCS = Path(__file__).parents[1]
HOW_TO = {  # what somebody wants to do, in the order in which they come to it
    "Run a server": (
        *(
            "run",
            "dashboard",
            "members",
            "operate",
            "releases",
            "tokens",
            "troubleshoot",
            "move-in",
            "move-out",
            "dated-behaviours",
        ),
    ),
    "Run several machines as one": (
        "edge-nodes",
        "cluster",
        "cluster-move",
        "cluster-operate",
        "cluster-upgrade",
        "cluster-lose",
        "cluster-restore",
    ),
    "Zones and records": (
        *("dns", "tools", "octodns", "one-file", "history", "name-servers"),
        *("secondaries", "secondary-zones", "dynamic-updates", "dnssec", "private-dns"),
    ),
    "Sites behind the edge": (
        "edge",
        "certificates",
        "access-log",
        "edge-rules",
        "waf-configuration",
        "waf-tuning",
    ),
    "Values and objects": ("key-value", "objects", "objects-in-time", "operate-objects"),
    "Tests": ("test-against-edgestead", "test-objects"),
}
# From a bare system to production comes first: a test types that page, and no other, on one.
FIRST = ("how-to/production", "quick-start", "tutorial", "differences")
SECTIONS = {  # of the index, behind the how-tos: folder, heading and a remark
    "coming-from": ("Where you come from", "What you have, and what it is called here."),
    "explanation": ("Explanation", ""),
    "reference": ("Reference", ""),
    "contributing": ("Working on it", ""),
    "design": ("Design notes", "Why it is built so. A number that is not here was never given."),
}


def page() -> str:
    """docs/index.md: every page under its title."""
    lines = ["# All pages", "", *(_link(DOCS / f"{name}.md") for name in FIRST), "", "## How to"]
    for task, names in HOW_TO.items():
        lines += ["", f"### {task}", "", *(_link(DOCS / "how-to" / f"{name}.md") for name in names)]
    for folder, (heading, remark) in SECTIONS.items():
        lines += ["", f"## {heading}", "", *([remark, ""] if remark else [])]
        lines += map(_link, sorted((DOCS / folder).glob("*.md")))
    return "\n".join(lines) + "\n"


def _link(path: Path) -> str:
    title = path.read_text().partition("\n")[0].removeprefix("# ")
    return f"* [{title}]({path.relative_to(DOCS)})"

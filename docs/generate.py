"""Write the reference pages that come from tables: `.venv/bin/python docs/generate.py`.

A page that a room writes itself gets a row in PAGES; tests/docs checks that every one is current.
"""

from collections.abc import Callable
from pathlib import Path

from edgestead import config
from edgestead.api import pages
from edgestead.changes import page as changes
from edgestead.cli import page as command_line
from edgestead.model import counters
from edgestead.objects import operate_page
from edgestead.proxy import fields_page
from edgestead.services import settings_page

DOCS = Path(__file__).parent
SECTIONS = {  # of the index, in its order: folder and heading
    "how-to": "How to",
    "explanation": "Explanation",
    "reference": "Reference",
    "design": "Design notes",
}


def index_page() -> str:
    """docs/index.md: every page under its title."""
    lines = ["# All pages", "", "* [The tutorial](tutorial.md)"]
    lines += ["* [Differences from the service you know](differences.md)"]
    for folder, heading in SECTIONS.items():
        lines += ["", f"## {heading}", ""]
        for path in sorted((DOCS / folder).glob("*.md")):
            title = path.read_text().partition("\n")[0].removeprefix("# ")
            lines.append(f"* [{title}]({folder}/{path.name})")
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "index.md": index_page,
    "reference/changes.md": changes.reference_page,
    "reference/command-line.md": command_line.reference_page,
    "reference/configuration.md": config.reference_page,
    "reference/edge-fields.md": fields_page.reference_page,
    "reference/errors.md": pages.errors_page,
    "reference/metrics.md": counters.reference_page,
    "reference/operating-objects.md": operate_page.reference_page,
    "reference/routes.md": pages.routes_page,
    "reference/settings.md": settings_page.reference_page,
}

if __name__ == "__main__":
    for name, write in PAGES.items():
        (DOCS / name).write_text(write())

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

PAGES: dict[str, Callable[[], str]] = {
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
        (Path(__file__).parent / name).write_text(write())

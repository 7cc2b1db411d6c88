"""Write the reference pages that come from tables: `.venv/bin/python -m docs.generate`.

A page has a module in docs/writers/ and a row in PAGES; tests/docs checks that every one is current.
"""

from collections.abc import Callable
from pathlib import Path

from docs.writers import (
    changes,
    command_line,
    configuration,
    edge_fields,
    errors,
    fields,
    index,
    limits,
    metrics,
    record_types,
    rooms,
    routes,
    settings,
)

DOCS = Path(__file__).parent
PAGES: dict[str, Callable[[], str]] = {
    "contributing/rooms.md": rooms.page,
    "index.md": index.page,
    "reference/changes.md": changes.page,
    "reference/command-line.md": command_line.page,
    "reference/configuration.md": configuration.page,
    "reference/edge-fields.md": edge_fields.page,
    "reference/errors.md": errors.page,
    "reference/fields.md": fields.page,
    "reference/limits.md": limits.page,
    "reference/metrics.md": metrics.page,
    "reference/record-types.md": record_types.page,
    "reference/routes.md": routes.page,
    "reference/settings.md": settings.page,
}

if __name__ == "__main__":
    for name, write in PAGES.items():
        (DOCS / name).write_text(write())

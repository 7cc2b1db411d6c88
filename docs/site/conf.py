"""How the pages become a site: `./scripts/docs`.

Owns  which pages there are, their order in the side bar, and what the theme needs.
Not   their text, and not their titles: a page is as good in the checkout as on the site.
"""

import gc
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

# Trees of pages are cycles, and stay: with Python's own 700, looking through them again and again is a fifth
# of what the site costs. It takes 9 MB more.
gc.set_threshold(50_000)

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from docs.writers.index import FIRST, HOW_TO, SECTIONS  # noqa: E402 (found by the line above)
from edgestead import __version__  # noqa: E402

project = "Edgestead"
author = "the authors of Edgestead"
version = release = __version__
language = "en"

root_doc = "README"
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = [".*", "build", "dist", "src", "tests", "requirements"]

extensions = ["myst_parser"]
myst_heading_anchors = 4  # the anchors that forges give headings, which links in the pages use
highlight_language = "none"  # of blocks without a name, most of which show what is printed
lexers["mermaid"] = lexers["value"] = TextLexer()

html_theme = "furo"
html_extra_path = ["index.html"]  # leads to the first page
html_title = f"Edgestead {version}"
html_show_sphinx = html_show_copyright = html_show_sourcelink = html_copy_source = False

SIDE_BAR = {
    "Begin": [f"docs/{name}" for name in FIRST],
    **{task: [f"docs/how-to/{name}" for name in names] for task, names in HOW_TO.items()},
    **{heading: [f"docs/{folder}/*"] for folder, (heading, _) in SECTIONS.items()},
    "Project": ["docs/index", "CHANGELOG", "CONTRIBUTING", "SECURITY"],
}


def add_side_bar(app: Sphinx, page: str, text: list[str]) -> None:
    """The first page lists all others where only the site looks: a forge has the index for that."""
    if page == root_doc:
        for heading, pages in SIDE_BAR.items():
            rows = "\n".join(pages)
            text[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {heading}\n\n{rows}\n```\n"


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.connect("source-read", add_side_bar)

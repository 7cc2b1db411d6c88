"""The site that ./scripts/docs makes: all pages, nothing from another host, and a search that works."""

import re
import subprocess
import sys

import pytest

from tests.docs.conftest import ROOT

LOADED_FROM_ELSEWHERE = re.compile(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["'](?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    # -W: a link or an anchor that the site would lack is an error.
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "--quiet", "-b", "html"]
    command += ["-c", ROOT / "docs" / "site", "-d", folder / "read", ROOT, folder / "made"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "made"


def test_every_page_of_the_checkout_is_there_and_in_the_side_bar(site):
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    names = {str(page.relative_to(ROOT).with_suffix(".html")) for page in pages}
    first = (site / "README.html").read_text()

    assert {name for name in names if not (site / name).exists()} == set()
    assert {name for name in names - {"README.html"} if f'href="{name}"' not in first} == set()
    assert 'url=README.html"' in (site / "index.html").read_text()


def test_no_page_loads_anything_from_another_host(site):
    for page in site.rglob("*.html"):
        assert not LOADED_FROM_ELSEWHERE.search(page.read_text()), page.name


def test_the_search_index_knows_what_pages_speak_of(site):
    index = (site / "searchindex.js").read_text()

    assert all(f'"{word}"' in index or f"{word}:" in index for word in ("rrset", "bookmark", "quarantin"))

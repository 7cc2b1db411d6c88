"""Every page can be found, every link leads somewhere, and every example is run or says why it cannot be.

A fenced block marked `sh` or `python` is an example that runs as it stands. Commands that cannot, because
they need another machine, a service manager or a name in the world's DNS, are indented instead.
"""

import re
from itertools import chain

import pytest

from tests.docs.conftest import ROOT

PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
ENTRANCES = ["README.md", "docs/index.md"]
EXAMPLE = re.compile(r"^```(?:sh|python)$", re.MULTILINE)

RUN_BY = {  # page with examples, and the test that runs all of them
    "README.md": "tests/docs/test_tour.py",
    "docs/quick-start.md": "tests/docs/test_tour.py",
    "docs/tutorial.md": "tests/docs/test_tour.py",
    "docs/contributing/where-goes-what.md": "tests/house/test_where.py",
    "docs/how-to/dated-behaviours.md": "tests/cli/test_deprecations.py",
    "docs/how-to/dns.md": "tests/cli/test_pages.py",
    "docs/how-to/edge-rules.md": "tests/docs/test_edge_rules_examples.py",
    "docs/how-to/history.md": "tests/docs/test_examples.py",
    "docs/how-to/key-value.md": "tests/cli/test_pages.py",
    "docs/how-to/move-out.md": "tests/docs/test_examples.py",
    "docs/how-to/objects-in-time.md": "tests/docs/test_examples.py",
    "docs/how-to/objects.md": "tests/docs/test_examples.py",
    "docs/how-to/octodns.md": "tests/clients/test_octodns.py",
    "docs/how-to/one-file.md": "tests/docs/test_examples.py",
    "docs/how-to/operate-objects.md": "tests/docs/test_examples.py",
    "docs/how-to/operate.md": "tests/server/test_alerts.py",
    "docs/how-to/production.md": "tests/packaging/test_production.py",
    "docs/how-to/test-against-edgestead.md": "tests/testing/test_platforms.py",
    "docs/how-to/waf-configuration.md": "tests/docs/test_waf_examples.py",
}
NOT_RUN = {  # page with examples that no test runs, and why
    "docs/design/0019-alarms-and-point-in-time-recovery.md": "signatures without bodies",
    "docs/reference/objects.md": "a skeleton of all that a class may have; the how-to runs one",
    "docs/reference/rulesets.md": "a look-up of one rule's id, for sets of any release",
}


def text_of(page):
    return (ROOT / page).read_text()


def links_of(page):
    """(file, anchor) of each local link; the file is relative to the root."""
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        yield file, anchor


def anchors_of(file):
    """The anchors that the usual renderers give a page's headings."""
    prose = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_local_link_leads_to_a_file_and_a_heading(page):
    for file, anchor in links_of(page):
        assert file.exists(), file
        if anchor and file.suffix == ".md" and "reference/changes" not in str(file):
            assert anchor in anchors_of(file), f"{file.relative_to(ROOT)} has no heading #{anchor}"


def test_every_page_is_found_from_the_readme_in_two_steps():
    found = {file for file, _ in chain.from_iterable(map(links_of, ENTRANCES))}

    assert [page for page in PAGES if page != "README.md" and ROOT / page not in found] == []


def test_every_page_with_examples_says_who_runs_them():
    assert {page for page in PAGES if EXAMPLE.search(text_of(page))} == set(RUN_BY) | set(NOT_RUN)
    for page, test in RUN_BY.items():
        assert page.rpartition("/")[2] in text_of(test), f"{test} does not run {page}"
    assert all(NOT_RUN.values()), "a reason, please"

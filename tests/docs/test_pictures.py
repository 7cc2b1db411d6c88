"""Pictures of the dashboard: of every page, small, each shown and named where people read about it."""

import re
import struct

import pytest

from docs.pictures.pages import NOT_PICTURED, PICTURES
from edgestead.web.pages import PAGES
from edgestead.web.way_in import PATHS
from tests.docs.conftest import ROOT
from tests.edge import chromium

FOLDER = ROOT / "docs" / "pictures"
SHOWN_BY = ROOT / "docs" / "explanation" / "dashboard.md"
BYTES_MAX, ALL_BYTES_MAX = 60 << 10, 1_200 << 10
COMMAND = ".venv/bin/python -m docs.pictures"
NO_PAGE = {"/ui/challenge", "/ui/openid"}  # of the way in: what a script asks for


def test_there_is_a_picture_of_every_page():
    pages = {row.path for row in PAGES} | set(PATHS) - NO_PAGE

    assert {one.row for one in PICTURES} | set(NOT_PICTURED) == pages, f"change the table, then {COMMAND}"
    assert not {one.row for one in PICTURES} & set(NOT_PICTURED)
    assert all(NOT_PICTURED.values()), "a reason, please"


def test_every_picture_is_a_small_file_and_there_is_no_other():
    sizes = {path.stem: path.stat().st_size for path in FOLDER.glob("*.png")}

    assert set(sizes) == {one.name for one in PICTURES}, f"{COMMAND} takes them"
    assert {name: size for name, size in sizes.items() if size > BYTES_MAX} == {}
    assert sum(sizes.values()) <= ALL_BYTES_MAX


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_a_picture_is_what_a_browser_of_that_width_shows(picture):
    octets = (FOLDER / f"{picture.name}.png").read_bytes()

    assert octets.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", octets[16:24])
    assert width == 960
    assert 300 <= height <= picture.height_max


def test_every_picture_is_shown_with_words_for_those_who_do_not_see_it():
    text = SHOWN_BY.read_text()
    shown = dict(re.findall(r"!\[([^\]]+)\]\(\.\./pictures/([a-z-]+)\.png\)", text))

    assert sorted(shown.values()) == sorted(one.name for one in PICTURES)
    assert COMMAND in text


@chromium.needed
@pytest.mark.long
def test_pictures_can_be_taken_of_a_server_with_example_data(tmp_path):
    """Every page has what its row says; the files that are committed are not touched."""
    pytest.importorskip("PIL")
    from docs.pictures.example import Example
    from docs.pictures.taking import photographer

    example = Example(tmp_path)
    try:
        with photographer(example.fill(), tmp_path / "chromium") as camera:
            sizes = {one.name: len(camera.take(one)) for one in PICTURES}
    finally:
        example.close()

    assert {name: size for name, size in sizes.items() if size > BYTES_MAX} == {}

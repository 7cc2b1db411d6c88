"""Pictures of the dashboard: of every page, small, each shown and named where people read about it."""

import json
import re
import shutil
import struct
from html import escape
from xml.etree import ElementTree as ET

import pytest

from docs.pictures import recording
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


def test_the_recording_is_of_commands_of_the_quick_start_as_they_stand():
    page, shown = (ROOT / recording.PAGE).read_text(), recording.SVG.read_text()
    commands = [line for line in recording.SHOWN if not line.startswith(" ")]
    played = "".join(json.loads(line)[2] for line in recording.CAST.read_text().splitlines()[1:])

    assert [line for line in recording.SHOWN if line.strip() not in page] == []
    assert [line for line in commands if f">$ {escape(line, quote=False)}<" not in shown] == []
    assert re.findall(r"^\$ (.*?)\r?$", played, re.MULTILINE) == commands
    assert f"]({recording.SVG.relative_to(ROOT / 'docs')})" in page.replace("\n", " ")
    assert ET.fromstring(shown).tag.endswith("svg")
    assert "<script" not in shown
    assert len(shown) < 20_000


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("curl") or not shutil.which("dig"), reason="curl or dig is missing")
def test_the_quick_start_can_be_recorded(tmp_path):
    moments = recording.record(tmp_path)

    printed = [moment.text for moment in moments if not moment.is_typed]
    assert {"192.0.2.1", "<h1>Hello from the origin</h1>", "403"} <= set(printed)
    assert recording.svg(moments).count("<text ") >= len(moments)


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

"""Reading a rule set from a folder or archive, and refusing what is none."""

import io
import tarfile
from pathlib import Path

import pytest

from edgestead.crs import RuleError, RulesUnreadable, loader, parse
from edgestead.crs.loader import load

SETUP = 'SecAction "id:900990,phase:1,pass,nolog,setvar:tx.crs_setup_version=400"\n'
RULE = 'SecRule ARGS "@pmFromFile words.data" "id:1,phase:2,pass"\n'
TREE = {
    "crs-setup.conf.example": SETUP,
    "rules/REQUEST-901.conf": RULE,
    "rules/words.data": "union\n",
    "rules/REQUEST-900.conf.example": "SecNotRead\n",
    "plugins/x-before.conf": 'SecAction "id:2,pass"\n',
    "plugins/x-after.conf": 'SecAction "id:3,pass"\n',
    "plugins/x-config.conf": 'SecAction "id:4,pass"\n',
    "tests/deep/inside.conf": "SecNotRead\n",
    "README.md": "not read",
}


def folder(root: Path, tree: dict[str, str]) -> Path:
    for name, text in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def archive(
    path: Path, tree: dict[str, str], *, top: str = "coreruleset-4.0.0/", packed: bool = True
) -> Path:
    with tarfile.open(path, "w:gz" if packed else "w") as tar:
        for name, text in tree.items():
            member = tarfile.TarInfo(top + name)
            member.size = len(text)
            member.mtime = 1_700_000_000
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


ENTRIES = (
    "crs-setup.conf.example",
    "plugins/x-config.conf",
    "plugins/x-before.conf",
    "rules/REQUEST-901.conf",
    "plugins/x-after.conf",
)


def test_a_folder_is_read_in_order(tmp_path: Path) -> None:
    files = load(folder(tmp_path, TREE))

    assert files.entries == ENTRIES
    assert [rule.id for rule in parse(files.files, files.entries).rules] == [900990, 4, 2, 1, 3]


def test_the_setup_file_beats_its_example(tmp_path: Path) -> None:
    assert load(folder(tmp_path, TREE | {"crs-setup.conf": SETUP})).entries[0] == "crs-setup.conf"


@pytest.mark.parametrize("top", ["coreruleset-4.0.0/", "", "./"])
@pytest.mark.parametrize("packed", [True, False])
def test_an_archive_is_the_same_as_its_folder(tmp_path: Path, top: str, packed: bool) -> None:
    from_folder = load(folder(tmp_path / "folder", TREE))

    from_archive = load(archive(tmp_path / "crs.tar", TREE, top=top, packed=packed))

    assert (from_archive.entries, from_archive.files) == (from_folder.entries, from_folder.files)
    assert from_archive.digest == from_folder.digest
    assert from_archive.modified_us == 1_700_000_000_000_000


def test_the_digest_knows_every_byte(tmp_path: Path) -> None:
    one = load(folder(tmp_path / "one", TREE))
    two = load(folder(tmp_path / "two", TREE | {"rules/words.data": "unioN\n"}))

    assert one.digest != two.digest


def test_bytes_that_are_not_text_survive(tmp_path: Path) -> None:
    (folder(tmp_path, TREE) / "rules/words.data").write_bytes(b"\xff\xfe\n")
    files = load(tmp_path)

    (rule,) = (rule for rule in parse(files.files, files.entries).rules if rule.id == 1)

    assert [phrase.encode("utf-8", "surrogateescape") for phrase in rule.operator.phrases] == [b"\xff\xfe"]


def test_the_systems_exclusions_lie_around_its_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = folder(tmp_path / "share", {"rules/REQUEST-901.conf": RULE, "rules/words.data": "a"})
    setup = folder(
        tmp_path / "etc",
        {"crs-setup.conf": SETUP, "REQUEST-900.conf": "", "RESPONSE-999.conf": ""},
    )
    monkeypatch.setattr(loader._load_system, "__defaults__", (rules, setup))

    assert load().entries == (
        "crs-setup.conf",
        "rules/REQUEST-900.conf",
        "rules/REQUEST-901.conf",
        "rules/RESPONSE-999.conf",
    )


def test_without_an_installed_rule_set_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader._load_system, "__defaults__", (Path("/nonexistent"), Path("/nonexistent")))

    with pytest.raises(RulesUnreadable, match="Debian's package is modsecurity-crs"):
        load()


BAD_TREES = [
    ({}, "expected crs-setup.conf"),
    ({"crs-setup.conf": SETUP}, r"and rules/\*.conf"),
    ({"rules/REQUEST-901.conf": RULE}, "expected crs-setup.conf"),
]


@pytest.mark.parametrize(("tree", "reason"), BAD_TREES)
def test_a_folder_or_archive_without_rules_is_refused(
    tmp_path: Path, tree: dict[str, str], reason: str
) -> None:
    for path in (folder(tmp_path / "folder", {"x": ""} | tree), archive(tmp_path / "crs.tgz", tree)):
        with pytest.raises(RulesUnreadable, match=reason):
            load(path)


def test_what_is_not_there_or_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("SecRule")
    (tmp_path / "broken.tar.gz").write_bytes(archive(tmp_path / "good.tar.gz", TREE).read_bytes()[:-40])
    (tmp_path / "empty").write_bytes(b"")

    for name in ("absent", "text", "broken.tar.gz", "empty"):
        with pytest.raises(RulesUnreadable, match=name):
            load(tmp_path / name)


@pytest.mark.parametrize("name", ["../rules/x.conf", "/rules/x.conf", "a/../../x.conf"])
def test_an_archive_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RulesUnreadable, match="leads out of the archive"):
        load(archive(tmp_path / "crs.tar.gz", TREE | {name: RULE}, top=""))


def test_links_in_an_archive_are_left_out(tmp_path: Path) -> None:
    path = archive(tmp_path / "crs.tar", TREE, packed=False)
    with tarfile.open(path, "a") as tar:
        link = tarfile.TarInfo("coreruleset-4.0.0/rules/secret.conf")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)

    assert "rules/secret.conf" not in load(path).files


def test_a_link_out_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.conf").write_text("root")
    root = folder(tmp_path / "crs", TREE)
    (root / "rules/link.conf").symlink_to(tmp_path / "secret.conf")

    with pytest.raises(RulesUnreadable, match="leads out of"):
        load(root)


LIMITS = [
    ("FILE_BYTES_MAX", 80, "larger than 80 bytes"),
    ("TOTAL_BYTES_MAX", 100, "or 100 bytes"),
    ("FILES_MAX", 3, "more than 3 files"),
    ("ARCHIVE_MEMBERS_MAX", 4, "more than 4 members"),
    ("ARCHIVE_BYTES_MAX", 2_000, "unpacks to more than 2000 bytes"),
]


@pytest.mark.parametrize(("name", "limit", "reason"), LIMITS)
def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int, reason: str) -> None:
    path = archive(tmp_path / "crs.tar.gz", TREE | {"rules/long.conf": "#" * 90})
    monkeypatch.setattr(loader, name, limit)

    with pytest.raises(RulesUnreadable, match=reason):
        load(path)


def test_an_archive_that_unpacks_without_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "crs.tar.gz", {"padding.bin": "0" * 5_000_000} | TREE)
    monkeypatch.setattr(loader, "ARCHIVE_BYTES_MAX", 1_000_000)

    with pytest.raises(RulesUnreadable, match="unpacks to more than"):
        load(path)


def test_a_rule_that_is_not_understood_names_its_file(tmp_path: Path) -> None:
    files = load(folder(tmp_path, TREE | {"rules/REQUEST-950.conf": "\n\nSecFoo bar\n"}))

    with pytest.raises(RuleError, match=r"^rules/REQUEST-950\.conf:3: unknown directive"):
        parse(files.files, files.entries)

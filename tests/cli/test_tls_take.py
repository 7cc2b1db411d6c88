"""`edgecli tls take` finds certificates of other programs, and writes a file for each of their names."""

import json
import os
import ssl
import stat
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from tests.support.pairs import issued

NOW = datetime.now(UTC)
LAYOUTS = {  # a program's names of chain and key, for a certificate of www.a.example and *.a.example
    "certbot": ("live/a.example/fullchain.pem", "live/a.example/privkey.pem"),
    "lego": ("certificates/_.a.example.crt", "certificates/_.a.example.key"),
    "acme.sh": ("a.example_ecc/fullchain.cer", "a.example_ecc/a.example.key"),
    "caddy": ("acme/wildcard_.a.example/wildcard_.a.example.crt",
              "acme/wildcard_.a.example/wildcard_.a.example.key"),
}  # fmt: skip


def run(*words, env=None, code=0):
    done = CliRunner().invoke(cli, ["tls", "take", *map(str, words)], env=env, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def put(folder, chain, key, *names, now=NOW):
    pair = issued(*names, now=now)
    for place, text in ((chain, pair.chain), (key, pair.key)):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
    return pair


@pytest.mark.parametrize("program", LAYOUTS)
def test_each_name_of_a_certificate_gets_a_file(tmp_path, program):
    put(tmp_path / "from", *LAYOUTS[program], "www.a.example", "*.a.example")
    (tmp_path / "from" / "README").write_text("words")

    done = run(tmp_path / "from", "--tls-dir", tmp_path / "tls", "--json")

    assert [one["name"] for one in json.loads(done.stdout)] == ["*.a.example", "www.a.example"]
    files = sorted((tmp_path / "tls").iterdir())
    assert [one.name for one in files] == ["_.a.example.pem", "www.a.example.pem"]
    for one in files:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(one)
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700


def written(path):
    """Which file it is, and when it was written; a look at it changes neither."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def test_a_second_run_writes_what_is_new(tmp_path):
    put(tmp_path / "from", *LAYOUTS["certbot"], "www.a.example")
    where = (tmp_path / "from", "--tls-dir", tmp_path / "tls")
    assert "would be written" in run(*where, "--dry-run").stdout
    assert not (tmp_path / "tls").exists()

    assert ", written" in run(*where).stdout
    before = written(tmp_path / "tls" / "www.a.example.pem")
    assert ", unchanged" in run(*where).stdout
    assert written(tmp_path / "tls" / "www.a.example.pem") == before
    pair = put(tmp_path / "from", *LAYOUTS["certbot"], "www.a.example")
    lineage = {"RENEWED_LINEAGE": str(tmp_path / "from" / "live" / "a.example")}
    assert ", written" in run("--tls-dir", tmp_path / "tls", env=lineage).stdout
    assert pair.chain.strip() in (tmp_path / "tls" / "www.a.example.pem").read_text()


def test_of_several_the_one_that_ends_last_is_taken(tmp_path):
    put(tmp_path / "from", "one/fullchain.pem", "one/privkey.pem", "a.example", now=NOW - timedelta(days=1))
    last = put(tmp_path / "from", "two/fullchain.pem", "two/privkey.pem", "a.example", "b.example")
    put(tmp_path / "from", "x/fullchain.pem", "x/privkey.pem", "a.example", now=NOW - timedelta(days=2))

    run(tmp_path / "from", "--tls-dir", tmp_path / "tls")

    assert last.chain.strip() in (tmp_path / "tls" / "a.example.pem").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_files_are_for_who_owns_the_folder_or_its_group(tmp_path):
    put(tmp_path / "from", *LAYOUTS["certbot"], "a.example")
    folder = tmp_path / "tls"
    folder.mkdir()
    os.chown(folder, 4_711, 4_712)
    run(tmp_path / "from", "--tls-dir", folder)
    file = folder / "a.example.pem"
    assert (file.stat().st_uid, file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (
        4_711,
        4_712,
        0o600,
    )
    file.unlink()
    folder.chmod(0o2750)
    run(tmp_path / "from", "--tls-dir", folder)
    assert (file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (4_712, 0o640)


def test_what_is_no_good_is_left_out_with_its_reason(tmp_path):
    put(tmp_path / "from", *LAYOUTS["certbot"], "a.example")
    old = "old/fullchain.pem", "old/privkey.pem"
    put(tmp_path / "from", *old, "old.example", now=NOW - timedelta(days=1_000))
    other = put(tmp_path / "from", "other/fullchain.pem", "other/privkey.pem", "other.example")
    put(tmp_path / "from", "broken/fullchain.pem", "broken/privkey.pem", "broken.example")
    (tmp_path / "from" / "broken" / "privkey.pem").write_text(other.key)
    (tmp_path / "from" / "other" / "fullchain.pem").write_text("words")
    (tmp_path / "from" / "alone").mkdir()
    (tmp_path / "from" / "alone" / "fullchain.pem").write_text(other.chain)

    done = run(tmp_path / "from", "--tls-dir", tmp_path / "tls")

    assert [one.name for one in (tmp_path / "tls").iterdir()] == ["a.example.pem"]
    said = done.stderr
    assert "old/fullchain.pem: it ended on" in said
    assert "broken/fullchain.pem: " in said
    assert "other/fullchain.pem: " in said
    assert "alone" not in said


@pytest.mark.parametrize("odd", ["pipe", "device", "folder"])
@pytest.mark.parametrize("which", ["fullchain.pem", "privkey.pem"])
def test_what_is_no_file_is_left_out_at_once(tmp_path, which, odd):
    put(tmp_path / "from", *LAYOUTS["certbot"], "a.example")
    put(tmp_path / "from", "odd/fullchain.pem", "odd/privkey.pem", "odd.example")
    place = tmp_path / "from" / "odd" / which
    place.unlink()
    if odd == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero" if odd == "device" else "/etc")

    done = run(tmp_path / "from", "--tls-dir", tmp_path / "tls")

    assert [one.name for one in (tmp_path / "tls").iterdir()] == ["a.example.pem"]
    assert odd == "folder" or "odd/fullchain.pem: it is no file" in done.stderr


@pytest.mark.parametrize(("folder_mode", "mode"), [(0o750, 0o600), (0o2750, 0o640)])
def test_a_key_that_others_could_read_is_written_again(tmp_path, folder_mode, mode):
    put(tmp_path / "from", *LAYOUTS["certbot"], "a.example")
    run(tmp_path / "from", "--tls-dir", tmp_path / "tls")
    file = tmp_path / "tls" / "a.example.pem"
    file.parent.chmod(folder_mode)
    file.chmod(0o644)

    assert ", written" in run(tmp_path / "from", "--tls-dir", tmp_path / "tls").stdout
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert ", unchanged" in run(tmp_path / "from", "--tls-dir", tmp_path / "tls").stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "FOLDER is missing"),
        (("none",), 2, "is no folder"),
        ((".",), 1, "no certificate with its key"),
    ],
)
def test_a_wrong_folder_is_told(tmp_path, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RENEWED_LINEAGE", raising=False)

    assert said in run(*words, code=code).stderr

"""`edgecli tls dev` makes certificates that a client accepts who trusts the authority."""

import ssl
import stat

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli


def run(*words):
    return CliRunner().invoke(cli, ["tls", "dev", *words], catch_exceptions=False)


def names_of(path):
    return ssl._ssl._test_decode_cert(str(path))["subjectAltName"]


def test_each_name_gets_a_file_and_the_authority_is_made_once(tmp_path):
    folder = tmp_path / "tls"
    first = run("Example.com", "*.example.com", "--tls-dir", str(folder))
    assert first.exit_code == 0, first.output
    authority = (folder / "authority" / "ca.pem").read_bytes()
    assert "authority/ca.pem" in first.output
    assert names_of(folder / "example.com.pem") == (("DNS", "example.com"),)
    assert names_of(folder / "_.example.com.pem") == (("DNS", "*.example.com"),)
    before = (folder / "example.com.pem").read_bytes()
    assert run("example.com", "--tls-dir", str(folder)).exit_code == 0
    assert (folder / "example.com.pem").read_bytes() != before
    assert (folder / "authority" / "ca.pem").read_bytes() == authority


def test_keys_are_nobody_elses(tmp_path):
    run("example.com", "--tls-dir", str(tmp_path))
    for path in (tmp_path / "example.com.pem", tmp_path / "authority" / "ca.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "authority").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["..", "a b.example", "-x.example", "*", "example", "http://example.com"])
def test_what_is_no_host_name_is_refused_and_nothing_is_made(tmp_path, name):
    folder = tmp_path / "tls"
    done = run("--tls-dir", str(folder), "--", name)
    assert done.exit_code == 2
    assert "is no host name" in done.output
    assert not folder.exists()


def test_a_damaged_authority_is_refused(tmp_path):
    run("example.com", "--tls-dir", str(tmp_path))
    (tmp_path / "authority" / "ca.key").write_bytes(b"nonsense")
    done = run("example.com", "--tls-dir", str(tmp_path))
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")

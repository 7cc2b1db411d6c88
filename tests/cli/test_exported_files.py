"""A file that an export writes is the old one or the new one."""

from tests.cli.flaky import FlakyProxy


def test_a_zone_that_breaks_off_leaves_the_file_of_the_day_before(edgecli, project, kv_server, monkeypatch):
    kv_server.make_zone("nightly.example")
    assert edgecli("zone", "export", "nightly.example", "-o", "zone").code == 0
    before = (project / "zone").read_bytes()
    assert edgecli("zone", "export", "nightly.example", "-o", "-").out.startswith("; zone nightly.example, ")

    with FlakyProxy(kv_server.ready["api_base"], cut="/dns_records/export") as base:
        monkeypatch.setenv("EDGE_API_BASE", base)
        done = edgecli("zone", "export", "nightly.example", "-o", "zone")

    assert (done.code, "bytes too early" in done.err) == (1, True), done
    assert {path.name: path.read_bytes() for path in project.iterdir()} == {"zone": before}


def test_a_disk_that_is_full_leaves_the_document_of_the_day_before(edgecli, project, room):
    (project / "edge.toml").write_text("before")

    with room(4):
        done = edgecli("export", "-o", "edge.toml")

    assert (done.code, done.err.partition("\n")[0]) == (1, "Error: edge.toml: File too large.")
    assert {path.name: path.read_text() for path in project.iterdir()} == {"edge.toml": "before"}
    assert edgecli("export", "-o", "-").out == edgecli("export").out

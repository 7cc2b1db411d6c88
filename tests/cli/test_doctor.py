"""`edgecli doctor`: a server that is well, one that will surprise somebody, and none."""

import json

from click.testing import CliRunner

from edgestead.cli.main import cli


def examined(server, *arguments, **environment):
    known = {"EDGE_API_BASE": server.ready["api_base"], "EDGE_TOKEN": server.ready["api_token"]}
    folder = ("--data-dir", str(server.data_dir))
    return CliRunner().invoke(cli, ["doctor", *folder, *arguments], env=known | environment)


def test_without_a_server_it_says_how_to_start_one(clean_environment):
    done = CliRunner().invoke(cli, ["doctor", "--data-dir", str(clean_environment / "none")])

    assert done.exit_code == 1
    assert "broken  no server runs on the data folder" in done.output
    assert "edgecli serve" in done.output


def test_warnings_leave_the_exit_code_0(clean_environment, new_server):
    server = new_server().start()
    zone_id = server.make_zone("example.com")
    server.call("PATCH", f"/zones/{zone_id}/settings/http2", {"value": "on"})

    done = examined(server)

    assert done.exit_code == 0, done.output
    assert "resolvers ask port 53 only" in done.output
    assert "example.com: http2 is on, so HTTPS records" in done.output
    assert "example.com has no record" in done.output

    server.call("PATCH", f"/zones/{zone_id}/settings/http2", {"value": "off"})
    server.make_record(zone_id, "A", "@", "192.0.2.1")
    found = json.loads(examined(server, "--json").output)
    assert not any("example.com" in one["words"] for one in found)


def test_credentials_that_are_refused_are_broken(clean_environment, new_server):
    server = new_server().start()

    done = examined(server, EDGE_TOKEN="x" * 40)

    assert done.exit_code == 1
    assert "broken  the API does not answer these credentials" in done.output

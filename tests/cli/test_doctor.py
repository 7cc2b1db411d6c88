"""`edgecli doctor`: a server that is well, one that will surprise somebody, and none."""

import json
import socket

from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.server.places import private_place
from edgestead.testing.server import wait_until


def examined(server, *arguments, **environment):
    known = {"EDGE_API_BASE": server.ready["api_base"], "EDGE_TOKEN": server.ready["api_token"]}
    folder = ("--data-dir", str(server.data_dir))
    return CliRunner().invoke(cli, ["doctor", *folder, *arguments], env=known | environment)


def test_without_a_server_it_says_how_to_start_one(clean_environment):
    done = CliRunner().invoke(cli, ["doctor", "--data-dir", str(clean_environment / "none")])

    assert done.exit_code == 1
    assert "broken  no server runs on the data folder" in done.output
    assert "edgecli serve" in done.output


def test_warnings_leave_the_exit_code_0(clean_environment, lent):
    server = lent
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


def test_credentials_that_are_refused_are_broken(clean_environment, lent):
    server = lent

    done = examined(server, EDGE_TOKEN="x" * 40)

    assert done.exit_code == 1
    assert "broken  the API does not answer these credentials" in done.output


def test_it_examines_the_server_of_the_folder_whomever_the_environment_names(clean_environment, lent):
    server = lent
    server.make_zone("example.com")

    done = CliRunner().invoke(cli, ["doctor", "--data-dir", str(server.data_dir)])
    assert done.exit_code == 0, done.output
    assert "example.com has no record" in done.output
    assert "environment" not in done.output

    done = examined(server, EDGE_API_BASE="http://192.0.2.1:1/client/v4")
    assert done.exit_code == 0, done.output
    assert "the environment names another server: http://192.0.2.1:1/client/v4" in done.output
    assert "example.com has no record" in done.output


def test_targets_that_nobody_resolves_are_a_warning(clean_environment, new_server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        server = new_server("--resolver", f"127.0.0.1:{silent.getsockname()[1]}").start()
        zone_id = server.make_zone("example.com")
        assert "were never" not in examined(server).output

        server.make_record(zone_id, "CNAME", "@", "target.example.net")

        wait_until(lambda: "1 targets of flattened aliases were never" in examined(server).output, 180)


def test_a_zone_whose_records_lead_nowhere_is_a_warning(clean_environment, lent):
    server = lent
    zone_id = server.make_zone("example.com")
    server.make_record(zone_id, "TXT", "@", '"words"')
    assert "example.com has no address" in examined(server).output

    server.make_record(zone_id, "A", "www", "192.0.2.1")
    assert "example.com has" not in examined(server).output


def test_the_certificates_of_the_running_server_are_examined(clean_environment, new_server, tmp_path):
    folder = tmp_path / "tls"
    folder.mkdir()
    server = new_server("--https", "{}:{}".format(*private_place()), "--tls-dir", str(folder)).start()
    assert f"broken  {folder} holds no certificate" in examined(server).output

    CliRunner().invoke(cli, ["tls", "dev", "www.example.com", "--tls-dir", str(folder)])
    wait_until(lambda: "fine    no certificate ends within three weeks" in examined(server).output, 180)


def test_a_server_at_every_address_is_told_so(clean_environment, new_server):
    server = new_server("--api", "0.0.0.0:0", "--dns", "0.0.0.0:0", "--edge-address", "127.0.0.1").start()

    said = examined(server).output

    assert "the API listens at 0.0.0.0:" in said
    assert "DNS listens at 0.0.0.0:" in said or "at every address" in said

"""`edgecli doctor --client`: what of another program's configuration stays behind, or differs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.cli.server.client_rules import CLIENTS
from tests.clients.terraform import CONFIGURATIONS

HCL = """
terraform { required_providers { cloudflare = { source = "cloudflare/cloudflare" } } }
resource "cloudflare_dns_record" "fine" {
  zone_id = var.zone
  name    = "www.example.com" # a name
  type    = "A"
  content = "192.0.2.1"
  ttl     = 300
}
resource "cloudflare_dns_record" "text" {
  name = "example.com"
  type = "TXT"
  content = "v=spf1 -all"
}
resource "cloudflare_dns_record" "computed" {
  type = "TXT"
  content = "${var.text}"
}
resource "cloudflare_dns_record" "srv" {
  name = "_a._tcp.example.com"
  type = "SRV"
  data = {
    priority = 10
    target   = "sip.example.net"
  }
}
resource "cloudflare_dns_record" "caa" {
  type = "CAA"
  data = {
    flags = "0"
  }
}
resource "cloudflare_dns_record" "long" {
  name = "2nd.Example.com"
  type = "AAAA"
  content = "2001:DB8:0::2"
}
resource "cloudflare_zone_setting" "odd" {
  setting_id = "never_there"
}
resource "cloudflare_firewall_rule" "old" {}
resource "cloudflare_load_balancer" "absent" { name = "x" }
resource "cloudflare_dns_record" "lines" {
  for_each = toset([
    "a", "b"
  ])
  name = each.key
  type = (
    "CAA"
  )
  data = { flags = 0,
    tag = "issue", value = "ca.example" }
  tags = [
    "one:1",
    "type = 5",
  ]
}
resource "cloudflare_dns_record" "inline" {
  type = "SRV"
  data = { priority = 10, target = "sip.example.net" } }
resource "aws_instance" "theirs" {
  content = "x"
}
"""
FOUND = {
    "cloudflare_dns_record.text": [("differs", "TXT v=spf1 -all")],
    "cloudflare_dns_record.srv": [("differs", "SRV without priority beside its data")],
    "cloudflare_dns_record.caa": [("differs", "CAA with flags as text")],
    "cloudflare_dns_record.long": [
        ("not", "name 2nd.Example.com"),
        ("differs", "AAAA 2001:DB8:0::2, answered as 2001:db8::2"),
        ("differs", "name 2nd.Example.com"),
    ],
    "cloudflare_dns_record.inline": [("differs", "SRV without priority beside its data")],
    "cloudflare_zone_setting.odd": [("not", "never_there")],
    "cloudflare_firewall_rule.old": [("not", "firewall_rule")],
    "cloudflare_load_balancer.absent": [("not", "load_balancer")],
}
OF_PROFILE = {("differs", "TXT v=spf1 -all"), ("not", "name 2nd.Example.com")}


@pytest.fixture
def examine(tmp_path):
    def run(client, text, *options, code):
        file = tmp_path / "file"
        file.write_text(text)
        done = CliRunner().invoke(cli, ["doctor", "--client", client, str(file), *options])
        assert done.exit_code == code, done.output
        return done.output

    return run


def by_place(output):
    found = {}
    for one in json.loads(output):
        assert one["reason"]
        assert one["next_step"]
        found.setdefault(one["place"], []).append((one["level"], one["what"]))
    return found


def test_resources_of_terraform_are_looked_at_one_by_one(examine):
    assert by_place(examine("terraform", HCL, "--json", code=1)) == FOUND
    relaxed = by_place(examine("terraform", HCL, "--json", "--profile", "clients", code=1))
    kept = {place: [one for one in rows if one not in OF_PROFILE] for place, rows in FOUND.items()}
    assert relaxed == {place: rows for place, rows in kept.items() if rows}


@pytest.mark.parametrize("form", ["state", "plan", "show", "configuration"])
def test_a_state_and_a_plan_are_read_too(examine, form):
    values = {"name": "example.com", "type": "TXT", "content": "bare"}
    one = {
        "mode": "managed",
        "type": "cloudflare_dns_record",
        "name": "t",
        "address": "cloudflare_dns_record.t",
    }
    module = {"resources": [], "child_modules": [{"resources": [one | {"values": values}]}]}
    document = {
        "state": {"resources": [one | {"instances": [{"attributes": values}]}]},
        "plan": {"planned_values": {"root_module": module}},
        "show": {"values": {"root_module": module}},
        "configuration": {"resource": {"cloudflare_dns_record": {"t": values}, "aws_instance": {"x": {}}}},
    }[form]

    said = examine("terraform", json.dumps(document), code=1)

    assert "cloudflare_dns_record.t: TXT bare" in said
    assert "--profile clients" in said
    assert "Nothing in" in examine("terraform", json.dumps(document), "--profile", "clients", code=0)


def test_the_configurations_that_leave_nothing_to_plan_are_told_of_nothing(examine):
    """And those whose members a server answers otherwise are: the table and the rules agree."""
    resources = [
        {
            "mode": "managed",
            "type": f"cloudflare_{one.name.split()[0].strip(',')}",
            "address": one.name,
            "values": {**one.body, "setting_id": one.path.rpartition("/")[2]},
        }
        for one in CONFIGURATIONS
    ]
    document = {"values": {"root_module": {"resources": resources}}}

    told = by_place(examine("terraform", json.dumps(document), "--json", code=1))

    differing = {one.name for one in CONFIGURATIONS if one.only_clients or one.differs}
    assert set(told) == differing - {"dns_record A, short name"}  # whose zone no file names


OTHERS = [
    ("octodns", "providers:\n  x:\n    class: octodns_cloudflare.CloudflareProvider\n", "octodns_edgestead"),
    ("octodns", "www:\n  type: URLFWD\n", "redirect rule"),
    ("external-dns", "args:\n- --provider=cloudflare\n- --cloudflare-proxied\n", "dynamic updates"),
    ("external-dns", "- --provider=rfc2136\n- --rfc2136-tsig-secret-alg=hmac-md5\n", "HMAC-SHA256"),
    ("cert-manager", "solvers:\n- dns01:\n    cloudflare:\n      email: a\n", "dynamic updates"),
    ("cert-manager", "rfc2136:\n  tsigAlgorithm: HMACMD5\n", "HMAC-SHA256"),
    ("wrangler", 'main = "x.js"\n[[r2_buckets]]\nbinding = "B"\n', "scripts do not run here"),
    ("wrangler", "[env.live.durable_objects]\nbindings = []\n", "classes of objects are in Python"),
    ("certbot", "dns_rfc2136_algorithm = HMAC-MD5\n", "HMAC-SHA256"),
    ("lego", "CF_DNS_API_TOKEN=x\n", "CLOUDFLARE_BASE_URL is missing"),
    ("fail2ban", "[Init]\ncftoken = x\n", "_cf_api_url is missing"),
]
FINE = {
    "terraform": 'resource "cloudflare_zone" "z" {\n  name = "example.com"\n}\n',
    "octodns": "www:\n  type: A\n  value: 192.0.2.1\n",
    "external-dns": "- --provider=rfc2136\n- --rfc2136-tsig-secret-alg=hmac-sha256\n",
    "cert-manager": "rfc2136:\n  tsigAlgorithm: HMACSHA256\n# cloudflare:\n",
    "wrangler": 'name = "x"\n[[kv_namespaces]]\nbinding = "B"\nid = "c"\n',
    "certbot": "dns_cloudflare_api_token = x\n",
    "lego": "CF_DNS_API_TOKEN=x\nCLOUDFLARE_BASE_URL=https://edge.example/client/v4\n",
    "fail2ban": "[Definition]\n_cf_api_url = https://edge.example/x\n[Init]\ncftoken = x\n",
}


@pytest.mark.parametrize(("client", "text", "words"), OTHERS)
def test_a_configuration_of_another_program_is_told_the_next_step(examine, client, text, words):
    said = examine(client, text, code=1)

    assert words in said
    assert "not " in said or "differs " in said


@pytest.mark.parametrize("text", ["", "# nothing\n"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_with_nothing_to_look_at_is_no_comfort(examine, client, text):
    assert "could be looked at" in examine(client, text, code=2)


def test_a_file_of_another_provider_is_no_comfort(examine):
    assert "could be looked at" in examine("terraform", 'resource "aws_instance" "x" {}\n', code=2)


@pytest.mark.parametrize("client", CLIENTS)
def test_what_carries_over_ends_with_0(examine, client):
    assert "Nothing in" in examine(client, FINE[client], code=0)
    assert json.loads(examine(client, FINE[client], "--json", code=0)) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--client", "terafrom", __file__), "Did you mean terraform?"),
        (("--client", "terraform"), "belong together"),
        ((__file__,), "belong together"),
        (("--client", "wrangler", __file__), "cannot be read as wrangler.toml"),
        (("--client", "terraform", "/nothing/there"), "does not exist"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_what_to_do(arguments, words):
    done = CliRunner().invoke(cli, ["doctor", *arguments])

    assert (done.exit_code, words in " ".join(done.output.split())) == (2, True), done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("text", ["{", "[]", '{"resources": 5}', '{"values": null, "resources": [{}]}'])
def test_a_broken_state_is_refused_with_its_name(tmp_path, text):
    file = tmp_path / "broken.tfstate"
    file.write_text(text.replace("[]", '{"a": []}'))
    done = CliRunner().invoke(cli, ["doctor", "--client", "terraform", str(file)])

    assert done.exit_code == 2
    assert Path(file).name in " ".join(done.output.split())

"""Settings: one table, three sources, and words for what cannot be."""

from dataclasses import fields
from datetime import date, datetime
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from edgestead import config
from edgestead.config import Address, Config, ConfigError
from edgestead.config_values import Target
from edgestead.model.call import Profile

DEFAULTS = {
    "api": Address("127.0.0.1", 8787),
    "dns": Address("127.0.0.1", 5300),
    "edge_addresses": (ip_address("127.0.0.1"),),
    "nameserver": ("ns1.edge.internal", "ns2.edge.internal"),
    "profile": Profile.SPEC,
    "as_of": None,
    "allow_as_of": False,
    "dns_workers": 1,
    "ready_file": None,
    "disk_reserve_mib": 32,
    "barrier_ms": 250,
}

GOOD = [
    # key, given, field, what it becomes
    ("api", "0.0.0.0:80", "api", Address("0.0.0.0", 80)),
    ("control-spare", True, "control_spare", 1),
    ("control-spare", False, "control_spare", 0),
    ("control-spare", 2, "control_spare", 2),
    ("objects-blocked-seconds", 0.75, "objects_blocked_seconds", 0.75),
    ("objects-blocked-seconds", "2", "objects_blocked_seconds", 2.0),
    ("api", "localhost:0", "api", Address("127.0.0.1", 0)),
    ("dns", "[::1]:53", "dns", Address("::1", 53)),
    (
        "edge-address",
        ("192.0.2.1", "2001:db8::1"),
        "edge_address",
        (ip_address("192.0.2.1"), ip_address("2001:db8::1")),
    ),
    (
        "nameserver-address",
        ("192.0.2.1", "2001:db8::1"),
        "nameserver_address",
        (ip_address("192.0.2.1"), ip_address("2001:db8::1")),
    ),
    ("edge-address", ("192.0.2.1", "192.0.2.1"), "edge_address", (ip_address("192.0.2.1"),)),
    ("nameserver", ("NS1.Example.net.",), "nameserver", ("ns1.example.net",)),
    ("profile", "clients", "profile", Profile.CLIENTS),
    ("as-of", "2024-05-30", "as_of", date(2024, 5, 30)),
    ("as-of", date(2020, 4, 1), "as_of", date(2020, 4, 1)),
    ("allow-as-of", True, "allow_as_of", True),
    ("dns-workers", "auto", "dns_workers", 0),
    ("dns-workers", "3", "dns_workers", 3),
    ("dns-workers", 3, "dns_workers", 3),
    ("dns-rate", "200", "dns_rate", 200),
    ("dns-identity", "ams-1", "dns_identity", "ams-1"),
    ("dns-version", "", "dns_version", ""),
    ("data-dir", "/x/y", "data_dir", Path("/x/y")),
    ("transfer-to", ("192.0.2.1",), "transfer_to", (ip_network("192.0.2.1/32"),)),
    ("transfer-to", ["2001:db8::/32"], "transfer_to", (ip_network("2001:db8::/32"),)),
    ("resolver", "192.0.2.1:53", "resolver", Address("192.0.2.1", 53)),
    ("notify", ("[2001:db8::1]:53",), "notify", (Target("2001:db8::1", 53),)),
    ("notify", ("XFR.Example@192.0.2.1:53",), "notify", (Target("192.0.2.1", 53, "xfr.example"),)),
    ("objects", ("/x/y.py", "package.module"), "objects", ("/x/y.py", "package.module")),
    ("objects-http", "[::1]:0", "objects_http", Address("::1", 0)),
    ("objects-workers", "auto", "objects_workers", 0),
    (
        "objects.bindings",
        {"B": "b" * 32, "A": "a" * 32},
        "objects_bindings",
        (("A", "a" * 32), ("B", "b" * 32)),
    ),
]

BAD = [
    # key, given, words of the refusal
    ("api", "8787", "HOST:PORT"),
    ("api", "127.0.0.1:", "whole number from 0 to 65535"),
    ("api", "127.0.0.1:65536", "whole number from 0 to 65535"),
    ("api", "127.0.0.1:-1", "whole number"),
    ("api", "127.0.0.1:٣", "whole number"),
    ("api", "::1:53", "brackets"),
    ("api", "[127.0.0.1]:53", "brackets"),
    ("api", "www.example.net:80", "IP address or localhost"),
    ("api", 8787, "expected text"),
    ("edge-address", ("0.0.0.0",), "address of one machine"),
    ("edge-address", ("224.0.0.1",), "address of one machine"),
    ("edge-address", ("fe80::1%eth0",), "address of one machine"),
    ("edge-address", ("edge",), "IPv4 or IPv6"),
    ("nameserver-address", ("0.0.0.0",), "address of one machine"),
    ("edge-address", "192.0.2.1", "expected a list"),
    ("edge-address", ["192.0.2.1"] * 65, "at most 64"),
    ("nameserver", ("ns1",), "host name"),
    ("nameserver", ("ns_1.example.net",), "host name"),
    ("nameserver", ("-ns1.example.net",), "host name"),
    ("nameserver", (".".join(["a" * 63] * 4),), "host name"),
    ("profile", "real", "spec or clients"),
    ("as-of", "yesterday", "YYYY-MM-DD"),
    ("as-of", "2020-03-31", "2020-04-01 or later"),
    ("as-of", datetime(2024, 5, 30, 1), "expected text|YYYY-MM-DD"),
    ("allow-as-of", "true", "true or false"),
    ("dns-workers", "0", "1 to 64, or auto"),
    ("dns-workers", True, "1 to 64, or auto"),
    ("dns-workers", "65", "1 to 64, or auto"),
    ("dns-rate", "-1", "whole number"),
    ("dns-rate", "1000001", "from 0 to 1000000"),
    ("dns-identity", "a" * 256, "at most 255 printable"),
    ("dns-identity", "caf\xe9", "printable ASCII"),
    ("dns-version", "a\n", "printable ASCII"),
    ("dns-version", 9, "printable ASCII"),
    ("data-dir", "", "expected text"),
    ("data-dir", "a\0b", "expected text"),
    ("transfer-to", ("192.0.2.1/24",), "without host bits"),
    ("transfer-to", ("secondary",), "address or a prefix"),
    ("transfer-to", ("192.0.2.0/33",), "address or a prefix"),
    ("notify", ("192.0.2.1",), "HOST:PORT"),
    ("notify", ("192.0.2.1:0",), "and its port"),
    ("notify", ("a..b@192.0.2.1:53",), "name of a TSIG key"),
    ("notify", ("0.0.0.0:53",), "one machine"),
    ("notify", ("ns2.example.net:53",), "IP address"),
    ("objects", ("not a module",), "FILE.py, a folder, or a module"),
    ("objects", ("a..b",), "FILE.py, a folder, or a module"),
    ("objects", "a.py", "expected a list"),
    ("objects.bindings", ["a"], "NAME ="),
    ("objects.bindings", {"_a": "a" * 32}, "attribute of `env`"),
    ("objects.bindings", {"a-b": "a" * 32}, "attribute of `env`"),
    ("objects.bindings", {"A": "a" * 31}, "id of a namespace"),
    ("objects.bindings", {f"A{n}": "a" * 32 for n in range(65)}, "at most 64"),
    ("objects-blocked-seconds", 0.4, "number from 0.5"),
    ("objects-blocked-seconds", float("nan"), "number from 0.5"),
    ("objects-blocked-seconds", "soon", "number from 0.5"),
    ("control-spare", 5, "0 to 4, or true or false"),
    ("control-spare", "yes", "0 to 4, or true or false"),
    ("objects-thin-seconds", -1, "whole number from 0"),
    ("objects-history-mib", "much", "whole number from 0"),
]


def test_table_and_config_have_the_same_settings():
    assert {option.field for option in config.OPTIONS} == {field.name for field in fields(Config)}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_setting_that_nobody_gives_has_its_default(name):
    settings = config.load({}, None)

    assert getattr(settings, name) == DEFAULTS[name]


@pytest.mark.parametrize(("key", "given", "field", "wanted"), GOOD)
def test_a_good_value_is_taken(key, given, field, wanted):
    settings = config.load({key: given}, None)

    assert getattr(settings, field) == wanted


@pytest.mark.parametrize(("key", "given", "words"), BAD)
def test_a_bad_value_is_refused_in_one_line_that_names_its_setting(key, given, words):
    with pytest.raises(ConfigError, match=words) as refusal:
        config.load({key: given}, None)

    assert str(refusal.value).startswith(key)
    assert "\n" not in str(refusal.value)


def test_the_file_wins_over_defaults_and_a_flag_over_the_file(tmp_path):
    file = tmp_path / "edge.toml"
    file.write_text(
        'api = "127.0.0.1:1"\ndns = "127.0.0.1:2"\nbarrier-ms = 500\nedge-address = ["192.0.2.9"]\n'
    )

    settings = config.load({"api": "127.0.0.1:3", "dns": None, "edge-address": ("192.0.2.7",)}, file)

    assert (settings.api.port, settings.dns.port, settings.barrier_ms) == (3, 2, 500)
    assert settings.edge_address == (ip_address("192.0.2.7"),)


OBJECTS_FILES = [
    ('objects = ["a.b"]', ("a.b",), ()),
    ('[objects]\npaths = ["a.b"]', ("a.b",), ()),
    ('[objects]\npaths = ["a.b"]\n[objects.bindings]\nA = "%s"' % ("a" * 32), ("a.b",), (("A", "a" * 32),)),
    ('[objects.bindings]\nA = "%s"' % ("a" * 32), (), (("A", "a" * 32),)),
]


@pytest.mark.parametrize(("text", "sources", "bindings"), OBJECTS_FILES)
def test_objects_are_an_array_or_a_table_with_bindings(tmp_path, text, sources, bindings):
    file = tmp_path / "edge.toml"
    file.write_text(text)

    settings = config.load({}, file)

    assert (settings.objects, settings.objects_bindings) == (sources, bindings)


BAD_FILES = [
    (b"[objects]\nbinding = 1", "unknown setting objects.binding"),
    (b"api = ", "not TOML"),
    (b"\xff", "not TOML"),
    (b"#" * (config.CONFIG_BYTES_MAX + 1), "larger than"),
    (b"dns_workers = 1", "did you mean dns-workers"),
    (b"shape = 1", "unknown setting shape$"),
    (b"[api]\nhost = 1", "expected text"),
    (b"barrier-ms = 5", "whole number from 10"),
    (b"barrier-ms = 250.0", "whole number from 10"),
]


@pytest.mark.parametrize(("content", "words"), BAD_FILES)
def test_a_bad_file_is_refused(tmp_path, content, words):
    file = tmp_path / "edge.toml"
    file.write_bytes(content)

    with pytest.raises(ConfigError, match=words):
        config.load({}, file)


def test_in_a_cluster_no_class_is_apart(tmp_path):
    (tmp_path / "cluster.toml").write_text('[cluster]\ndatabase = "host=db"\n')
    flags = {"cluster": str(tmp_path), "objects": ("a.b",)}
    assert config.load(flags, None).objects == ("a.b",)

    with pytest.raises(ConfigError, match="has its slot; leave it out"):
        config.load(flags | {"objects-apart": ("Big",)}, None)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        config.load({}, tmp_path / "none.toml")


def test_certificates_need_an_address_where_they_are_served():
    assert config.load({"https": "127.0.0.1:0"}, None).tls_dir is None, "others are uploaded"
    with pytest.raises(ConfigError, match="tls-dir needs https, dot or doh"):
        config.load({"tls-dir": "certificates"}, None)


@pytest.mark.parametrize("key", ["dot", "doh"])
def test_dns_needs_no_folder_for_tls(key):
    assert config.load({key: "127.0.0.1:0"}, None).tls_dir is None, "others are uploaded"


def test_dns_may_be_all_that_certificates_are_for():
    assert config.load({"dot": "127.0.0.1:0", "tls-dir": "certificates"}, None).https is None


def test_transfers_over_tls_need_tls():
    with pytest.raises(ConfigError, match="transfer-tls needs dot"):
        config.load({"transfer-tls": True}, None)


def test_the_proxy_protocol_needs_somebody_who_is_believed():
    with pytest.raises(ConfigError, match="proxy-protocol needs trusted-proxies"):
        config.load({"proxy-protocol": True}, None)


PRIVATE = ["0.0.0.0/0", "::/0"]


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({}, PRIVATE),
        ({"api": "0.0.0.0:0"}, []),
        ({"http": "192.0.2.1:80"}, []),
        ({"https": "192.0.2.1:443", "tls-dir": "certificates"}, []),
        ({"origin-allow": ("10.0.0.0/8",)}, ["10.0.0.0/8"]),
        ({"http": "192.0.2.1:80", "origin-allow": ("10.0.0.0/8",)}, ["10.0.0.0/8"]),
    ],
)
def test_private_origins_are_allowed_by_default_only_while_everything_listens_on_loopback(given, allowed):
    assert list(map(str, config.load(given, None).origins_allowed)) == allowed


def test_a_wildcard_edge_is_no_address_to_answer():
    settings = config.load({}, None)

    wild = Config(
        **{f.name: getattr(settings, f.name) for f in fields(Config)} | {"http": Address("0.0.0.0", 80)}
    )

    assert wild.edge_addresses == ()


@pytest.mark.parametrize(
    ("given", "addresses"),
    [
        ({}, ["127.0.0.1"]),
        ({"dns": "192.0.2.53:53"}, ["192.0.2.53"]),
        ({"dns": "0.0.0.0:53"}, []),
        ({"dns": "[::]:53", "nameserver-address": ("192.0.2.53",)}, ["192.0.2.53"]),
        ({"dns": "10.0.0.1:53", "nameserver-address": ("192.0.2.53",)}, ["192.0.2.53"]),
    ],
)
def test_name_servers_are_where_dns_listens_unless_the_operator_says_where(given, addresses):
    assert list(map(str, config.load(given, None).nameserver_addresses)) == addresses


def test_a_node_reads_its_own_file_and_the_operators_wins(tmp_path):
    folder = tmp_path / "node"
    folder.mkdir()
    (folder / "cluster.toml").write_text('[cluster]\ndatabase = "host=a"\nregion = "ams"\nstale = "stop"\n')
    operators = tmp_path / "edgestead.toml"
    operators.write_text('[cluster]\nregion = "fra"\n')

    made = config.load({"cluster": str(folder)}, operators)

    assert (made.data_dir, made.cluster) == (folder, folder)
    assert (made.cluster_database, made.cluster_region, made.cluster_stale) == ("host=a", "fra", "stop")


@pytest.mark.parametrize(
    ("content", "flags", "words"),
    [
        (None, {}, "No such file"),
        ('api = "127.0.0.1:1"', {}, "api is not a setting of a node"),
        ("[cluster]\nleas-ms = 3", {}, "did you mean cluster.lease-ms"),
        ("[cluster]\nlease-ms = 3", {}, "cluster.lease-ms"),
        ("[cluster]\nwait = true", {}, "cluster invite --no-wait"),
        ("[cluster]", {"data-dir": "/elsewhere"}, "same folder"),
    ],
)
def test_a_bad_folder_of_a_node_is_refused(tmp_path, content, flags, words):
    if content is not None:
        (tmp_path / "cluster.toml").write_text(content)

    with pytest.raises(ConfigError, match=words):
        config.load({"cluster": str(tmp_path), **flags}, None)

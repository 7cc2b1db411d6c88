"""Programs that people use with an API of this kind, and how each is held to what it does with this server.

Owns  the rows, and the page docs/reference/clients.md, which is written from them:
      `.venv/bin/python -m tests.clients.conformance`.
Not   the programs (test_clients.py), their requests (replays.py, terraform.py), name servers (tests/server).

A row's verdicts are not written down: they follow from its evidence. A script of clients/ runs the program,
and `spec_code` is the refusal at which test_clients.py sees it stop in the default profile. A replay says
itself where it stops. A `test` passes in both profiles, or in the one that is `tried`.
"""

from pathlib import Path
from typing import NamedTuple

from tests.clients.replays import NEVER, REPLAYS, Replay

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "clients.md"
BLANK_IN_KEY, LABEL_WITH_DIGIT, QUOTES = 10030, 9000, -1
_RUN = "tests/clients/test_clients.py::test_client_does_its_main_job"
_REPLAY = "tests/rest/test_replays.py::test_a_program_gets_what_it_reads"
_PLANS = "tests/rest/test_terraform.py::test_no_configuration_differs_plan_after_plan"
_MACHINE = (
    "tests/clients/test_acme_programs.py::test_a_program_gets_its_certificate_and_leaves_nothing_behind"
)
_WITH = {
    BLANK_IN_KEY: "works with keys without blanks (10030)",
    LABEL_WITH_DIGIT: "works with labels that begin with a letter (9000)",
    QUOTES: "does not: it looks for the text that it wrote, and TXT gets quotes",
}
_UNTRIED = "no test of its own"
_ABSENT = "does not: the product is [not here](../differences.md#products-that-are-not-here)"


class Program(NamedTuple):
    """One of `script`, `replay` and `test` is its evidence. `how` and `tried` are for what only its test
    says.
    """

    name: str
    does: str
    script: str = ""
    replay: str = ""
    test: str = ""
    spec_code: int | None = None
    how: str = ""
    tried: str = ""  # in this profile alone


def _replayed(name: str, does: str) -> Program:
    return Program(name, does, replay=name)


PROGRAMS: tuple[Program, ...] = (
    Program("certbot-dns-cloudflare 5.8", "certificates", "certbot_dns01"),
    Program("acme-dns-01-cloudflare 1.2", "certificates", "node_sdk2_acme", spec_code=LABEL_WITH_DIGIT),
    Program("Python SDK 5.9: DNS", "records", "py_sdk_dns", spec_code=LABEL_WITH_DIGIT),
    Program("Python SDK 5.9: rulesets", "rules", "py_sdk_rulesets"),
    Program("Python SDK 5.9: key-value", "values", "py_sdk_kv", spec_code=BLANK_IN_KEY),
    Program("Python SDK 5.9: errors", "credentials, refusals", "py_sdk_auth"),
    Program("cloudflare 2.19 (Python)", "records, values", "cf2_lib", spec_code=LABEL_WITH_DIGIT),
    Program("Node SDK 7.3", "rules", "node_sdk_rulesets"),
    Program("cloudflare 2.9 (Node)", "records", "node_sdk2_acme", spec_code=LABEL_WITH_DIGIT),
    Program("octodns-cloudflare 1.2", "zones as files", "octodns_newzone"),
    Program(
        "octodns-edgestead",
        "zones as files",
        test="tests/clients/test_octodns.py::test_a_zone_file_leaves_nothing_to_plan",
        how="run",
    ),
    Program("wrangler 4.86 (kv)", "values", "wrangler_kv", spec_code=BLANK_IN_KEY),
    Program("dns-lexicon 3.25", "records", "lexicon_cli", spec_code=LABEL_WITH_DIGIT),
    Program("ddclient", "own address", "ddclient_ddns", spec_code=LABEL_WITH_DIGIT),
    Program("cloudflare-dyndns 5.4", "own address", "cloudflare_dyndns"),
    Program("cf-ddns 1.1", "own address", "cf_ddns_pypi"),
    Program("cloudflare-ddns 1.4 (PyPI)", "own address", "cf_ddns_pypi"),
    Program("pycfdns 3.0 (Home Assistant)", "own address", "pycfdns_async", spec_code=LABEL_WITH_DIGIT),
    Program("cloudflare-cli 5.1", "records, settings", "cfcli_npm"),
    Program("dnslink-cloudflare 3.0", "records", "cfcli_npm"),
    Program("cf-mcp 0.1", "records", "cf_mcp_cli"),
    Program("workers-kv-py 1.2", "values", "kv_pylibs"),
    Program("cloudlare-kv 1.0", "values", "kv_pylibs"),
    Program("cfkv 1.1", "values", "kv_pylibs"),
    Program("Terraform, provider 5", "everything as code", test=_PLANS, how="replayed"),
    Program("OpenTofu, provider 5", "everything as code", test=_PLANS, how="replayed"),
    Program("Pulumi, by the same provider", "everything as code", test=_PLANS, how="replayed"),
    _replayed("cert-manager", "certificates"),
    _replayed("lego", "certificates"),
    _replayed("Traefik", "certificates"),
    _replayed("Caddy", "certificates"),
    _replayed("acme.sh", "certificates"),
    _replayed("Proxmox VE", "certificates"),
    _replayed("Posh-ACME", "certificates"),
    _replayed("win-acme", "certificates"),
    _replayed("dehydrated", "certificates"),
    _replayed("external-dns", "records of services"),
    _replayed("DNSControl", "zones as code"),
    _replayed("flarectl", "zones"),
    _replayed("cloudflare-go 0", "records, zones"),
    _replayed("Ansible", "records"),
    _replayed("inadyn", "own address"),
    _replayed("ddns-go", "own address"),
    _replayed("favonia/cloudflare-ddns", "own address"),
    _replayed("OPNsense", "own address"),
    _replayed("pfSense", "own address"),
    _replayed("OpenWrt ddns-scripts", "own address"),
    _replayed("qdm12/ddns-updater", "own address"),
    _replayed("fail2ban", "bans"),
    Program(
        "CrowdSec's custom bouncer with access rules",
        "bans",
        test="tests/rest/test_access_rules.py::test_crowdsecs_action_by_rules_bans_for_all_zones_and_unbans",
        how="replayed",
        tried="spec",
    ),
    _replayed("scripts for real_ip of nginx", "the edge's addresses"),
    _replayed("cloudflared", "tunnels"),
    _replayed("CrowdSec's bouncer with lists", "bans by lists"),
    _replayed("ingress controllers of tunnels", "tunnels"),
    Program(
        "nsupdate",
        "records, RFC 2136",
        test="tests/server/test_updates.py::test_what_nsupdate_was_told_is_done_is_answered",
        how="run",
        tried="spec",
    ),
    *(
        Program(name, does, test=_MACHINE, how="run", tried="clients")
        for name, does in (
            ("lego 4.9 (Debian)", "certificates, RFC 2136"),
            ("dehydrated 0.7 (Debian), a hook", "certificates"),
            ("uacme 1.7 (Debian), a hook", "certificates"),
            ("certbot 2.1 (Debian), a hook", "certificates"),
            ("certbot-dns-rfc2136 2.1 (Debian)", "certificates, RFC 2136"),
            ("acme-tiny 5.0 (Debian)", "certificates, by a page"),
        )
    ),
    Program(
        "external-dns with RFC 2136",
        "records of services",
        test="tests/server/test_updates.py::test_the_requests_of_external_dns",
        how="replayed",
        tried="spec",
    ),
    Program(
        "Kea's D2 2.2 (Debian)",
        "names of DHCP leases, RFC 2136",
        test="tests/server/test_updates.py::test_leases_of_kea_are_names_until_they_end",
        how="run",
        tried="spec",
    ),
    Program(
        "NSD as a secondary",
        "transfers",
        test="tests/server/test_tsig.py::test_stock_secondaries_follow_with_a_key_and_get_nothing_without",
        how="run",
        tried="spec",
    ),
    Program(
        "Knot DNS and BIND as secondaries",
        "transfers, catalog zones",
        test="tests/server/test_catalogs.py::test_secondaries_follow_zones_that_come_change_and_go_untouched",
        how="run",
        tried="spec",
    ),
)
SCRIPTS = sorted({one.script for one in PROGRAMS if one.script})


def scripts_refused(code: int) -> list[str]:
    """The scripts whose program stops at a code in the default profile."""
    return sorted({one.script for one in PROGRAMS if one.script and one.spec_code == code})


def evidence_of(program: Program) -> str:
    """The test that holds the program to its row."""
    if program.test:
        return program.test
    name, parameter = (_RUN, program.script) if program.script else (_REPLAY, program.replay)
    return f"{name}[{parameter}]"


def verdicts(program: Program) -> tuple[str, str]:
    """In the default profile, and with `--profile clients`."""
    if program.tried:
        return ("works", _UNTRIED) if program.tried == "spec" else (_UNTRIED, "works")
    replay = REPLAYS.get(program.replay, Replay(()))
    if program.replay in NEVER:
        return _ABSENT, _ABSENT
    code = replay.spec if program.replay else program.spec_code
    return ("works" if code is None else _WITH[code]), "works"


_HEAD = """# Programs that work with it

<!-- Written by tests/clients/conformance.py; change the table there instead. -->

What a program has to be told is the address of the API (`…/client/v4`), and a token. Each verdict follows
from a test, by the name that stands beside it:

* *run*: the program itself, unmodified and in the version named, does its main job against a server;
* *replayed*: its requests, written down from its documentation, get the answers that it reads. A program that
  asks for something else in another version is not noticed by that.

Take `--profile clients` if any of yours is *works with* or *does not* in the default profile, which is as
strict as the specification ([what it relaxes](../differences.md)). What a configuration of yours would meet
is said before: `edgecli doctor --client terraform main.tf`, and so for octodns, external-dns, cert-manager,
wrangler, certbot, lego and fail2ban. Spellings that differ are in
[what is sent, and what is answered](sent-and-answered.md).

Terraform's provider is held to 66 configurations, each planned three times: none differs but for a short name
and for an IPv6 address in a long spelling, as with the hosted service, and in the default profile for a TXT
without quotes.

| program | for | evidence | default profile | `--profile clients` | test |
| --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The reference page."""
    return _HEAD + "\n".join(map(_line, PROGRAMS)) + "\n"


def _line(program: Program) -> str:
    how = program.how or ("run" if program.script else "replayed")
    spec, clients = verdicts(program)
    file, _, test = evidence_of(program).partition("::")
    return f"| {program.name} | {program.does} | {how} | {spec} | {clients} | `{file}` `{test}` |"


if __name__ == "__main__":
    PAGE.write_text(page())

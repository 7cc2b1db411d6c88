"""The table of settings.

Owns  each setting's key, parser, default and words.
Not   where a value comes from.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from edgestead import config_values as values
from edgestead.config_alerts import receiver
from edgestead.model.quotas import RECORDS_PER_ZONE_MAX


class Option(NamedTuple):
    """One setting. `default` is text as on the command line; None means that there is no value.

    `flag` False is a key of the file alone. `many` may be repeated. `fallback` words a default that is no
    text. A `switch` is a flag without a value, and true or false in the file.
    """

    key: str
    metavar: str
    parse: Callable[[object], Any]
    default: str | tuple[str, ...] | bool | None
    help: str
    flag: bool = True
    many: bool = False
    fallback: str = ""
    switch: bool = False

    @property
    def field(self) -> str:
        return self.key.replace("-", "_").replace(".", "_")


OPTIONS: tuple[Option, ...] = (
    Option(
        "data-dir",
        "DIR",
        values.path,
        None,
        "Folder that holds everything the server keeps. One server at a time uses it.",
        fallback="what `EDGE_DATA_DIR` says, else `edgestead` in the platform's folder for user data",
    ),
    Option("api", "HOST:PORT", values.address, "127.0.0.1:8787", "Where the REST API listens (TCP)."),
    Option("dns", "HOST:PORT", values.address, "127.0.0.1:5300", "Where DNS listens (UDP and TCP)."),
    Option("http", "HOST:PORT", values.address, "127.0.0.1:8080", "Where the edge proxy listens."),
    Option(
        "https",
        "HOST:PORT",
        values.address,
        None,
        "Where the edge proxy listens for TLS: with the certificates of `tls-dir`, and those that it keeps.",
        fallback="nowhere",
    ),
    Option(
        "tls-dir",
        "DIR",
        values.path,
        None,
        "Folder of certificates and keys (PEM) by host name; read again when it changes.",
        fallback="none",
    ),
    Option(
        "acme",
        "EMAIL[,DIRECTORY]",
        values.acme,
        None,
        "Have certificates issued for every zone with proxied names, by Let's Encrypt or by the authorities"
        " whose ACME directories follow: the next one is asked where one fails. You agree to their terms.",
        fallback="nobody: certificates are files, or uploaded",
    ),
    Option(
        "acme-ca",
        "FILE",
        values.path,
        None,
        "Certificates (PEM) that vouch for the directories of `acme`, in the place of the system's.",
        fallback="the system's",
    ),
    Option(
        "dot",
        "HOST:PORT",
        values.address,
        None,
        "Where DNS listens for TLS (RFC 7858), by convention port 853.",
        fallback="nowhere",
    ),
    Option(
        "doh",
        "HOST:PORT",
        values.address,
        None,
        "Where DNS listens for HTTPS (RFC 8484), at `/dns-query` over HTTP/1.1.",
        fallback="nowhere",
    ),
    Option(
        "edge-workers", "N|auto", values.workers, "1", "Processes of the edge proxy; auto is one per core."
    ),
    Option(
        "origin-port",
        "N",
        values.whole(1, 65_535),
        None,
        "Port that origins are asked at.",
        fallback="80, and 443 for TLS",
    ),
    Option(
        "origin-allow",
        "CIDR",
        values.prefix,
        (),
        "Loopback and private addresses that may be origins.",
        many=True,
        fallback="all of them while `api`, `http` and `https` are loopback addresses, else none",
    ),
    Option(
        "origin-ca",
        "FILE",
        values.path,
        None,
        "Certificates (PEM) that vouch for origins beside the system's, for the zone setting `ssl` strict.",
        flag=False,
        fallback="the system's alone",
    ),
    Option(
        "trusted-proxies",
        "CIDR",
        values.prefix,
        (),
        "Proxies in front of the edge: what they say of their clients' addresses counts.",
        many=True,
        fallback="nobody",
    ),
    Option(
        "proxy-protocol",
        "true|false",
        values.switch,
        False,
        "Connections from `trusted-proxies` begin with a PROXY header, version 1 or 2.",
        flag=False,
        fallback="`false`",
        switch=True,
    ),
    Option(
        "http-connections-per-address",
        "N",
        values.whole(1, 8_192),
        "1024",
        "Connections to one edge process from one address, or one IPv6 network of 64 bits; `trusted-proxies`"
        " are not counted.",
        flag=False,
    ),
    Option(
        "edge-address",
        "IP",
        values.ip,
        (),
        "Address that proxied names answer, IPv4 or IPv6.",
        many=True,
        fallback="the host of `http` (127.0.0.1), unless that is a wildcard",
    ),
    Option(
        "nameserver",
        "HOST",
        values.host_name,
        ("ns1.edge.internal", "ns2.edge.internal"),
        "Name server that new zones name as theirs.",
        many=True,
    ),
    Option(
        "nameserver-address",
        "IP",
        values.ip,
        (),
        "Address that the names of `nameserver` answer, where no zone of this server holds them.",
        many=True,
        fallback="the host of `dns` (127.0.0.1); none while that is a wildcard",
    ),
    Option(
        "profile",
        "spec|clients",
        values.profile,
        "spec",
        "`spec` follows the specification to the letter; `clients` bends where real clients need it.",
    ),
    Option(
        "as-of",
        "YYYY-MM-DD",
        values.day,
        None,
        "Day whose behaviour the API shows: shapes of data as they were then.",
        fallback="today",
    ),
    Option(
        "allow-as-of",
        "true|false",
        values.switch,
        False,
        "Let each request choose that day with its header `Edge-As-Of`.",
        fallback="`false`",
        switch=True,
    ),
    Option(
        "dns-workers",
        "N|auto",
        values.workers,
        "1",
        "Processes that answer DNS over UDP; auto is one per core.",
    ),
    Option(
        "dns-rate",
        "N",
        values.whole(0, 1_000_000),
        "0",
        "Answers of one kind that one network (/24, /56) gets over UDP in a second, loopback excepted; 0 is"
        " no limit.",
    ),
    Option(
        "transfer-to",
        "CIDR",
        values.prefix,
        (),
        "Addresses that may fetch whole zones (AXFR) and their changes (IXFR) without a TSIG key.",
        many=True,
        fallback="nobody",
    ),
    Option(
        "transfer-tls",
        "true|false",
        values.switch,
        False,
        "Answer those only over TLS (RFC 9103), at `dot`: over TCP anybody on the way can read the zone.",
        fallback="`false`",
        switch=True,
    ),
    Option(
        "notify",
        "[KEY@]HOST:PORT",
        values.signed_target,
        (),
        "Secondary that is told of each change of a zone (NOTIFY), signed with the TSIG key of that name.",
        many=True,
        fallback="nobody",
    ),
    Option(
        "objects",
        "PATH",
        values.objects_source,
        (),
        "Classes of stateful objects: FILE.py, a folder of such files, or a module.",
        many=True,
        fallback="none: there are no stateful objects",
    ),
    Option(
        "objects-http", "HOST:PORT", values.address, "127.0.0.1:8788", "Where stateful objects are called."
    ),
    Option(
        "objects-workers",
        "N|auto",
        values.workers,
        "auto",
        "Processes that run stateful objects; auto is one per core.",
    ),
    Option(
        "no-alarms",
        "true|false",
        values.switch,
        False,
        "Run no alarm of a stateful object: for mending one that ends its process. They stay as they are.",
        fallback="`false`",
        switch=True,
    ),
    Option(
        "objects.bindings",
        "TABLE",
        values.bindings,
        (),
        "Key-value namespaces that objects reach as `self.env.NAME`: the table `[objects.bindings]` with"
        ' lines `NAME = "namespace id"`. `objects` is then the key `paths` of the table `[objects]`.',
        flag=False,
        fallback="none",
    ),
    Option(
        "objects-blocked-seconds",
        "N",
        values.whole(1, 600),
        "1",
        "How long an object may keep its process from everything else before that process is ended, and the"
        " object blamed. What the process waits for a processor or a disk does not count, unless others wait"
        " for twice as long and an eighth of the limit was its own.",
        flag=False,
    ),
    Option(
        "objects-memory-mib",
        "N|auto",
        values.mebibytes,
        "auto",
        "MiB that a process of stateful objects may grow to before it is ended, and the object blamed under"
        " which it grew. auto shares half of the memory that there is among them.",
        flag=False,
    ),
    Option(
        "objects-apart",
        "CLASS",
        values.text,
        (),
        "Classes that have one more process to themselves: what blocks or grows there is felt by no other.",
        flag=False,
        many=True,
        fallback="none",
    ),
    Option(
        "objects-contain",
        "true|false",
        values.switch,
        True,
        "Give a class a process of its own when its code ends one that others share, for as long as it does.",
        fallback="`true`",
        flag=False,
    ),
    Option(
        "objects-apart-nice",
        "N",
        values.whole(0, 19),
        "10",
        "By how much the processor time of classes that are apart gives way to all else, as `nice` has it.",
        flag=False,
    ),
    Option(
        "objects-spare",
        "true|false",
        values.switch,
        True,
        "Keep one more process that has imported the classes, and takes the place of one that ends.",
        fallback="`true`",
        flag=False,
    ),
    Option(
        "objects-thin-seconds",
        "N",
        values.whole(0, 86_400),
        "10",
        "Of an object's commits that are older than a day, one in so many seconds stays to go back to;"
        " 0 keeps every one.",
        flag=False,
    ),
    Option(
        "objects-history-mib",
        "N",
        values.whole(0, 1 << 30),
        "16384",
        "MiB that the past of the objects of one process may take; beyond that the oldest goes."
        " 0 is no limit.",
        flag=False,
    ),
    Option(
        "resolver",
        "HOST:PORT",
        values.target,
        None,
        "Recursive resolver that is asked for the targets of flattened aliases.",
        fallback="those of the system (/etc/resolv.conf)",
    ),
    Option(
        "ready-file",
        "FILE",
        values.path,
        None,
        "Written (0600, JSON) when everything answers, removed at the end.",
        fallback="none is written",
    ),
    Option(
        "crs",
        "PATH",
        values.path,
        None,
        "OWASP Core Rule Set that is the managed ruleset: a folder, or a release archive.",
        fallback="the system's package modsecurity-crs; without it there is no managed ruleset",
    ),
    Option(
        "managed-ruleset-id",
        "ID",
        values.identifier,
        None,
        "Identifier of the managed ruleset.",
        flag=False,
        fallback="the well-known one, so that existing configurations apply",
    ),
    Option(
        "anomaly-rule-id",
        "ID",
        values.identifier,
        None,
        "Identifier of the managed ruleset's last rule, whose overrides set threshold and action.",
        flag=False,
        fallback="the well-known one",
    ),
    Option(
        "managed-response-bytes",
        "N",
        values.whole(0, 524_288),
        "0",
        "Bytes of an answer's body, where it is text, that managed rules inspect before the client gets"
        " any of it; 0: no answer is inspected.",
        flag=False,
    ),
    Option(
        "api-quota",
        "N",
        values.whole(0, 999_999_999),
        "0",
        "Requests to the API that one user may make in five minutes; 0 is no limit.",
    ),
    Option(
        "api-connections-per-address",
        "N",
        values.whole(1, 2_048),
        "1024",
        "Connections to the API, and to each process of stateful objects, from one address, or one IPv6"
        " network of 64 bits.",
        flag=False,
    ),
    Option(
        "api-guesses",
        "N",
        values.whole(0, 999_999_999),
        "60",
        "Unknown credentials that one address, or IPv6 network of 64 bits, may send in a minute to the API,"
        " and to each process of stateful objects, until more are answered 429; 0 is no limit. Good"
        " credentials are always taken.",
        flag=False,
    ),
    Option(
        "metrics-open",
        "true|false",
        values.switch,
        False,
        "Answer `/metrics` of the API to whoever asks, also where the API listens on more than loopback; else"
        " it takes a token with *Metrics Read* there.",
        flag=False,
        fallback="`false`",
        switch=True,
    ),
    Option(
        "no-dashboard",
        "true|false",
        values.switch,
        False,
        "Serve no pages for people at the API's address. They are served only while that is a loopback"
        " address, since it has no TLS.",
        fallback="`false`",
        switch=True,
    ),
    Option(
        "dashboard-name",
        "NAME",
        values.name_or_ip,
        (),
        "Name or address by which browsers may ask for the dashboard, behind a proxy with TLS that passes"
        " `Host` on. By any other name it is refused, so that no other site's page can read it.",
        many=True,
        fallback="loopback's names and addresses alone",
    ),
    Option(
        "dns-identity",
        "TEXT",
        values.dns_text,
        "",
        "What the server calls itself to those who ask by NSID (RFC 5001) or `id.server` (RFC 4892).",
        flag=False,
        fallback="none: NSID is left out, `id.server` is refused",
    ),
    Option(
        "dns-version",
        "TEXT",
        values.dns_text,
        "edgestead",
        "What `version.server` and `version.bind` answer; empty refuses them.",
        flag=False,
    ),
    Option(
        "disk-reserve-mib",
        "N",
        values.whole(0, 1 << 20),
        "32",
        "MiB that are kept on the data folder's disk for deletions, revocations and starts when it is full;"
        " additions are refused before. 0 keeps none.",
        flag=False,
    ),
    Option(
        "quota-zones",
        "N",
        values.whole(0, 1_000_000),
        "0",
        "Zones that one account may have; 0 is no limit.",
        flag=False,
    ),
    Option(
        "quota-zone-records",
        "N",
        values.whole(1, RECORDS_PER_ZONE_MAX),
        str(RECORDS_PER_ZONE_MAX),
        "Records that one zone may have.",
        flag=False,
    ),
    Option(
        "quota-account-kv-mib",
        "N",
        values.whole(0, 1 << 30),
        "0",
        "MiB of keys, values and metadata that all namespaces of an account may hold; 0 is no limit.",
        flag=False,
    ),
    Option(
        "quota-namespace-kv-mib",
        "N",
        values.whole(0, 1 << 30),
        "0",
        "MiB of keys, values and metadata that one namespace may hold; 0 is no limit.",
        flag=False,
    ),
    Option(
        "barrier-ms",
        "N",
        values.whole(10, 60_000),
        "250",
        "Time without progress on a change after which a serving process is ended so that the write goes on.",
        flag=False,
    ),
    Option(
        "silence-seconds",
        "N",
        values.whole(3, 600),
        "10",
        "How long a process may give no sign of life before it is ended and started again: a twentieth of it"
        " if it does nothing at all meanwhile. One of objects has `objects-blocked-seconds`, and half as much"
        " again if it computes.",
        flag=False,
    ),
    Option(
        "log-level",
        "debug|info|warning|error",
        values.log_level,
        "info",
        "The least important lines that are logged; `info` has one for each request to the API.",
    ),
    Option(
        "log-form",
        "auto|text|json",
        values.log_form,
        "auto",
        "How lines of the log look: `text` for people, `json` for programs; `auto` is text on a terminal.",
    ),
    Option(
        "log-file",
        "FILE",
        values.path,
        None,
        "Where the log goes, as JSON lines (0600). Old files get `.1`, `.2` and so on behind their name.",
        flag=False,
        fallback="standard error",
    ),
    Option(
        "log-file-bytes",
        "N",
        values.whole(1 << 16, 1 << 40),
        "67108864",
        "How long the log's file may become before a new one is begun.",
        flag=False,
    ),
    Option(
        "log-files",
        "N",
        values.whole(1, 1_000),
        "5",
        "How many old files of the log are kept.",
        flag=False,
    ),
    Option(
        "drain-seconds",
        "N",
        values.whole(1, 600),
        "10",
        "How long each step of a shutdown may take before what is left of it is killed.",
        flag=False,
    ),
    Option(
        "history-days",
        "N",
        values.whole(1, 36_500),
        "90",
        "How long a zone's history is kept.",
        flag=False,
    ),
    Option(
        "history-rows",
        "N",
        values.whole(1, 10_000_000),
        "10000",
        "How many changes of single records a zone's history keeps; the newest change is always kept whole.",
        flag=False,
    ),
    Option(
        "audit-days",
        "N",
        values.whole(1, 36_500),
        "365",
        "How long the audit log is kept: who changed what, and from where.",
        flag=False,
    ),
    Option(
        "audit-mib",
        "N",
        values.whole(1, 1 << 20),
        "256",
        "MiB that the audit log may take; beyond that the oldest goes.",
        flag=False,
    ),
    Option(
        "alert",
        "TABLE",
        receiver,
        (),
        "Who is sent alerts: a table `[[alert]]` for each receiver, with the keys below.",
        flag=False,
        many=True,
        fallback="none: nobody is sent any",
    ),
    Option(
        "backup-hours",
        "N",
        values.whole(0, 100_000),
        "0",
        "Hours after the last successful `edgecli backup` from which on the server's health has a warning;"
        " 0 expects no backup.",
        flag=False,
    ),
)

"""The rule set's public regression tests, read from a release's folder: requests, and the rules they expect.

What a reader of such files has to do beside YAML: complete the headers that a real client would send, encode
forms that are not, give multipart bodies line ends of the network. Format: go-ftw's test files, version 2.
"""

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote_plus

from edgestead.waf.transaction import Request

VARIABLE = "EDGESTEAD_TEST_CRS"
RELEASES = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
FOLDERS = [path for path in RELEASES if (path / "tests/regression/tests").is_dir()]
# Settings under which the tests are meant to run.
SETTINGS = {
    b"arg_name_length": b"100",
    b"arg_length": b"400",
    b"total_arg_length": b"64000",
    b"max_num_args": b"255",
    b"max_file_size": b"64100",
    b"combined_file_sizes": b"65535",
    b"crs_validate_utf8_encoding": b"1",
}
# Those of the response phases need an origin that answers as it is told (`reflected`).
REQUEST_TESTS, ALL_TESTS = "REQUEST-*/*.yaml", "*/*.yaml"


class Case(NamedTuple):
    """One stage. `found` and `absent` are rule numbers; `status` is expected of whoever answers.

    `raw` is the request as bytes where the test is written so; it may be none that can be read.
    """

    name: str
    request: Request | None
    raw: bytes
    found: frozenset[int]
    absent: frozenset[int]
    status: int | None

    @property
    def host(self) -> bytes:
        """What its Host header names, without a port."""
        headers = () if self.request is None else self.request.headers
        value = next((value for name, value in headers if name.lower() == b"host"), b"")
        return value.partition(b":")[0]

    def on_wire(self, hosts: dict[bytes, bytes]) -> bytes:
        """The request in bytes, with another Host where `hosts` has one for it."""
        host = hosts.get(self.host, self.host)
        if self.raw or self.request is None:
            return self.raw.replace(b"Host: " + self.host + b"\r\n", b"Host: " + host + b"\r\n")
        asked = self.request
        headers = [
            (name, host + value[len(self.host) :] if name.lower() == b"host" else value)
            for name, value in asked.headers
        ]
        lines = [b" ".join(filter(None, (asked.method, asked.target, asked.version)))]
        lines += [name + b": " + value for name, value in headers]
        return b"\r\n".join([*lines, b"", b""]) + asked.body

    def failure(self, ids: set[int], status: int) -> str:
        """Why the outcome is not as expected, empty when it is."""
        if self.status not in (None, 200) and status == self.status:
            return ""
        if missing := self.found - ids:
            return f"missing {sorted(missing)}"
        if unwanted := self.absent & ids:
            return f"unwanted {sorted(unwanted)}"
        return ""


class Target(Protocol):
    """Whoever is tested: in process, or through the proxy."""

    def send(self, request: Request) -> tuple[set[int], int]:
        """(numbers of the rules that matched, status of the answer, 200 for a request that passed)."""


def cases(folder: Path, tests: str = REQUEST_TESTS) -> Iterator[Case]:
    """All stages of the tests below a release's folder."""
    import yaml

    for path in sorted((folder / "tests/regression/tests").glob(tests)):
        read = yaml.safe_load(path.read_text("utf-8")) or {}
        rule = read.get("rule_id", path.stem)
        for test in read.get("tests", ()):
            for stage in test["stages"]:
                yield _case(f"{rule}-{test['test_id']}", stage)


def _case(name: str, stage: dict[str, Any]) -> Case:
    output = stage.get("output", {})
    log = output.get("log", {})
    return Case(
        name,
        _request(stage["input"]),
        base64.b64decode(stage["input"].get("encoded_request", "")),
        frozenset(log.get("expect_ids", ())),
        frozenset(log.get("no_expect_ids", ())),
        output.get("status"),
    )


def _request(given: dict[str, Any]) -> Request | None:
    if "encoded_request" in given:
        return _raw(base64.b64decode(given["encoded_request"]))
    headers = [(str(k).encode(), str(v).encode()) for k, v in (given.get("headers") or {}).items()]
    names = {name.lower(): value for name, value in headers}
    body = str(given.get("data", "")).encode()
    kind = names.get(b"content-type", b"")
    if given.get("autocomplete_headers", True):
        if body and not kind:
            kind = b"application/x-www-form-urlencoded"
            headers.append((b"Content-Type", kind))
        if kind.startswith(b"application/x-www-form-urlencoded") and b"%" not in body and b"+" not in body:
            body = _form(body)
        if b"connection" not in names:
            headers.append((b"Connection", b"close"))
    if kind.lower().startswith(b"multipart/"):
        body = body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    if (
        body
        and given.get("autocomplete_headers", True)
        and not names.keys() & {b"content-length", b"transfer-encoding"}
    ):
        headers.append((b"Content-Length", b"%d" % len(body)))
    return Request(
        method=str(given.get("method", "GET")).encode(),
        target=str(given.get("uri", "/")).encode(),
        version=str(given.get("version", "HTTP/1.1")).encode(),
        headers=tuple(headers),
        body=body,
    )


def _form(body: bytes) -> bytes:
    """A form that somebody wrote as text, encoded."""
    pairs = (pair.partition(b"=") for pair in body.split(b"&"))
    return b"&".join(quote_plus(k).encode() + e + quote_plus(v).encode() for k, e, v in pairs)


def _raw(text: bytes) -> Request | None:
    """A request as bytes; None for what is none."""
    head, _, body = text.partition(b"\r\n\r\n")
    line, *lines = head.split(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3:
        return None
    headers = tuple((name, value.strip()) for name, _, value in (header.partition(b":") for header in lines))
    return Request(method=words[0], target=words[1], version=words[2], headers=headers, body=body)

"""ModSecurity as a witness: what it makes of a value or a request, in bytes.

The library tells what it saw by log messages only, and only in UTF-8; so the witness rules encode every value
in hexadecimal before they log it.
"""

from collections.abc import Iterable, Sequence

import libmodsecurity

Headers = Sequence[tuple[str, str]]
_SETUP = """
SecRuleEngine DetectionOnly
SecRequestBodyAccess On
SecArgumentsLimit 1000
SecRequestBodyJsonDepthLimit 64
SecRule REQUEST_HEADERS:Content-Type "@rx (?i)^application/(?:[a-z0-9.-]+[+])?json" \
    "id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON"
SecRule REQUEST_HEADERS:Content-Type "@rx (?i)^(?:application(?:/soap[+]|/)|text/)xml" \
    "id:2,phase:1,pass,nolog,ctl:requestBodyProcessor=XML"
"""


class Peer:
    """One set of rules, run on many requests. `data` are the log messages by rule id."""

    def __init__(self, rules: str) -> None:
        self._engine = libmodsecurity.ModSecurity()
        self._engine.set_log_callback(lambda line: None)
        self._rules = libmodsecurity.RulesSet()
        if self._rules.load(_SETUP + rules) is False or self._rules.get_parser_error():
            raise ValueError(self._rules.get_parser_error())

    def run(
        self, uri: str = "/", headers: Headers = (), body: bytes = b"", method: str = "POST"
    ) -> dict[int, list[str]]:
        transaction = libmodsecurity.Transaction(self._engine, self._rules)
        transaction.process_connection("192.0.2.1", 40_000, "192.0.2.2", 80)
        transaction.process_uri(uri, method, "1.1")
        for name, value in headers:
            transaction.add_request_header(name, value)
        transaction.process_request_headers()
        if body:
            transaction.append_request_body(body)
        transaction.process_request_body()
        found: dict[int, list[str]] = {}
        for message in transaction.get_rule_messages():
            found.setdefault(message.rule_id, []).append(message.data)
        return found


def transformer(chain: str) -> "Peer":
    """A peer whose `transformed` puts values through a comma-separated chain of transformations."""
    steps = ",".join(f"t:{name}" for name in (*chain.split(","), "hexEncode") if name)
    actions = f"id:7,phase:2,pass,log,{steps},logdata:'%{{MATCHED_VAR}}'"
    return Peer(f'SecRule REQUEST_BODY "@unconditionalMatch" "{actions}"')


def transformed(peer: Peer, value: bytes) -> bytes:
    return bytes.fromhex(peer.run(body=value)[7][0])


def matcher(operator: str) -> Peer:
    return Peer(f'SecRule REQUEST_BODY "{operator}" "id:8,phase:2,pass,log,t:none"')


def matches(peer: Peer, value: bytes) -> bool:
    return 8 in peer.run(body=value)


def viewer(collections: Iterable[str]) -> Peer:
    """A peer that logs each of the collections: rule 100 the first, 101 the second, and so on."""
    rules = []
    for number, name in enumerate(collections, 100):
        rules.append(
            f'SecRule {name} "@unconditionalMatch" "id:{number + 900},phase:2,pass,nolog,t:none,t:hexEncode,'
            f"setvar:'tx.seen{number}=%{{tx.seen{number}}} %{{MATCHED_VAR}}'\"\n"
            f'SecRule TX:seen{number} "@unconditionalMatch" "id:{number},phase:2,pass,log,t:none,'
            "logdata:'%{MATCHED_VAR}'\""
        )
    return Peer("\n".join(rules))


def seen(peer: Peer, collections: Sequence[str], **request: object) -> dict[str, list[bytes]]:
    """What `viewer`'s peer saw: the values of each collection, in the order of the request."""
    found = peer.run(**request)  # type: ignore[arg-type]
    return {
        name: [bytes.fromhex(text) for text in found.get(number, [""])[0].split(" ")[1:]]
        for number, name in enumerate(collections, 100)
    }

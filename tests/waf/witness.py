"""A whole rule set in libmodsecurity: which of its rules match a request."""

from pathlib import Path

import libmodsecurity

from edgestead.waf.transaction import Request

RULES, SETUP = Path("/usr/share/modsecurity-crs/rules"), Path("/etc/modsecurity/crs/crs-setup.conf")
# The built-in choice of body processors, which its recommended configuration makes by such rules.
_BEFORE = """
SecRuleEngine DetectionOnly
SecRequestBodyAccess On
SecArgumentsLimit 1000
SecRequestBodyJsonDepthLimit 64
SecRule REQUEST_HEADERS:Content-Type "@rx (?i)^application/(?:[a-z0-9.-]+[+])?json" \
    "id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON"
SecRule REQUEST_HEADERS:Content-Type "@rx (?i)^(?:application(?:/soap[+]|/)|text/)xml" \
    "id:2,phase:1,pass,nolog,ctl:requestBodyProcessor=XML"
"""
_NOT_LOADED = "REQUEST-910-"  # asks a database of places, with which the library is not built


class Witness:
    """One rule set at one paranoia level."""

    def __init__(self, level: int, rules: Path = RULES, setup: Path = SETUP) -> None:
        self._engine = libmodsecurity.ModSecurity()
        self._engine.set_log_callback(lambda line: None)
        self._rules = libmodsecurity.RulesSet()
        levels = (
            "paranoia_level",
            "executing_paranoia_level",
            "blocking_paranoia_level",
            "detection_paranoia_level",
        )
        chosen = ",".join(f"setvar:tx.{name}={level}" for name in levels)
        self._load_text(_BEFORE)
        self._load_file(setup)
        self._load_text(f'SecAction "id:3,phase:1,pass,nolog,t:none,{chosen}"')
        for path in sorted(rules.glob("*.conf")):
            if not path.name.startswith(_NOT_LOADED):
                self._load_file(path)

    def _load_text(self, text: str) -> None:
        if self._rules.load(text) < 0:
            raise ValueError(self._rules.get_parser_error())

    def _load_file(self, path: Path) -> None:
        if self._rules.load_from_uri(str(path)) < 0:
            raise ValueError(self._rules.get_parser_error())

    def matches(self, request: Request) -> set[int]:
        """Numbers of the rules of the request phases that match and say so."""
        return {message.rule_id for message in self._transaction(request).get_rule_messages()}

    def _transaction(self, request: Request) -> libmodsecurity.Transaction:
        transaction = libmodsecurity.Transaction(self._engine, self._rules)
        transaction.process_connection(
            request.client_address, request.client_port, request.server_address, request.server_port
        )
        transaction.process_uri(request.target, request.method, request.version.partition(b"/")[2])
        for name, value in request.headers:
            transaction.add_request_header(name, value)
        transaction.process_request_headers()
        if request.body:
            transaction.append_request_body(request.body)
        transaction.process_request_body()
        return transaction

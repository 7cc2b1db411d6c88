"""The seams of the room: what comes in, how values are held, what comes out.

Owns  `Request`, `Response`, `Values`, `Policy`, `Hit`, `Verdict`.
Not   parsing (`collections`, `bodies`), rules (`compile`, `engine`).
"""

from typing import Final

import msgspec

Header = tuple[bytes, bytes]
# One value under its key as it was sent: (b"id", b"42"). Single variables: one pair with an empty key.
Pair = tuple[bytes, bytes]
# Variable by its canonical name (`crs.tables`), upper case, to its pairs in request order. One that
# is not there has no pairs or no entry. Keys are compared without regard to ASCII case, shown as `NAME:key`.
# Numbers are decimal digits. The ..._NAMES hold (key, key). XML holds (XPath, value), for the two XPaths that
# rules use: b"/*" (all text, one value) and b"//@*" (each attribute's value).
# Filled by `collections`: `request_values(request)` before phase 1, `add_body(values, request, processor,
# force)` before phase 2 (processor "", URLENCODED, MULTIPART, JSON or XML; force keeps REQUEST_BODY whatever
# the processor), `response_values(response)` before phase 3, `add_response_body(values, response)` before
# phase 4. They raise `Refused` over a limit.
Values = dict[str, list[Pair]]

PARANOIA_LEVELS: Final = (1, 2, 3, 4)
PASSING: Final = ("", "log")  # what ends no request


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request as the proxy read it: nothing decoded, nothing normalised.

    `target` is the request target as in the request line; `version` is ``HTTP/1.1``. `body` is what there is
    of the body, at most the inspected prefix; `body_complete` says whether that is all of it, `rest_follows`
    that whoever asks will have the later parts of a multipart body inspected too (`late_parts`).

    `body_bytes_max` and `arguments_max` are limits instead of the room's own, 0 for these. A `partial` body
    is the beginning of one that passes: a form is read as far as it goes, anything else is one value.
    `unpacked`: the body is what was packed, whatever Content-Encoding says.
    """

    method: bytes
    target: bytes
    version: bytes = b"HTTP/1.1"
    headers: tuple[Header, ...] = ()
    client_address: str = "127.0.0.1"
    client_port: int = 0
    server_address: str = "127.0.0.1"
    server_port: int = 80
    body: bytes = b""
    body_complete: bool = True
    rest_follows: bool = False
    body_bytes_max: int = 0
    arguments_max: int = 0
    partial: bool = False
    unpacked: bool = False
    unique_id: str = ""
    time_epoch_seconds: int = 0


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The origin's answer; `body` only where response bodies are inspected."""

    status: int
    reason: bytes = b""
    version: bytes = b"HTTP/1.1"
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    body_complete: bool = True


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a zone makes of the rule set. Made by `Engine.policy`; the same choice is the same object.

    `enabled` has a bit per scoring rule, by its place in the rule set. `level` is the highest paranoia level
    with an enabled rule: helper rules run up to it. `threshold` None: no score is too high. `action` belongs
    to the score; `actions` are of rules that act instead of scoring, by bit.
    """

    enabled: int
    level: int
    threshold: int | None
    action: str
    actions: dict[int, str] = {}

    @property
    def only_logs(self) -> bool:
        """Whether nothing that matches is ever stopped: neither by the score nor by a rule of its own."""
        return self.action in PASSING and all(action in PASSING for action in self.actions.values())


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that matched.

    `score` is what it adds, 0 for helpers and for a rule that acts by itself, whose `action` is then set.
    `variable` is where (``ARGS:id``), `matched` what, at most `MATCHED_BYTES_MAX` bytes of it.
    """

    rule_id: int
    phase: int
    score: int
    paranoia_level: int
    variable: str
    matched: bytes
    message: str
    tags: tuple[str, ...] = ()
    action: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is to happen to the request.

    `action` is empty to let it pass, else the policy's (block, challenge, log, …). `score` is the sum of the
    increments of the scoring rules that matched, each once. `refused` names the limit that made a whole
    inspection impossible, empty when it was whole; `status` is the status for it (413, 400). `level_scores`
    are the scores of each paranoia level, 1 to 4, for what-if tables.
    """

    action: str = ""
    score: int = 0
    threshold: int | None = None
    hits: tuple[Hit, ...] = ()
    refused: str = ""
    status: int = 403
    level_scores: tuple[int, int, int, int] = (0, 0, 0, 0)
    work_units: int = 0


class Refused(Exception):
    """A limit makes whole inspection impossible; `reason` is a word for events, `status` for the client."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status

"""The part of the v4 REST API that octoDNS needs.

Owns  requests and their limits, pages, refusals in words.
Not   what a record means to octoDNS.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import requests
from octodns.provider import ProviderException

Json = dict[str, Any]

# To connect; between two pieces of an answer. A batch answers when it is durable and served.
SECONDS_MAX = (10, 120)
RECORDS_A_PAGE = 5_000
ZONES_A_PAGE = 50
PAGES_MAX = 1_000


class EdgesteadError(ProviderException):  # type: ignore[misc]
    """What the server refused, or why it could not be asked. Its text says all there is to know."""


class Api:
    """One server and one token. Every method raises EdgesteadError."""

    def __init__(self, base: str, token: str) -> None:
        self._base = base.rstrip("/")
        self._session = requests.Session()

        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {token}"
            return request

        self._session.auth = sign  # a mere header would give way to the user's .netrc

    def zones(self, name: str = "") -> Iterator[Json]:
        """The zones that the token may read: all, or that of a name without its last dot."""
        named = f"name={quote(name)}&" if name else ""
        return self._pages(f"/zones?{named}per_page={ZONES_A_PAGE}")

    def records(self, zone_id: str) -> Iterator[Json]:
        return self._pages(f"/zones/{zone_id}/dns_records?per_page={RECORDS_A_PAGE}")

    def create_zone(self, name: str, account_id: str | None) -> str:
        """Returns the zone's id. Without an account it is the only one that the token may add zones to."""
        account = {"account": {"id": account_id}} if account_id else {}
        zone_id: str = self._call("POST", "/zones", {"name": name, **account})["result"]["id"]
        return zone_id

    def batch(self, zone_id: str, lists: dict[str, list[Json]]) -> None:
        """`deletes`, `patches` and `posts`: all of them, or none."""
        self._call("POST", f"/zones/{zone_id}/dns_records/batch", lists)

    def _pages(self, path: str) -> Iterator[Json]:
        for number in range(1, PAGES_MAX + 1):
            answer = self._call("GET", f"{path}&page={number}")
            yield from answer["result"]
            if number >= answer["result_info"]["total_pages"]:
                return
        raise EdgesteadError(f"GET {path}: there are more than {PAGES_MAX} pages")

    def _call(self, method: str, path: str, body: Json | None = None) -> Any:
        what = f"{method} {self._base}{path}"
        try:
            answer = self._session.request(
                method, self._base + path, json=body, timeout=SECONDS_MAX, allow_redirects=False
            )
        except requests.RequestException as failure:
            raise EdgesteadError(f"{what}: {failure}") from failure
        try:
            envelope = answer.json()
            if envelope["success"]:
                return envelope
            raise EdgesteadError(f"{what}: " + "; ".join(_words(error, body) for error in envelope["errors"]))
        except (ValueError, KeyError, TypeError):
            raise EdgesteadError(
                f"{what}: {answer.status_code}, and no answer of the v4 API. Its address ends in /client/v4."
            ) from None


def _words(error: Json, body: Json | None) -> str:
    """`message (code)`, with its reasons, and with the record that a pointer into a batch leads to."""
    reasons = [f"{one['message']} ({one['code']})" for one in (error, *error.get("error_chain", ()))]
    _, *place = error.get("source", {}).get("pointer", "").split("/")
    if body and len(place) > 1 and place[1].isdigit():
        record = body[place[0]][int(place[1])]
        reasons.append(
            " ".join(str(record[key]) for key in ("type", "name", "content", "id") if key in record)
        )
    return ": ".join(reasons)

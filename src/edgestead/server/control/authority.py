"""A certificate authority as orders see it: ACME (RFC 8555) with the `acme` and `josepy` libraries.

Owns  the account there; what each step asks; which troubles pass by themselves.
Not   which step is next (`usecases.certificate.states`); storing anything.

Calls block, for SECONDS_MAX each request: they are made on a thread. The libraries take 0.5 s and 20 MiB to
load, for servers that have an authority.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

from edgestead.usecases.serving import proofs
from edgestead.usecases.serving.proofs import Proof

SECONDS_MAX: Final = 30  # of one request
ANSWER_CHARACTERS_MAX: Final = 300  # of what an authority says about a failure
USER_AGENT: Final = "edgestead"
_SECOND_US: Final = 1_000_000
_UNKNOWN_ACCOUNT: Final = "accountDoesNotExist"
_PASSING = frozenset(("badNonce", "serverInternal", "orderNotReady", _UNKNOWN_ACCOUNT))


class Trouble(Exception):
    """What an authority did not do, in its words. `passes`: the same step may be tried again.

    `retry_after_seconds` is what it asked for, 0 when it did not.
    """

    def __init__(self, words: str, *, passes: bool, retry_after_seconds: float = 0.0) -> None:
        super().__init__(words[:ANSWER_CHARACTERS_MAX])
        self.passes = passes
        self.retry_after_seconds = retry_after_seconds


class Renewal(NamedTuple):
    """When to renew, None when the authority does not say, and when to ask it again. Unix microseconds."""

    renew_us: int | None
    again_us: int


class Authority(Protocol):
    """Each raises Trouble."""

    def order(self, hosts: Sequence[str]) -> str:
        """The order's URL."""
        ...

    def proofs(self, order_url: str, method: str) -> list[Proof]:
        """Every proof that is still wanted."""
        ...

    def prove(self, order_url: str, method: str) -> bool:
        """Say that the proofs can be seen. Whether the authority has seen all of them."""
        ...

    def finish(self, order_url: str, key_pem: bytes, hosts: Sequence[str]) -> str | None:
        """The chain (PEM); None while the authority works on it."""
        ...

    def renewal(self, chain: str) -> Renewal: ...


class Account(NamedTuple):
    """`url` is empty until the authority has taken it."""

    email: str
    url: str
    key_pem: bytes


CHALLENGES: Final = {proofs.TXT: "dns-01", proofs.HTTP: "http-01", proofs.TLS_ALPN: "tls-alpn-01"}

Registered = Callable[[str], None]
"""Is told the account's URL, each time that the authority took the account, before anything else is asked."""


class AcmeAuthority:
    """One authority. `roots` is a file of certificates that vouch for it, None means the system's."""

    def __init__(self, directory: str, account: Account, roots: str | None, registered: Registered) -> None:
        self._directory = directory
        self._account = account
        self._roots = roots
        self._registered = registered
        self._client: Any = None
        self._retry_after = ""

    def order(self, hosts: Sequence[str]) -> str:
        from acme import messages

        with self._asking() as client:
            names = [messages.Identifier(typ=messages.IDENTIFIER_FQDN, value=host) for host in hosts]
            order = messages.NewOrder(identifiers=names)
            response = self._post(client.directory["newOrder"], order)
            return str(response.headers["Location"])

    def proofs(self, order_url: str, method: str) -> list[Proof]:
        with self._asking() as client:
            return [
                _proof(method, str(authorization.identifier.value), challenge.chall, client.net.key)
                for authorization, challenge in self._wanted(self._order(order_url), method)
            ]

    def prove(self, order_url: str, method: str) -> bool:
        from acme import challenges, messages

        with self._asking():
            order = self._order(order_url)
            if order.status == messages.STATUS_INVALID:
                raise self._invalid(order)
            for _, challenge in self._wanted(order, method):
                if challenge.status == messages.STATUS_PENDING:
                    # The answer is empty for each of them (RFC 8555 §8, RFC 8737 §3).
                    self._post(challenge.uri, challenges.DNS01Response(key_authorization=""))
            return order.status in (messages.STATUS_READY, messages.STATUS_PROCESSING, messages.STATUS_VALID)

    def finish(self, order_url: str, key_pem: bytes, hosts: Sequence[str]) -> str | None:
        from acme import crypto_util, messages
        from cryptography import x509

        with self._asking():
            order = self._order(order_url)
            if order.status == messages.STATUS_READY:
                csr = x509.load_pem_x509_csr(crypto_util.make_csr(key_pem, list(hosts)))
                response = self._post(order.finalize, messages.CertificateRequest(csr=csr))
                order = messages.Order.from_json(response.json())
            if order.status == messages.STATUS_INVALID:
                raise self._invalid(order)
            if order.status != messages.STATUS_VALID or order.certificate is None:
                return None
            return str(self._post(order.certificate, None).text)

    def renewal(self, chain: str) -> Renewal:
        """RFC 9773: a moment of the authority's window, another one at each call."""
        from acme import errors

        with self._asking() as client:
            try:
                renew, again = client.renewal_time(chain.encode())
            except errors.ARIError as error:
                raise Trouble(str(error), passes=True) from error
            return Renewal(None if renew is None else _us(renew), _us(again))

    def _wanted(self, order: Any, method: str) -> list[tuple[Any, Any]]:
        """Authorizations that are not there yet, each with its challenge."""
        from acme import messages

        found = []
        for url in order.authorizations:
            authorization = messages.Authorization.from_json(self._post(url, None).json())
            if authorization.status in (messages.STATUS_INVALID, messages.STATUS_DEACTIVATED):
                raise self._invalid(order, authorization)
            if authorization.status != messages.STATUS_PENDING:
                continue
            kind = CHALLENGES[method]
            offered = [one for one in authorization.challenges if _kind(one.chall) == kind]
            if not offered:
                raise Trouble(f"{authorization.identifier.value}: {kind} is not offered", passes=False)
            found.append((authorization, offered[0]))
        return found

    def _invalid(self, order: Any, authorization: Any = None) -> Trouble:
        """Why, in the authority's words: of the challenge, else of the order."""
        from acme import messages

        found = [authorization] if authorization is not None else []
        if not found:
            found = [
                messages.Authorization.from_json(self._post(url, None).json()) for url in order.authorizations
            ]
        for one in found:
            for challenge in one.challenges:
                if challenge.error is not None:
                    return Trouble(f"{one.identifier.value}: {_words(challenge.error)}", passes=False)
        return Trouble(_words(order.error) if order.error else "the order is invalid", passes=False)

    def _order(self, url: str) -> Any:
        from acme import messages

        return messages.Order.from_json(self._post(url, None).json())

    def _post(self, url: str, body: Any) -> Any:
        client = self._client
        return client.net.post(url, body, new_nonce_url=client.directory["newNonce"])

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        """The client, registered. Whatever goes wrong is a Trouble."""
        import josepy
        from acme import errors, messages

        try:
            if self._client is None:
                self._client = self._open()
            yield self._client
        except Trouble:
            raise
        except messages.Error as error:
            if error.code == _UNKNOWN_ACCOUNT:  # it forgot or lost it: the same key is registered again
                self._client, self._account = None, self._account._replace(url="")
            passes = error.code in _PASSING
            raise Trouble(_words(error), passes=passes, retry_after_seconds=self._seconds()) from error
        except OSError as error:  # requests.RequestException is one
            self._client = None
            raise Trouble(f"{self._directory} does not answer: {_short(error)}", passes=True) from error
        except (errors.Error, josepy.Error, ValueError, KeyError, AttributeError) as error:
            # Also what is no ACME at all: a proxy's page in the place of JSON, members that are missing.
            self._client = None
            words = f"{self._directory} answered what is no ACME: {_short(error)}"
            raise Trouble(words, passes=True, retry_after_seconds=self._seconds()) from error

    def _open(self) -> Any:
        import josepy
        from acme import client, errors, messages
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = josepy.JWKEC(key=load_pem_private_key(self._account.key_pem, None))
        verify: Any = self._roots or True
        net = client.ClientNetwork(
            key, alg=josepy.ES256, verify_ssl=verify, user_agent=USER_AGENT, timeout=SECONDS_MAX
        )
        net.session.trust_env = self._roots is None  # REQUESTS_CA_BUNDLE would go before the file
        net.session.hooks["response"].append(self._note)
        made = client.ClientV2(client.ClientV2.get_directory(self._directory, net), net)
        url = self._account.url
        if not url:
            wish = messages.NewRegistration.from_data(email=self._account.email, terms_of_service_agreed=True)
            try:
                url = made.new_account(wish).uri
            except errors.ConflictError as known:
                url = known.location
            self._account = self._account._replace(url=url)
            self._registered(url)
        net.account = messages.RegistrationResource(body=messages.Registration(), uri=url)
        return made

    def _note(self, response: Any, *_: Any, **__: Any) -> None:
        self._retry_after = response.headers.get("Retry-After", "") if not response.ok else ""

    def _seconds(self) -> float:
        """What Retry-After said last: seconds, or a date (RFC 9110 §10.2.3)."""
        from email.utils import parsedate_to_datetime

        text, self._retry_after = self._retry_after, ""
        if text.isdecimal():
            return float(text)
        try:
            return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
        except (ValueError, TypeError):
            return 0.0


def _kind(challenge: Any) -> str:
    """Also of one that the library has no class for, as it has none for tls-alpn-01 any more."""
    jobj = getattr(challenge, "jobj", None)
    return str(challenge.typ if jobj is None else jobj.get("type"))


def _proof(method: str, host: str, challenge: Any, key: Any) -> Proof:
    """What the authority looks for: the key authorization (RFC 8555 §8.1), or its digest."""
    import hashlib

    import josepy
    from cryptography.hazmat.primitives import hashes

    jobj = getattr(challenge, "jobj", None)
    token = str(jobj["token"]) if jobj is not None else str(challenge.encode("token"))
    authorization = f"{token}.{josepy.b64encode(key.thumbprint(hash_function=hashes.SHA256)).decode()}"
    if method == proofs.HTTP:
        return Proof(method, host, token, authorization)
    digest = hashlib.sha256(authorization.encode()).digest()
    return Proof(method, host, "", josepy.b64encode(digest).decode())


def new_key() -> bytes:
    """A key (PEM) for an account or a certificate: P-256."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _us(moment: datetime) -> int:
    return int(moment.timestamp() * _SECOND_US)


def _words(error: Any) -> str:
    return f"{error.detail or error.description or error.typ}"


def _short(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:ANSWER_CHARACTERS_MAX]

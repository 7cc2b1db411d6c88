"""The certificates of the edge and of DNS: a folder, read again when it changes, and those the server keeps.

Owns  which file belongs to which name, contexts by name and terms, taking up what has changed.
Not   a zone's settings, which come in as terms; where kept certificates come from; TLS itself.

    NAME.pem               certificate, chain and key in one file
    NAME.crt + NAME.key    the same in two
    NAME/fullchain.pem + NAME/privkey.pem    the folder of an ACME client

NAME is a host name; `_.example.com` (or `*.example.com`) is the wildcard, `default` serves whoever names no
host, or one without a certificate. Files that cannot be read are logged; what was there before stays in use,
and they are tried again, at once when they change and where it was not their content that was at fault. Where
there was nothing the next one that fits is served.
What the operator put there goes before what the server keeps, a wildcard too; `default` goes last.
A change takes effect for new connections: those that are open keep what they began with.
"""

import logging
import os
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

FILES_MAX = 20_000  # entries of the folder: all are looked at every two seconds
FILE_BYTES_MAX = 1 << 20  # a chain with its key has under 20 KB
CONTEXTS_MAX = 20_000  # that are loaded at a time; all are forgotten at once
DEFAULT = "default"
# RFC 8996 deprecates what is older than 1.2; the values "1.0" and "1.1" mean 1.2.
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
# RFC 9325 §4.2: forward secrecy and authenticated encryption.
MODERN_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"

HTTP_1, HTTP_2 = ("http/1.1",), ("h2", "http/1.1")
ACME = ("acme-tls/1",)

log = logging.getLogger(__name__)


class Terms(NamedTuple):
    """What a zone asks of TLS. `ciphers` are OpenSSL's names, for TLS 1.2; none means the modern ones.

    `protocols` are what may be spoken within, as ALPN names them, the preferred one first. `client_chooses`
    says whose order of ciphers holds.
    """

    minimum: str = "1.2"
    ciphers: tuple[str, ...] = ()
    protocols: tuple[str, ...] = HTTP_1
    client_chooses: bool = False


class _Files(NamedTuple):
    """Where a name's certificate and key are, and what tells a change."""

    chain: Path
    key: Path
    stamp: tuple[tuple[int, int, int], ...]


class _Content(NamedTuple):
    """A certificate with its chain, and its key (PEM)."""

    chain: bytes
    key: bytes


class _Good(NamedTuple):
    """What was read of a name's files, kept so that a file that breaks later takes nothing away."""

    files: _Files
    content: _Content


class _Bad(NamedTuple):
    """Files that were read in vain. `is_spoiled`: their content is no good, so once is enough."""

    files: _Files
    problem: str
    is_spoiled: bool


class Pair(NamedTuple):
    """What an entry of the folder stands for: `name` as the operator wrote it."""

    name: str
    chain: Path
    key: Path


class Kept(NamedTuple):
    """A certificate that the server keeps, with its chain, and its key (PEM). Names may begin with `*.`."""

    names: tuple[str, ...]
    chain: bytes
    key: bytes


Take = Callable[[], Iterable[Kept] | None]
"""Every kept certificate when they are others than at the last call; None otherwise."""


class Certificates:
    """`folder` None: the operator brings none. `take` is called at each look, `shown` after it: what
    authorities look for.
    """

    def __init__(
        self,
        folder: Path | None,
        take: Take = lambda: None,
        shown: Callable[[], Iterable[Kept]] = lambda: (),
    ) -> None:
        self._folder = folder
        self._take = take
        self._shown = shown
        self._kept: dict[str, _Content] = {}
        self._files: dict[str, _Files] = {}
        self._good: dict[str, _Good] = {}
        self._proofs: dict[str, Kept] = {}
        self._bad: dict[str, _Bad] = {}
        self._again: set[str] = set()  # of these, to be read again when somebody asks; set by each look
        self._unread: dict[Path, str] = {}  # entries of the folder that cannot be looked at, and why
        self._contexts: dict[tuple[_Content, Terms], ssl.SSLContext] = {}
        self._fault: str | None = None  # of the folder; told when it begins
        self.look()

    def look(self) -> None:
        """Take up what has changed in the folder. What was never asked for is read when it is."""
        self._files = dict(self._find())
        for name in self._good.keys() - self._files.keys():
            self._forget(self._good.pop(name).content)
        for name in self._bad.keys() - self._files.keys():
            del self._bad[name]
        self._again = {name for name, bad in self._bad.items() if not bad.is_spoiled}
        for name, before in tuple(self._good.items()):
            if self._files[name] != before.files and self._read(name):
                self._forget(before.content)
        found = self._take()
        if found is not None:
            self._take_kept(found)
            self._proofs = {name: one for one in self._shown() for name in one.names}

    def context(self, host: str, terms: Terms) -> ssl.SSLContext | None:
        """What a connection to a host (lower case) is served with; None when nothing fits."""
        for name, content in self._fitting(host):
            context = self._contexts.get((content, terms)) or self._make(name, content, terms)
            if context is not None:
                return context
        return None

    def proof(self, host: str) -> ssl.SSLContext | None:
        """For an authority that offers nothing but `ACME` (RFC 8737); None where there is no proof."""
        one = self._proofs.get(host)
        return None if one is None else _context(_Content(one.chain, one.key), Terms(protocols=ACME))

    def _take_kept(self, found: Iterable[Kept]) -> None:
        before = self._kept
        self._kept = {_file_name(name): _Content(one.chain, one.key) for one in found for name in one.names}
        for name, content in before.items():
            if self._kept.get(name) != content:
                self._forget(content)

    def _fitting(self, host: str) -> Iterator[tuple[str, _Content]]:
        """What there is for a host, the first choice first."""
        names = (host, "_." + host.partition(".")[2])
        for name in names:
            if self._has(name):
                yield name, self._good[name].content
        for name in names:
            if name in self._kept:
                yield name, self._kept[name]
        if self._has(DEFAULT):
            yield DEFAULT, self._good[DEFAULT].content

    def _make(self, name: str, content: _Content, terms: Terms) -> ssl.SSLContext | None:
        try:
            context = _context(content, terms)
        except OSError as error:  # ssl.SSLError is one
            log.error("the certificate of %s cannot be used: %s", name, error)
            return None
        if len(self._contexts) >= CONTEXTS_MAX:
            self._contexts.clear()
        self._contexts[content, terms] = context
        return context

    def _has(self, name: str) -> bool:
        """Whether the folder has something good for a name."""
        return name in self._files and (name in self._good or self._read(name))

    def _read(self, name: str) -> bool:
        """Read a name's files; False, with what was there before still in use, when they are no good."""
        files, before = self._files[name], self._bad.get(name)
        if before is not None and before.files == files and name not in self._again:
            return False
        self._again.discard(name)
        try:
            content = _Content(_bounded(files.chain), _bounded(files.key))
            _context(content, Terms())
        except (OSError, ValueError) as error:
            # Another OSError (no descriptor was left, we may not read it) ends without a change of the file.
            is_spoiled = isinstance(error, ssl.SSLError | ValueError)
            self._bad[name] = bad = _Bad(files, str(error), is_spoiled)
            if bad != before:
                log.error("the certificate of %s cannot be used: %s", name, error)
            return False
        self._bad.pop(name, None)
        self._good[name] = _Good(files, content)
        return True

    def _tell(self, error: OSError) -> None:
        """Once for each fault: the folder is looked at every other second."""
        words = f"the folder of certificates {self._folder} cannot be read: {error.strerror}"
        if isinstance(error, FileNotFoundError):
            words = (
                f"the folder of certificates {self._folder} does not exist yet: put certificates there, "
                f"or make one for development with `edgecli tls dev NAME --tls-dir {self._folder}`"
            )
        if words != self._fault:
            self._fault = words
            log.warning("%s", words)

    def _forget(self, content: _Content) -> None:
        self._contexts = {key: context for key, context in self._contexts.items() if key[0] != content}

    def _find(self) -> Iterator[tuple[str, _Files]]:
        if self._folder is None:
            return
        try:
            entries = sorted(self._folder.iterdir())[:FILES_MAX]
        except OSError as error:
            self._tell(error)
            yield from self._files.items()
            return
        self._fault = None
        unread: dict[Path, str] = {}
        for entry in entries:
            try:
                pair = pair_of(entry)
                if pair is not None:
                    stats = [path.stat() for path in (pair.chain, pair.key)]
                    stamp = tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in stats)
                    yield _file_name(pair.name), _Files(pair.chain, pair.key, stamp)
            except (FileNotFoundError, NotADirectoryError):
                pass  # half of a pair: the other one is still to come
            except OSError as error:
                unread[entry] = str(error)
                if unread[entry] != self._unread.get(entry):
                    log.error("an entry of the folder of certificates cannot be read: %s", error)
                yield from self._before(entry)
        self._unread = unread

    def _before(self, entry: Path) -> Iterator[tuple[str, _Files]]:
        """What an entry stood for when it could be read."""
        for name in {_file_name(entry.name), _file_name(entry.stem)}:
            files = self._files.get(name)
            if files is not None and files.chain.is_relative_to(entry):
                yield name, files


def _file_name(name: str) -> str:
    return name.lower().replace("*.", "_.", 1)


def pair_of(entry: Path) -> Pair | None:
    """None for one that is neither a certificate nor a folder. Raises OSError: it cannot be told."""
    if entry.is_dir():
        return Pair(entry.name, entry / "fullchain.pem", entry / "privkey.pem")
    if entry.suffix == ".pem":
        return Pair(entry.stem, entry, entry)
    if entry.suffix == ".crt":
        return Pair(entry.stem, entry, entry.with_suffix(".key"))
    return None


def _bounded(path: Path) -> bytes:
    """Raises OSError, ValueError."""
    with path.open("rb") as stream:
        content = stream.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise ValueError(f"{path.name} is larger than {FILE_BYTES_MAX} bytes")
    return content


def _context(content: _Content, terms: Terms) -> ssl.SSLContext:
    """Raises OSError: what is no certificate with its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS.get(terms.minimum, ssl.TLSVersion.TLSv1_2)
    context.set_ciphers(MODERN_CIPHERS)
    if terms.ciphers:
        try:
            context.set_ciphers(":".join(terms.ciphers))
        except ssl.SSLError:
            log.error("none of a zone's ciphers is known: %s", ":".join(terms.ciphers)[:200])
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if terms.client_chooses:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE  # which Python sets
    else:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(terms.protocols)
    with _in_memory(content.chain) as chain, _in_memory(content.key) as key:
        context.load_cert_chain(chain, key, password="")  # never asks at a terminal
    return context


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """A path to bytes: OpenSSL's interface here takes files only."""
    descriptor = os.memfd_create("edgestead-certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)

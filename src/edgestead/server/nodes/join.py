"""How a machine gets its certificate: the first with a token, later ones with the certificate that it has.

Owns  the messages, both ends, and what a new node writes into its folder.
Not   invitations (`invites`), the list of nodes (`registry`).

    machine                              control node
              ◀───────────────────────── Welcome      the authority's certificate
    Ask       ─────────────────────────▶              only if the token's fingerprint is that authority's,
                                                      and it has signed what the other end shows
              ◀───────────────────────── Granted or Refused

The secret of the token leaves the machine only after both looks. A node that renews (`renewing`) sends no
secret: the connection has its certificate.
"""

import asyncio
import hmac
import logging
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from struct import Struct as Layout
from typing import Final

import msgspec

from edgestead.server import files
from edgestead.server.nodes import identity, invites, port
from edgestead.server.nodes.identity import FOLDER, Authority, Member, NotANode, Peer
from edgestead.server.nodes.registry import NameTaken, Node, Registry, is_listed
from edgestead.server.nodes.vault import Vault

MESSAGE_BYTES_MAX: Final = 1 << 20  # of either side: certificates and addresses
ANSWER_SECONDS: Final = 20.0
KEY, CERTIFICATE, AUTHORITY, ADDRESSES = "node.key", "node.crt", "ca.crt", "addresses"
HANDED_FILES: Final = (
    "seal.key",
    "credentials.json",
    "challenge-keys.json",
    "cluster/cluster.key",
)  # to a node with control
SETTINGS: Final = "cluster.toml"

_LENGTH: Final = Layout(">I")
_log = logging.getLogger("edgestead.server")


class Welcome(msgspec.Struct, frozen=True, tag=1):
    authority: bytes


class Ask(msgspec.Struct, frozen=True, tag=2):
    """`id` and `secret` are empty where the connection has a certificate. `key` is public, DER."""

    id: str
    secret: bytes
    key: bytes
    address: str
    release: str


class Granted(msgspec.Struct, frozen=True, tag=3):
    """`addresses` are those of control nodes now; `handed` are files for the node's folder, by name."""

    certificate: bytes
    addresses: tuple[str, ...]
    stale: str
    handed: dict[str, bytes]


class Refused(msgspec.Struct, frozen=True, tag=4):
    words: str


Message = Welcome | Ask | Granted | Refused
Handed = Callable[[frozenset[str]], dict[str, bytes]]
"""What a node of these roles gets beside its certificate."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


class Registrar:
    """A control node's end. Its work blocks, so it is done in threads."""

    def __init__(
        self,
        authority: Authority,
        vault: Vault,
        registry: Registry,
        *,
        addresses: Callable[[], tuple[str, ...]],
        handed: Handed = lambda roles: {},
        joined: Callable[[Node], None] = lambda node: None,
    ) -> None:
        """`joined` is called in a thread when the list has a new node."""
        self._authority, self._vault, self._registry = authority, vault, registry
        self._addresses, self._handed, self._joined = addresses, handed, joined

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer) -> None:
        """For `port.streams`."""
        await _send(writer, Welcome(self._authority.certificate_pem))
        async with asyncio.timeout(ANSWER_SECONDS):
            asked = await _receive(reader)
        if not isinstance(asked, Ask):
            raise ConnectionError("a machine that joins has to ask")
        try:
            answer: Message = await asyncio.to_thread(self._answer, asked, peer)
        except (invites.Refused, NotANode) as refusal:
            answer = Refused(str(refusal))
        except NameTaken as taken:
            words = f"there is a node named {taken} already: `edgecli cluster remove` it first, or invite by"
            answer = Refused(f"{words} another name")
        if isinstance(answer, Refused):
            _log.warning("a machine was not let into the cluster: %s", answer.words)
        await _send(writer, answer)

    def _answer(self, asked: Ask, peer: Peer) -> Granted:
        if peer is port.NOBODY:
            node = self._invited(asked)
        else:
            node = self._known(asked, peer)
        roles = frozenset(node.roles)
        certificate = self._authority.certify(asked.key, node.name, roles, datetime.now(UTC))
        self._registry.add(node)
        self._joined(node)
        _log.info("node %s (%s) has a certificate", node.name, ", ".join(node.roles))
        handed = self._handed(roles) if peer is port.NOBODY else {}
        return Granted(certificate, self._addresses(), node.stale, handed)

    def _invited(self, asked: Ask) -> Node:
        now_s = int(time.time())
        found = invites.redeem(self._vault, asked.id, asked.secret, asked.key, now_s)
        return Node(
            name=found.name,
            roles=found.roles,
            key=identity.key_of(asked.key),
            region=found.region,
            address=asked.address,
            release=asked.release,
            wait=found.wait,
            stale=found.stale,
        )

    def _known(self, asked: Ask, peer: Peer) -> Node:
        nodes = self._registry.nodes()
        if not is_listed(nodes, peer) or identity.key_of(asked.key) != peer.key:
            raise NotANode(f"node {peer.name} was removed: invite it again")
        return msgspec.structs.replace(
            nodes[peer.name], address=asked.address or nodes[peer.name].address, release=asked.release
        )


async def join(
    token: invites.Token,
    folder: Path,
    *,
    address: str = "",
    release: str = "",
    before: Callable[[Granted], None] = lambda granted: None,
) -> tuple[Member, Granted]:
    """Become the node that a token is for: asks each of its addresses until one answers.

    Leaves key, certificate and the authority in `folder`; `before` that is whole, the caller does what else
    makes a node. Raises invites.Refused; ConnectionError when nobody
    answers.
    """
    key_pem = _key_in(folder)
    ask = Ask(token.id, token.secret, identity.public_key(key_pem), address, release)
    problems = []
    for host_port in token.addresses:
        try:
            authority, granted = await _ask_stranger(host_port, token, ask)
        except (OSError, EOFError, NotANode, msgspec.DecodeError) as error:
            problems.append(f"{host_port}: {error or 'it hung up'}")
            continue
        files.replace_private(folder / AUTHORITY, authority)
        before(granted)
        keep(folder, granted)
        return identity.member_of(folder), granted
    raise ConnectionError("no node of the cluster answers: " + "; ".join(problems))


def become(text: str, data_dir: Path, *, address: str = "", release: str = "") -> Member:
    """Join with the text of a token, and make a data folder that `serve --cluster` runs.

    A folder that is a node already stays that node. Blocks. Raises invites.Refused, OSError, NotANode.
    """
    folder = data_dir / FOLDER
    if (folder / CERTIFICATE).exists():
        return identity.member_of(folder)
    token = invites.parse(text)
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (data_dir / "control.db").exists():
        raise invites.Refused(f"{data_dir} is the data folder of a server of its own: choose another one")
    asking = join(token, folder, address=address, release=release, before=_hand_over(data_dir))
    return asyncio.run(asking)[0]


def _hand_over(data_dir: Path) -> Callable[[Granted], None]:
    def write(granted: Granted) -> None:
        settings = granted.handed.get(SETTINGS, b"[cluster]\n") + f'stale = "{granted.stale}"\n'.encode()
        for name in HANDED_FILES:
            if name in granted.handed:
                files.replace_private(data_dir / name, granted.handed[name])
        if not (data_dir / SETTINGS).exists():
            files.replace_private(data_dir / SETTINGS, settings)

    return write


async def renew(
    member: Member, host_port: str, folder: Path, *, address: str = "", release: str = ""
) -> Granted:
    """The next certificate, for the same key. Raises invites.Refused, OSError."""
    public = identity.public_key(member.key_file.read_bytes())
    reader, writer, _ = await port.open_streams(member, host_of(host_port), port.JOIN_ALPN)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await _receive(reader)
            await _send(writer, Ask("", b"", public, address, release))
            granted = _granted(await _receive(reader))
    finally:
        writer.close()
    keep(folder, granted)
    return granted


def keep(folder: Path, granted: Granted) -> None:
    """The certificate comes last: a folder that has one is a whole node."""
    files.replace_private(folder / ADDRESSES, "\n".join(granted.addresses).encode() + b"\n")
    files.replace_private(folder / CERTIFICATE, granted.certificate)


def addresses_in(folder: Path) -> tuple[str, ...]:
    """Where the control nodes were, when somebody last said so. Raises OSError."""
    return tuple((files.read_private(folder / ADDRESSES) or b"").decode().split())


def host_of(host_port: str) -> tuple[str, int]:
    host, _, number = host_port.rpartition(":")
    return host.strip("[]"), int(number)


def _key_in(folder: Path) -> bytes:
    """The key of a machine that has begun to join: it stays the same until it is a node."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = files.read_private(folder / KEY)
    if found is None:
        found = identity.new_key()
        files.replace_private(folder / KEY, found)
    return found


async def _ask_stranger(host_port: str, token: invites.Token, ask: Ask) -> tuple[bytes, Granted]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the authority is not known yet: `_check` verifies what was shown
    context.set_alpn_protocols([port.JOIN_ALPN])
    host, number = host_of(host_port)
    async with asyncio.timeout(ANSWER_SECONDS):
        reader, writer = await asyncio.open_connection(host, number, ssl=context, server_hostname="")
        try:
            welcome = await _receive(reader)
            if not isinstance(welcome, Welcome):
                raise ConnectionError("it is no node of a cluster")
            shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            _check(welcome.authority, shown, token)
            await _send(writer, ask)
            return welcome.authority, _granted(await _receive(reader))
        finally:
            writer.close()


def _check(authority_pem: bytes, shown_der: bytes, token: invites.Token) -> None:
    """Raises NotANode: it is not the cluster that made the token."""
    try:
        is_the_one = hmac.compare_digest(identity.fingerprint(authority_pem), token.authority)
    except ValueError:
        is_the_one = False
    if not is_the_one or not identity.is_issued_by(shown_der, authority_pem, datetime.now(UTC)):
        raise NotANode("who answers there is not of the cluster that made the token")
    if not identity.peer_of(shown_der).has("control"):
        raise NotANode("who answers there is no control node")


def _granted(answer: Message) -> Granted:
    if isinstance(answer, Refused):
        raise invites.Refused(answer.words)
    if not isinstance(answer, Granted):
        raise ConnectionError("it does not speak as a node does")
    return answer


async def _send(writer: asyncio.StreamWriter, message: Message) -> None:
    body = _encode(message)
    writer.write(_LENGTH.pack(len(body)) + body)
    await writer.drain()


async def _receive(reader: asyncio.StreamReader) -> Message:
    """Raises EOFError, ConnectionError, msgspec.DecodeError."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > MESSAGE_BYTES_MAX:
        raise ConnectionError("a message is too large")
    message: Message = _decode(await reader.readexactly(length))
    return message

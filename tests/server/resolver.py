"""A recursive resolver that says what a test tells it to: for the targets of flattened aliases."""

import contextlib
import socket
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


class Resolver:
    """Set `answers`: (name, type) to a list of zone-file lines, an rcode, both, or None for silence."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self.socket.getsockname())
        self.answers = {}
        self.asked = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def says(self, name, *addresses, ttl=60):
        """Addresses of both families; none means that the name has none."""
        for kind, has in (("A", lambda text: ":" not in text), ("AAAA", lambda text: ":" in text)):
            lines = [f"{name}. {ttl} IN {kind} {text}" for text in addresses if has(text)]
            self.answers[name, kind] = lines

    def fails(self, name, rcode=dns.rcode.SERVFAIL):
        self.answers[name, "A"] = self.answers[name, "AAAA"] = rcode

    def leads(self, name, target, *addresses, rcode=dns.rcode.NOERROR):
        """An alias of a name that has these IPv4 addresses, or that does not exist."""
        lines = [f"{name}. 60 IN CNAME {target}.", *(f"{target}. 60 IN A {text}" for text in addresses)]
        self.answers[name, "A"], self.answers[name, "AAAA"] = (lines, rcode), (lines[:1], rcode)

    def _serve(self):
        while True:
            with contextlib.suppress(ValueError):
                octets, client = self.socket.recvfrom(4096)
                if not octets:
                    return
                reply = self._reply(dns.message.from_wire(octets))
                if reply is not None:
                    self.socket.sendto(reply.to_wire(), client)

    def _reply(self, query):
        question = query.question[0]
        key = question.name.to_text(omit_final_dot=True), question.rdtype.name
        self.asked.append(key)
        said = self.answers.get(key, dns.rcode.SERVFAIL)
        if said is None:
            return None
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        lines, rcode = said if isinstance(said, tuple) else ((), said) if isinstance(said, int) else (said, 0)
        reply.set_rcode(rcode)
        for line in lines:
            name, ttl, class_, kind, text = line.split(maxsplit=4)
            reply.answer.append(dns.rrset.from_text(name, ttl, class_, kind, text))
        return reply

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.socket.getsockname())
        self._thread.join(300)
        self.socket.close()

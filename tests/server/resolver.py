"""A recursive resolver that says what a test tells it to: for the targets of flattened aliases."""

import contextlib
import socket
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


class Resolver:
    """Set `answers`: (name, type) to a list of zone-file lines, an rcode, or None for silence."""

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

    def _serve(self):
        while True:
            with contextlib.suppress(ValueError):
                octets, client = self.socket.recvfrom(4096)
                if not octets:
                    return
                self.socket.sendto(self._reply(dns.message.from_wire(octets)).to_wire(), client)

    def _reply(self, query):
        question = query.question[0]
        key = question.name.to_text(omit_final_dot=True), question.rdtype.name
        self.asked.append(key)
        said = self.answers.get(key, dns.rcode.SERVFAIL)
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        if isinstance(said, int):
            reply.set_rcode(said)
        else:
            for line in said:
                name, ttl, class_, kind, text = line.split()
                reply.answer.append(dns.rrset.from_text(name, ttl, class_, kind, text))
        return reply

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.socket.getsockname())
        self._thread.join(60)
        self.socket.close()

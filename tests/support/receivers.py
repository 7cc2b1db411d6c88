"""Receivers of alerts on loopback: an HTTP server, and a mail server as far as a client of it goes.

Owns  what they got, and how they refuse.
Not   what a message should say.
"""

import base64
import socket
import socketserver
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.path, dict(self.headers.items()), body))
        self.server.arrived.set()
        self.server.go_on.wait(60)
        self.send_response(self.server.status)
        self.send_header("content-length", "6")
        self.end_headers()
        self.wfile.write(b"sorry\n")

    def log_message(self, *words):
        pass


class _Served:
    """A server in a thread; `close` ends both."""

    def __init__(self, server):
        self.server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def port(self):
        return self.server.server_address[1]

    def close(self):
        self.server.go_on.set()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


class _HttpServer(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that went away meanwhile is what some tests are about."""


class Webhook(_Served):
    """`got` are (path, headers, body). `status` is what it answers, once `go_on` is set."""

    def __init__(self, context=None):
        made = _HttpServer(("127.0.0.1", 0), _Handler)
        if context is not None:
            made.socket = context.wrap_socket(made.socket, server_side=True)
        made.got, made.status = [], 204
        made.go_on, made.arrived = threading.Event(), threading.Event()
        made.go_on.set()
        super().__init__(made)

    @property
    def got(self):
        return self.server.got

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook?of=edge"


class _Session(socketserver.StreamRequestHandler):
    """RFC 5321, with STARTTLS (RFC 3207) and AUTH PLAIN (RFC 4954) where the server has a certificate."""

    def handle(self):
        self.is_private = self.user = False
        self.mail = {"to": []}
        for _ in range(self.server.banner_lines):
            self.say("220-not yet")
            time.sleep(0.01)
        self.say("220 sink")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            verb, _, rest = line.partition(" ")
            answer = getattr(self, f"on_{verb.lower()}", self.unknown)(rest)
            if answer:
                self.say(answer)
            if verb.upper() == "QUIT":
                return

    def finish(self):
        super().finish()
        self.request.close()  # the one of TLS: the server closes what it accepted

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def unknown(self, _):
        return "500 what?"

    def on_ehlo(self, _):
        more = []
        if self.server.context is not None and not self.is_private:
            more.append("STARTTLS")
        if self.is_private:
            more.append("AUTH PLAIN")
        for one in ["sink", *more][:-1]:
            self.say(f"250-{one}")
        return f"250 {['sink', *more][-1]}"

    def on_starttls(self, _):
        self.say("220 go on")
        try:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        except (ssl.SSLError, OSError):
            self.rfile = open("/dev/null", "rb")
            return None
        self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", 0)
        self.is_private = True
        return None

    def on_auth(self, rest):
        _, user, password = base64.b64decode(rest.split()[-1]).decode().split("\0")
        self.user = self.server.accounts.get(user) == password
        return "235 welcome" if self.user else "535 5.7.8 no such user"

    def on_mail(self, rest):
        if self.server.accounts and not self.user:
            return "530 5.7.0 who are you?"
        self.mail["from"] = rest
        return "250 ok"

    def on_rcpt(self, rest):
        if any(name in rest for name in self.server.refused):
            return "550 5.1.1 nobody here"
        self.mail["to"].append(rest)
        return "250 ok"

    def on_data(self, _):
        self.say("354 go on")
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        self.mail["content"] = b"".join(lines)
        self.mail["private"] = self.is_private
        self.server.got.append(self.mail)
        return "250 taken"

    def on_rset(self, _):
        return "250 ok"

    def on_quit(self, _):
        return "221 bye"


class _SmtpServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request, client_address):
        """As above."""


class MailServer(_Served):
    """`got` are mails; `accounts` are passwords by user, `refused` recipients that it does not know.

    Its banner takes 10 ms a line.
    """

    def __init__(self, context=None, accounts=(), refused=(), banner_lines=0):
        made = _SmtpServer(("127.0.0.1", 0), _Session)
        made.got, made.context = [], context
        made.accounts, made.refused = dict(accounts), tuple(refused)
        made.banner_lines = banner_lines
        made.go_on = threading.Event()
        super().__init__(made)

    @property
    def got(self):
        return self.server.got


class Silent:
    """Accepts connections and says nothing."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    def close(self):
        self._socket.close()

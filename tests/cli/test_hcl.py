"""HCL: what is written out is read, what is computed is left out, and no text keeps the reader busy."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgestead.cli.server import hcl

WHOLE = """
variable "zone" { type = string }
# a comment { with brackets
resource "cloudflare_dns_record" "a" { // one more
  for_each = { for name, value in var.names : name => value if value != "" }
  name     = "x-${each.key}.${lower("A}")}"  /* and
                                                 one */
  content  = "v=spf1 \\"quoted\\" $${kept} \\\\ \\u00e4"
  ttl      = var.short ? 60 : 300
  proxied  = false
  priority = -1
  weight   = 1.5
  comment  = null
  tags     = ["a:1",
    "b:2", # the last has no comma
    lower("C")
  ]
  many = [for one in var.many : one.id]
  sum  = 1 + 2
  dot  = cloudflare_zone.main.id
  index = var.list[0]
  called = templatefile("x", {
    a = "b"
  })
  data = { "flags" = 0, tag : "issue"
    (var.key) = 1
    value = "ca.example" }
  text = <<-EOT
      first { line
        second "
      EOT
  raw = <<END
 kept
END
  lifecycle { ignore_changes = [content] }
  rules {
    action = "block"
    inner { deep = true }
  }
  rules {
    action = "log"
  }
  dynamic "rules" {
    for_each = var.more
    content { action = rules.value }
  }
}
locals { a = 1 }
resource cloudflare_zone main { name = "example.com" }
"""
MEMBERS = {
    "name": 'x-${each.key}.${lower("A}")}',
    "content": 'v=spf1 "quoted" ${kept} \\ ä',
    "proxied": False,
    "priority": -1,
    "weight": 1.5,
    "comment": None,
    "tags": ["a:1", "b:2"],
    "data": {"flags": 0, "tag": "issue", "value": "ca.example"},
    "text": 'first { line\n  second "\n',
    "raw": " kept\n",
    "lifecycle": [{"ignore_changes": []}],
    "rules": [{"action": "block", "inner": [{"deep": True}]}, {"action": "log"}],
}


def test_what_is_written_out_is_read_and_the_rest_is_left_out():
    found = list(hcl.blocks(WHOLE))

    assert [(one.kind, one.labels) for one in found] == [
        ("variable", ("zone",)),
        ("resource", ("cloudflare_dns_record", "a")),
        ("locals", ()),
        ("resource", ("cloudflare_zone", "main")),
    ]
    assert found[1].members == MEMBERS
    assert found[3].members == {"name": "example.com"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a "b" {', "line 1: expected a name"),
        ("a {\n b = [1\n", "line 3: expected ]"),
        ("a {\n b = [1 }\n", "expected ]"),
        ('a {\n b = "x\n}', "line 2: expected the end of a text"),
        ("a { b = <<E\nx\n}", "expected a line E"),
        ("a { b = f(1 }", "expected a name"),
        ("a { b = (1", "a bracket that closes"),
        ("a { b = { 1 = 2 } }", "expected a name"),
        ("a { b = { c d } }", "= behind a name"),
        ("}", "line 1: expected a name"),
        ("a " + "{ b " * 70, "at most 64"),
        ("a { b = " + "[" * 70, "at most 64"),
        ("a { b = " + "f(" * 70, "at most 64"),
    ],
)
def test_what_is_broken_is_told_with_its_line(text, words):
    with pytest.raises(ValueError, match="line") as error:
        list(hcl.blocks(text))

    assert words in str(error.value)


names = st.from_regex(r"[a-z][a-z0-9_-]{0,5}", fullmatch=True).filter(lambda name: name != "for")
texts = st.text(st.characters(blacklist_categories=("Cc", "Cs")), max_size=8).filter(
    lambda text: "${" not in text and "%{" not in text
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(names, values, max_size=5))
def test_any_value_is_read_as_it_was_written(members):
    """A value in JSON is one in HCL."""
    lines = "\n".join(
        f"  {name} = {json.dumps(value, ensure_ascii=False)}" for name, value in members.items()
    )

    (block,) = hcl.blocks(f'resource "a" "b" {{\n{lines}\n}}\n')

    assert block.members == members


@given(st.text(st.sampled_from('a="{}[](),:\n $%<E-#/*\\1'), max_size=60))
def test_any_text_is_read_or_refused(text):
    with suppress(ValueError):
        list(hcl.blocks(text))

"""Filters compare what is meant: decoded, white space folded, capitals ignored."""

import pytest

from edgestead.model.records import folded_content, folded_query, parse

# content as stored, values of a filter that find it, values that do not
FOLDED = [
    ("TXT", "abc", ["abc", '"abc"', " ABC ", r"\097bc"], ['"ab"', '"abc'],),
    ("TXT", '"ab" "cd"', ["abcd", '"ab" "cd"', '"abcd"'], ["ab cd"]),
    ("TXT", "v=spf1  include:A.test\t~all", ["V=SPF1 include:a.test ~all"], []),
    ("TXT", r'"say \"hi\""', [r'"say \"hi\""', 'say "hi"'], ["say hi"]),
    ("TXT", "STRASSE", ["straße"], ["strase"]),
    ("CNAME", "Www.Example.TEST.", ["www.example.test"], ["www"]),
    ("AAAA", "2001:DB8::0", ["2001:db8::"], []),
    ("CAA", '0 issue "ca.example"', ['0 ISSUE "ca.example"'], ["0 issue ca.example"]),
    ("TLSA", "3 1 1 ABCD", ["3 1 1 abcd"], []),
]  # fmt: skip


@pytest.mark.parametrize(("type_name", "content", "found_by", "missed_by"), FOLDED)
def test_a_filter_finds_what_is_meant(type_name, content, found_by, missed_by):
    stored = folded_content(parse(type_name, content=content))

    assert [query for query in found_by if folded_query(query) != stored] == []
    assert [query for query in missed_by if folded_query(query) == stored] == []


def test_a_part_of_a_text_is_found_inside_it():
    stored = folded_content(parse("TXT", content='"v=DKIM1; k=rsa; p=AbC"'))

    assert folded_query("K=RSA;  p=") in stored


def test_octets_that_are_no_text_can_still_be_compared():
    assert folded_content(parse("TXT", content=r"a\255B")) == "a\ufffdb"

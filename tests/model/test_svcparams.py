"""Service parameters: each key reads its text, writes its octets and refuses what it cannot have."""

import pytest

from edgestead.model.names import InvalidValue
from edgestead.model.records.svcparams import pack_params, params_text, read_params, unpack_params
from edgestead.model.records.wire import WireReader

# text as sent, value octets, text in its usual form
GOOD = [
    ("alpn=h2", "0001 0003 026832", 'alpn="h2"'),
    ("alpn=h3,h2", "0001 0006 026833 026832", 'alpn="h3,h2"'),
    (r'alpn="a\\,b,\\\\c"', "0001 0007 03612c62 025c63", r'alpn="a\\,b,\\\\c"'),
    (r"alpn=\104\050", "0001 0003 026832", 'alpn="h2"'),
    ("alpn=h2 no-default-alpn", "0001 0003 026832 0002 0000", 'alpn="h2" no-default-alpn'),
    ("port=053", "0003 0002 0035", 'port="53"'),
    ("ipv4hint=192.0.2.1,192.0.2.2", "0004 0008 c0000201 c0000202", 'ipv4hint="192.0.2.1,192.0.2.2"'),
    ('ipv6hint="2001:DB8::1"', "0006 0010 20010db8000000000000000000000001", 'ipv6hint="2001:db8::1"'),
    ("ech=AQID", "0005 0003 010203", 'ech="AQID"'),
    ("dohpath=/q{?dns}", "0007 0008 2f717b3f646e737d", 'dohpath="/q{?dns}"'),
    ("ohttp", "0008 0000", "ohttp"),
    ("mandatory=port,alpn port=1 alpn=h2", "0000 0004 0001 0003  0001 0003 026832  0003 0002 0001",
     'mandatory="alpn,port" alpn="h2" port="1"'),
    ("key1=h2", "0001 0003 026832", 'alpn="h2"'),
    ("key667", "029b 0000", "key667"),
    ('key667="" key9=x', "0009 0001 78 029b 0000", 'key9="x" key667'),
    (r'key65534="a b\"\255\,"', "fffe 0006 61206222ff2c", r'key65534="a b\"\255,"'),
    ("key9=é", "0009 0002 c3a9", r'key9="\195\169"'),
    ("", "", ""),
]  # fmt: skip

BAD_TEXT = [
    ("color=red", "unknown"),
    ("ALPN=h2", "unknown"),
    ("=h2", "unknown"),
    ("key=1", "unknown"),
    ("key07=1", "unknown"),
    ("key65535=1", "unknown"),
    ("key²=1", "unknown"),
    ("alpn=h2 key1=h3", "repeated"),
    ("alpn=", "empty value"),
    ('alpn=""', "empty item"),
    ("alpn=h2,,h3", "empty item"),
    ("alpn=h2,", "empty item"),
    ("alpn=" + "x" * 256, "255 octets"),
    (r'alpn="a\\b"', "backslash in a list"),
    (r'alpn="a\\"', "backslash in a list"),
    ('alpn="h2', "inconsistent"),
    ('alpn=h"2', "inconsistent"),
    ('alpn=h"2"', "inconsistent"),
    (r"key9=\256", "000 to 255"),
    ("no-default-alpn", "needs alpn"),
    ("alpn=h2 no-default-alpn=1", "no value"),
    ("ohttp=1", "no value"),
    ("port", "port must be"),
    ("port=65536", "port must be"),
    ("port=-1", "port must be"),
    ("ipv4hint=2001:db8::1", "list of addresses"),
    ("ipv4hint=192.0.2.1,", "empty item"),
    (r'ipv4hint="192.0.2.1\000"', "list of addresses"),
    ("ipv6hint=é", "list of addresses"),
    ("ech=AQI", "base64"),
    ("ech", "base64"),
    ("dohpath", "empty"),
    (r"dohpath=\255", "UTF-8"),
    ("mandatory=alpn", "absent"),
    ("mandatory=mandatory", "each once"),
    ("mandatory=alpn,alpn alpn=h2", "each once"),
    ("mandatory", "empty item"),
    ("key9=" + "x" * 65_536, "65535 octets"),
]

BAD_OCTETS = [
    ("0003 0002 0035 0001 0003 026832", "ascend"),
    ("0009 0000 0009 0000", "ascend"),
    ("ffff 0000", "ascend"),
    ("0003 0003 0035", "cut short"),
    ("0003 0001 35", "two octets"),
    ("0001 0000", "cut short"),
    ("0001 0001 00", "empty"),
    ("0001 0003 056832", "cut short"),
    ("0004 0003 c00002", "cut short"),
    ("0006 0000", "cut short"),
    ("0005 0000", "empty"),
    ("0000 0001 00", "each once"),
    ("0000 0004 0003 0001", "each once"),
    ("0000 0002 0003", "absent"),
    ("0002 0000", "needs alpn"),
    ("0007 0001 ff", "UTF-8"),
]


@pytest.mark.parametrize(("text", "octets", "usual"), GOOD)
def test_text_and_octets_belong_together(text, octets, usual):
    wire = bytes.fromhex(octets)

    params = read_params(text)

    assert pack_params(params) == wire
    assert params_text(params) == usual
    assert unpack_params(WireReader(wire)) == params
    assert read_params(usual) == params


@pytest.mark.parametrize(("text", "words"), BAD_TEXT)
def test_bad_text_is_refused(text, words):
    with pytest.raises(InvalidValue, match=words):
        read_params(text)


@pytest.mark.parametrize(("octets", "words"), BAD_OCTETS)
def test_bad_octets_are_refused(octets, words):
    with pytest.raises(InvalidValue, match=words):
        unpack_params(WireReader(bytes.fromhex(octets)))

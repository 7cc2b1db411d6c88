"""Content types: which of them make a body, or a part of one, more than opaque.

Owns  the choice of a processor by a Content-Type.
Not   reading bodies; character sets (`charsets`).

Source: RFC 6839 and RFC 7303 (suffixes).
"""

import re

TYPE_BYTES_MAX = 256  # of a Content-Type that are looked at to choose a processor
# Whatever stands before the suffix: frameworks ask how the type begins and how it ends.
_JSON = re.compile(rb"(?:application|text)/(?:[^;,]*\+)?json\b")
_XML = re.compile(rb"(?:application|text)/(?:[^;,]*\+)?xml\b")


def processor_of(content_type: bytes) -> str:
    """URLENCODED, MULTIPART, JSON, XML, or "" for a body that is opaque."""
    media_type = content_type[:TYPE_BYTES_MAX].lower()
    if media_type.startswith(b"application/x-www-form-urlencoded"):
        return "URLENCODED"
    if media_type.startswith(b"multipart/form-data"):
        return "MULTIPART"
    if _JSON.match(media_type):
        return "JSON"
    return "XML" if _XML.match(media_type) else ""

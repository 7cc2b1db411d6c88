"""XML bodies: their text and the values of their attributes, which is all that rules ask for.

Owns  the two.
Not   entities: a document that declares any, or names a file that may, is refused before anything is expanded
      or fetched.

All text is one value, as XPath says, and each piece between two tags is another: what stands before an attack
in the document must not hide it from rules that look at how a value begins.

Source: reference manual of ModSecurity v3, "XML" (the XPaths ``/*`` and ``//@*``); XML 1.0.
"""

from collections.abc import Generator
from xml.parsers import expat

from edgestead.waf.limits import CALL_UNITS, XML_DEPTH_MAX, XML_NODES_MAX
from edgestead.waf.transaction import Refused

READ_BYTES = 2_048  # parsed in one portion: up to 500 elements
TEXTS_AT_ONCE = 1_024


class _Reader:
    def __init__(self) -> None:
        self.texts = [""]  # a piece for each stretch between two tags
        self.attributes: list[bytes] = []
        self.depth = 0
        self.nodes = 0

    def start(self, name: str, attributes: list[str]) -> None:
        self.depth += 1
        self.nodes += 1 + len(attributes) // 2
        if self.depth > XML_DEPTH_MAX:
            raise Refused("xml-depth", 413)
        if self.nodes > XML_NODES_MAX:
            raise Refused("xml-nodes", 413)
        for key, value in zip(attributes[::2], attributes[1::2], strict=True):
            if key != "xmlns" and not key.startswith("xmlns:"):
                self.attributes.append(value.encode("utf-8", "replace"))

        self.texts.append("")

    def end(self, name: str) -> None:
        self.depth -= 1
        self.texts.append("")

    def text(self, data: str) -> None:
        self.texts[-1] += data


def _refuse_entity(*declared: object) -> int:
    raise Refused("xml-entities", 400)


def _refuse_external(name: str, system_id: str | None, public_id: str | None, has_subset: int) -> None:
    """``<!DOCTYPE a SYSTEM "http://…">``: that file may declare entities, which others then expand."""
    if system_id is not None or public_id is not None:
        raise Refused("xml-entities", 400)


def reading(body: bytes) -> Generator[int, None, tuple[list[bytes], list[bytes]]]:
    """All text as one value, and behind it the pieces where there are several; the value of each attribute
    but name spaces. Tells the units of work of each portion.

    Raises: Refused 400 for what is not XML or declares entities, 413 over `XML_DEPTH_MAX` or `XML_NODES_MAX`.
    """
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.ordered_attributes = True
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse_external
    parser.EntityDeclHandler = _refuse_entity
    parser.ExternalEntityRefHandler = _refuse_entity
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        for at in range(0, len(body), READ_BYTES):
            nodes = reader.nodes
            parser.Parse(body[at : at + READ_BYTES], False)
            yield READ_BYTES + 4 * CALL_UNITS * (reader.nodes - nodes)
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError):
        raise Refused("xml-syntax", 400) from None
    whole = "".join(reader.texts).encode("utf-8", "replace")
    pieces: list[bytes] = []
    for at in range(0, len(reader.texts), TEXTS_AT_ONCE):
        some = reader.texts[at : at + TEXTS_AT_ONCE]
        pieces += [text.encode("utf-8", "replace") for text in some if text.strip()]
        yield CALL_UNITS * len(some)
    return [whole, *(pieces if len(pieces) > 1 else ())], reader.attributes

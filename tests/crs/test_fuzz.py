"""Whatever a rule file holds: a program or a refusal with its place."""

from hypothesis import given, settings
from hypothesis import strategies as st

from edgestead.crs import Program, RuleError

from .conftest import program

PIECES = [
    "SecRule ", "SecAction ", "SecMarker ", "Include ", "SecRuleRemoveById ", "SecDefaultAction ", "ARGS",
    "XML:/*", "TX:/^a/", "REQUEST_HEADERS:Host", "&", "!", "|", ":", "/", '"', "'", "\\", "\\\n", "\n",
    "\r\n", " ", "#", "@rx ", "@pm ", "@eq ", "@foo ", "@ipMatch ", "@validateByteRange ",
    "@pmFromFile x.data", "1", "1-5", "%{tx.a}", "id:1", "id:2", "phase:2", "chain", "t:none", "t:lowercase",
    "setvar:tx.a=+1", "ctl:ruleRemoveById=1", "severity:CRITICAL", "msg:'a'", "skipAfter:END", ",",
    "é", "\x00", "99999999999",
]  # fmt: skip
GOOD = [
    r"""
    SecRule ARGS|!ARGS:/^a|b/ "@rx \"a" "id:1,phase:2,block,t:none,msg:'a, b',chain"
    SecRule &ARGS "@gt 1" "t:none"
    """,
    r"""
    SecAction \
        "id:1,\
        phase:1,\
        pass,setvar:'tx.a=1'"
    SecMarker END
    SecRuleUpdateTargetById 1 "!ARGS:x"
    """,
]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A good file with some places overwritten."""
    text = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        width = draw(st.integers(0, 5))
        text = (
            text[:start] + draw(st.sampled_from(["", *PIECES]) | st.text(max_size=2)) + text[start + width :]
        )
    return text


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | damaged() | st.text())
def test_a_text_is_a_program_or_refused(text: str) -> None:
    try:
        read = program(text)
    except RuleError as error:
        refusal = error
    else:
        assert isinstance(read, Program)
        return

    assert 0 <= refusal.line <= text.count("\n") + 1
    assert refusal.reason

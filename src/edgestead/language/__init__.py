"""The filter expression language: text to typed tree to closures. No I/O."""

from edgestead.language.compiler import (
    Filter,
    Lists,
    ValueExpression,
    compile_filter,
    compile_value,
    no_lists,
)
from edgestead.language.errors import FilterError
from edgestead.language.fields import FIELDS
from edgestead.language.functions import FUNCTIONS
from edgestead.language.inline import Shortcuts, matching
from edgestead.language.parser import parse_filter, parse_value
from edgestead.language.phases import PHASES, Direction
from edgestead.language.types import BOOL, INT, IP, STRING, Type, Value, ip_text, ip_value
from edgestead.language.view import LazyView, Loader, View, fixed_view, loader_table

__all__ = [
    "BOOL",
    "FIELDS",
    "FUNCTIONS",
    "INT",
    "IP",
    "PHASES",
    "STRING",
    "Direction",
    "Filter",
    "FilterError",
    "LazyView",
    "Lists",
    "Loader",
    "Shortcuts",
    "Type",
    "Value",
    "ValueExpression",
    "View",
    "compile_filter",
    "compile_value",
    "fixed_view",
    "ip_text",
    "ip_value",
    "loader_table",
    "matching",
    "no_lists",
    "parse_filter",
    "parse_value",
]

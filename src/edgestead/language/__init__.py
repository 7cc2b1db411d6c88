"""The filter expression language: text to typed tree to closures. No I/O."""

from .compiler import Filter, Lists, ValueExpression, compile_filter, compile_value, no_lists
from .errors import FilterError
from .fields import FIELDS
from .functions import FUNCTIONS
from .inline import Shortcuts, matching
from .parser import parse_filter, parse_value
from .phases import PHASES, Direction
from .types import BOOL, INT, IP, STRING, Type, Value, ip_text, ip_value
from .view import LazyView, Loader, View, fixed_view, loader_table

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

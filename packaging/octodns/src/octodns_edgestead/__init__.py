"""The octoDNS provider for Edgestead."""

from octodns_edgestead.api import EdgesteadError
from octodns_edgestead.provider import EdgesteadProvider

__version__ = "0.1.0"
__all__ = ["EdgesteadError", "EdgesteadProvider"]

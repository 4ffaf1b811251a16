"""Errors, named for what happened. Each message states the rule, the value and the remedy."""

from anabranch.printable import printable


class AnabranchError(Exception):
    """Base of every error that anabranch raises on purpose; its text is one line, whatever values it quotes."""

    def __str__(self) -> str:
        return printable(super().__str__())


class ConfigError(AnabranchError, ValueError):
    """A parameter is outside its rule."""


class InputError(AnabranchError, ValueError):
    """The data cannot be read as asked: a missing file or column, no rows, a wrong type."""


class SnapshotError(AnabranchError, ValueError):
    """Bytes that should hold a router's state are damaged or belong to another router."""


class QueryError(AnabranchError, RuntimeError):
    """A running query failed; the message names the innermost cause."""


class UnknownMethodError(AnabranchError, AttributeError):
    """An object has no method of this name; the message names those that it has."""


class MissingExtraError(AnabranchError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

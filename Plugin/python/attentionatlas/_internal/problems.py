"""The exceptions of the package."""

from __future__ import annotations


class Error(ValueError):
    """A reader, filter or writer of the plugin failed; the message is its own."""


class Missing(Error):
    """Something that a figure or table needs is missing from the file or the plugin; the message says what."""


class WriteError(Error, OSError):
    """A file cannot be written; the message is the writer's own."""


class NoDisplay(Error, OSError):
    """Surfaces cannot be drawn here; the message says what is missing."""

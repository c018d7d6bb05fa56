"""The interface by which a run reports to its user; ``cli`` implements it and prints."""

from __future__ import annotations

from typing import Protocol


class Console(Protocol):
    """Prints data, messages and errors of a run."""

    def data(self, text: str | bytes, /) -> None:
        """Print data, as it is."""

    def note(self, text: str, /) -> None:
        """Print a message, as a line of its own."""

    def error(self, text: str, /) -> None:
        """Print an error, as a line of its own."""

    def progress(self, text: str, /) -> None:
        """Show how far the run is, until anything else is printed."""

"""The interface through which a run prints; ``cli`` implements it."""

from __future__ import annotations

from typing import Protocol


class Console(Protocol):
    """Prints data, messages and errors of a run."""

    def data(self, text: str | bytes, /) -> None:
        """Print data unchanged."""

    def note(self, text: str, /) -> None:
        """Print a message on a line of its own."""

    def error(self, text: str, /) -> None:
        """Print an error on a line of its own."""

    def progress(self, text: str, /) -> None:
        """Show the progress of the run until other text is printed."""

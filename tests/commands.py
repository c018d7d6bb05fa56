"""The programs that are installed next to the Python that runs the tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

BIN: Final = Path(sys.executable).parent
SPREAD: Final = BIN / "kubectl-spread"
INTERRUPTIBLE: Final = ("env", "--default-signal=INT", str(SPREAD))
"""Runs the plugin with the usual effect of SIGINT, which a background job of a shell ignores, as do its children."""

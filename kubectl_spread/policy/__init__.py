"""Admission policies: the rules that look at one object, in CEL. People read and review the YAML files of this room.

It may import nothing of the other rooms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from importlib import resources
from string import Template
from typing import Final

from kubectl_spread import __version__

OLDEST_MINOR: Final = 30
"""The first minor in which ValidatingAdmissionPolicy is stable."""


class Action(StrEnum):
    """What the API server does with a request that violates a rule."""

    DENY = "deny"
    WARN = "warn"
    AUDIT = "audit"


def text(action: Action, excluded: Sequence[str], minor: int) -> str:
    """Return the policies and their bindings as a stream of YAML documents.

    Args:
        action: What the API server does with a request that violates a rule.
        excluded: The namespaces in which nothing is evaluated.
        minor: The Kubernetes minor of the API server.
    """
    values = {
        "action": action.capitalize(),
        # Quoted, because a namespace may be named as a number or true.
        "excluded": json.dumps([*excluded]),
        "minor": str(minor),
        "version": __version__,
    }
    return "---\n".join(Template(file).substitute(values) for file in _files())


@cache
def codes() -> frozenset[str]:
    """Return the codes of the rules that the policies have."""
    return frozenset(code for file in _files() for code in re.findall(r"message: (?:>-\s+|\")(SPR\d+)", file))


@cache
def _files() -> tuple[str, ...]:
    directory = resources.files(__name__)
    return tuple((directory / name).read_text(encoding="utf-8") for name in ("labels.yaml", "workloads.yaml"))

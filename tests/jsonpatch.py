"""JSON patches, applied as kube-apiserver applies them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any


class FailedTestError(Exception):
    """A ``test`` operation of a patch does not hold."""


def applied(document: Any, operations: Sequence[Any]) -> Any:
    """Return a document after a patch. As in kube-apiserver, a ``test`` for null holds where the field is absent."""
    patched = copy.deepcopy(document)
    for operation in operations:
        *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        parent = patched
        for step in parents:
            parent = parent[int(step) if isinstance(parent, list) else step]
        key = int(last) if isinstance(parent, list) else last
        match operation["op"]:
            case "test":
                present = parent.get(key) if isinstance(parent, dict) else parent[key]
                if present != operation["value"]:
                    raise FailedTestError(operation)
            case "add" if isinstance(parent, list):
                parent.insert(key, operation["value"])
            case "remove":
                del parent[key]
            case "add" | "replace":
                parent[key] = operation["value"]
    return patched

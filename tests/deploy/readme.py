"""The README of the chart, generated from the comments and defaults of its values (``make docs``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

PATH: Final = "deploy/helm/kubectl-spread-monitor/README.md"
_CHART: Final = Path(__file__).parents[2] / "deploy" / "helm" / "kubectl-spread-monitor"
_KEY: Final = re.compile(r"( *)(\w+):")
_HEAD: Final = """# kubectl-spread-monitor

{description}. The monitor of [kubectl spread](https://github.com/kubectl-spread/kubectl-spread) only reads.

```console
$ helm install monitor oci://ghcr.io/kubectl-spread/charts/kubectl-spread-monitor --version {version} -n monitor \\
    --create-namespace
```

[Monitor](https://github.com/kubectl-spread/kubectl-spread/blob/v{version}/docs/monitor.md) describes what it serves,
who may read it, and what to do if it is not ready. The values are named as in the chart of kube-state-metrics where
both have them.

## Values

| value | default | |
| --- | --- | --- |
"""


def text() -> str:
    """Return the README of the chart."""
    chart = _load("Chart.yaml")
    rows = (f"| `{name}` | {default} | {about} |\n" for name, default, about in _rows())
    return _HEAD.format(**chart) + "".join(rows)


def _load(name: str) -> Any:
    return YAML(typ="safe").load(_CHART / name)


def _rows() -> Iterator[tuple[str, str, str]]:
    """Yield the path of each value, its default, and the comment above it."""
    values = _load("values.yaml")
    path: list[str] = []
    comment: list[str] = []
    # The comment at the top is about the file.
    for line in (_CHART / "values.yaml").read_text(encoding="utf-8").partition("\n\n")[2].splitlines():
        key = _KEY.match(line)
        if line.lstrip().startswith("#"):
            comment.append(line.strip("# "))
            continue
        if key and _is_value(values, place := [*path[: len(key[1]) // 2], key[2]]):
            path = place
            default = _at(values, path)
            about = " ".join(comment)
            if about or not (isinstance(default, dict) and default):
                yield ".".join(path), _shown(default), about
        comment = []


def _is_value(values: Any, path: list[str]) -> bool:
    """Return whether a path has mappings only, so that it does not lead into a list."""
    return isinstance(reduce(_member, path[:-1], values), dict) and path[-1] in reduce(_member, path[:-1], values)


def _member(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _at(values: Any, path: list[str]) -> Any:
    return reduce(_member, path, values)


def _shown(default: Any) -> str:
    """Return a default as YAML in one line; nothing for a mapping whose members follow."""
    if isinstance(default, dict) and default:
        return ""
    return f"`{json.dumps(default, ensure_ascii=False)}`"

"""Rendered Helm charts through ``merge`` and ``unmerge``: ``python -m tests.merge.charts DIRECTORY…``.

Each chart in the directories is rendered with its own values by helm, which ``tests.e2e.go_programs`` builds. ``merge``
must write the manifests as they are. Their pod templates, cut out of the text with its comments, become pods with a
constraint, because few charts have pods or matchLabelKeys.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import yaml

from kubectl_spread.sources.decode import yaml_values
from tests.e2e import go_programs
from tests.merge.running import run

_TEMPLATES: Final = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"))
_COMMENT: Final = re.compile(r"(?<!\S)#")
_CONSTRAINT: Final = """\
topologySpreadConstraints:
# Some replicas in each zone.
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  matchLabelKeys: [{key}]
  labelSelector:
    matchLabels: {{no-chart: has-this}}  # As it is written.
"""


def charts(directories: Sequence[str]) -> Iterator[Path]:
    """Yield the directories of charts, without those of charts inside charts."""
    for directory in directories:
        found = {path.parent for path in Path(directory).rglob("Chart.yaml")}
        yield from sorted(chart for chart in found if not found.intersection(chart.parents))


def pods(text: str) -> Iterator[str]:
    """Yield the pod templates of manifests as pods, each with a constraint that lists the first of its labels."""
    lines = text.splitlines(keepends=True)
    for document in yaml.compose_all(text, Loader=yaml.CBaseLoader):
        for path in _TEMPLATES:
            template, labels, spec = (
                _field(document, *path, *rest) for rest in ((), ("metadata", "labels"), ("spec",))
            )
            if not labels or not labels.value or not spec or _field(spec, "topologySpreadConstraints"):
                continue
            first, column = spec.start_mark, template.start_mark.column
            added = indent(_CONSTRAINT.format(key=labels.value[0][0].value), " " * first.column)
            before, after = lines[template.start_mark.line : first.line], lines[first.line : template.end_mark.line]
            cut = [*before, *added.splitlines(keepends=True), *after]
            body = "".join(line[column:] if line[:column].isspace() else line.lstrip(" ") for line in cut)
            yield f"apiVersion: v1\nkind: Pod\n{body}" if column else ""


def _field(node: Any, *path: str) -> Any:
    for step in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) and not node.flow_style else ()
        node = next((value for key, value in pairs if key.value == step), None)
    return node


def outcome(pod: str) -> str:
    """Return what became of a pod that is merged, unmerged and merged again."""
    stored = run("merge", pod)
    unmerged = run("unmerge", stored.stdout)
    again = run("merge", unmerged.stdout)
    if stored.exit_code:
        return f"pod that merge refuses: {stored.stderr}"
    if unmerged.exit_code:
        return f"pod that unmerge refuses: {unmerged.stderr}"
    if again.exit_code or not _values(pod) == _values(unmerged.stdout) != _values(stored.stdout):
        return f"FAULT: another pod: {again.stderr}"
    if _values(again.stdout) != _values(stored.stdout):
        return "FAULT: another stored pod"
    if stored.stderr:
        return f"pod with a message: {stored.stderr}"
    if len(_COMMENT.findall(stored.stdout)) != len(_COMMENT.findall(pod)):
        return "FAULT: comments are missing"
    return "pod with the same text" if unmerged.stdout == pod else "pod with other white space"


def _values(text: str) -> list[Any]:
    return yaml_values.read_all(text.encode(), "")


def manifests(text: str) -> str:
    """Return what became of manifests of which none has to be changed."""
    merged = run("merge", text)
    if merged.exit_code:
        return f"refused: {merged.stderr}"
    return "manifests with the same text" if merged.stdout == text else "FAULT: another text"


def main(directories: Sequence[str]) -> None:
    """Print what became of the charts, and each fault and message; the exit status is 1 for a fault."""
    counts: Counter[str] = Counter()
    for chart in charts(directories):
        command = [str(go_programs.binary(*go_programs.HELM)), "template", "release", str(chart)]
        rendered = subprocess.run(command, check=False, capture_output=True, text=True)
        if rendered.returncode or not rendered.stdout.strip():
            counts["chart that helm does not render"] += 1
            continue
        counts["rendered chart"] += 1
        for result in (manifests(rendered.stdout), *map(outcome, pods(rendered.stdout))):
            what, separator, message = result.partition(":")
            counts[what] += 1
            if separator:
                print(f"{chart}: {what}: {' '.join(message.split())}", flush=True)
    print("\n".join(f"{number:6} {text}" for text, number in counts.most_common()))
    sys.exit(bool(counts["FAULT"]))


if __name__ == "__main__":
    main(sys.argv[1:])

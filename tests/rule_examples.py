"""An example of each rule, from its bad cases: what ``explain CODE`` and docs/rules.md print."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import Rule
from tests.jsonpatch import applied

PATH: Final = "kubectl_spread/rules/examples.json"
_CASES: Final = Path(__file__).parent / "rules"
_OPTIONS: Final = re.compile(r"# options: (.*)\n")
_LINES: Final = re.compile(r"\n  \S+:\d+: (?:add|change|remove) .*(?:\n {6}.*)*")
"""The lines to write in a manifest, for which an example has the manifest after the patch."""
_PLACE: Final = re.compile(r" \(\S+:\d+\)")
"""The place of an object in the file of a case, which the reader does not have."""
_SHOW_ALL: Final = ("--severity", "info", "--show", "all", "--fail-on", "never", "--color", "never")
_WIDTH: Final = 78
_LEFT_OUT: Final = frozenset(
    {"annotations", "apiVersion", "containers", "managedFields", "ownerReferences", "selector"}
)
_LEFT_OUT_OF_OBJECTS: Final = frozenset(
    {"creationTimestamp", "generateName", "generation", "namespace", "resourceVersion", "status", "uid"}
)
"""Fields that no rule is explained by."""
_FIELDS: Final = ("topologySpreadConstraints", "affinity")


def text() -> str:
    """Return the examples of all rules as JSON, by code."""
    return json.dumps({rule.code: _example(rule) for rule in RULES}, indent=1, ensure_ascii=False) + "\n"


def _example(rule: Rule) -> dict[str, str]:
    """Return the example that is best to read: of the rule's own severity, with something to type, and short.

    Pods that run show best what a rule warns of.
    """
    candidates = [
        (
            finding["severity"] != rule.severity.value,
            finding["severity"] != "error" and "pending" in finding,
            not (finding.get("commands") or example["patched"]),
            len(example["object"] + example["finding"]),
            example,
        )
        for path in sorted((_CASES / rule.code).glob("bad-*.yaml"))
        for finding, example in _of_case(path, rule.code)
    ]
    return min(candidates, key=lambda candidate: candidate[:4])[4]


def _of_case(path: Path, code: str) -> Iterator[tuple[Any, dict[str, str]]]:
    """Yield the first finding of a rule on a case, and the example that it makes."""
    content = path.read_text(encoding="utf-8")
    match = _OPTIONS.match(content)
    options = match[1] if match else ""
    arguments = ("check", "-f", str(path), "--select", code, *_SHOW_ALL, *options.split())
    findings = json.loads(_run(*arguments, "-o", "json"))["findings"]
    if findings:
        finding = findings[0]
        stored = _object(content, finding)
        # The workload of a patch may be missing: a case may have its pods alone.
        patch = finding.get("patch") if stored["kind"] == finding["object"]["kind"] else None
        patched = _excerpt(applied(stored, patch["operations"]), finding["path"]) if patch else ""
        yield (
            finding,
            {
                "options": options,
                "object": _excerpt(stored, finding["path"]),
                # As for a cluster, whose commands name no file.
                "finding": _printed(_run(*arguments).replace(f" -f {path}", "")),
                "patched": patched,
            },
        )


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, prog_name="kubectl spread")
    if result.exit_code not in (0, 1):
        raise ValueError(result.output)
    return result.stdout


def _printed(report: str) -> str:
    """Return the table and the finding of a report, without its header and its last line."""
    printed = _LINES.sub("", _PLACE.sub("", "\n\n".join(report.rstrip("\n").split("\n\n")[1:-1])))
    return "\n".join(_wrapped(line) for line in printed.splitlines())


def _wrapped(line: str) -> str:
    """Return a sentence in short lines; commands and rows of the table are one line of any length."""
    sentence = line.lstrip()
    indent = line[: len(line) - len(sentence)]
    if not indent or sentence.startswith("$"):
        return line
    return textwrap.fill(line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _object(content: str, finding: Any) -> Any:
    """Return the object that a finding is about: its first pod, or its workload where a template is at fault."""
    objects = list(_objects(content))
    workload = (finding["object"]["kind"], finding["object"]["name"])
    pods = [("Pod", pod) for pod in finding["pods"]]
    names = [workload, *pods] if finding.get("patch") else [*pods, workload]
    named = {(part["kind"], part["metadata"].get("name")): part for part in objects}
    return next((named[name] for name in names if name in named), objects[0])


def _objects(content: str) -> Iterator[Any]:
    for document in yaml.safe_load_all(content):
        yield from document["items"] if document["kind"] == "List" else [document]


def _excerpt(stored: Any, path: str) -> str:
    """Return an object as YAML, with only the fields that matter for a finding at a path."""
    other = next((field for field in _FIELDS if field not in path and any(name in path for name in _FIELDS)), "")
    left_out = _LEFT_OUT | {other}
    top = {key: _without(part, left_out) for key, part in stored.items() if key not in left_out | _LEFT_OUT_OF_OBJECTS}
    top["metadata"] = {key: part for key, part in top["metadata"].items() if key not in _LEFT_OUT_OF_OBJECTS}
    return yaml.safe_dump(top, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True)


def _without(part: Any, names: frozenset[str]) -> Any:
    """Return a part of an object without the fields of these names; selectors of constraints have other names."""
    if isinstance(part, dict):
        return {key: _without(value, names) for key, value in part.items() if key not in names}
    return [_without(value, names) for value in part] if isinstance(part, list) else part

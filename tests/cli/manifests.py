"""Manifests of every shape, marked at the expected position of the finding, and what ``check`` finds in them."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests import contract
from tests.builders import Json

HERE = "@"
"""Marks the expected position of the finding in a text; it is removed before the text is read."""
CLAUSE = "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: other}}"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
"""
POD = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: p, labels: {{app: web}}}}
spec:
  topologySpreadConstraints: [{HERE}{{{CLAUSE}}}]
"""
BLOCK = CLAUSE.replace(", ", "\n          ")
OF_JSON = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "other"}},
}
TEMPLATE: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "annotations": {"said": "ö €"}},
    "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"topologySpreadConstraints": [OF_JSON]}}},
}


def item(text: str, by: str = "") -> str:
    """Return a document as an item of a block sequence."""
    first, *rest = text.splitlines(keepends=True)
    return f"{by}- {first}" + "".join(f"{by}  {line}" for line in rest)


def marked(manifest: Json, indent: int | None) -> str:
    return json.dumps(manifest, indent=indent, ensure_ascii=False).replace('{"maxSkew"', f'{HERE}{{"maxSkew"')


def pretty(manifest: Json) -> str:
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    at = text.index("{", text.index('"topologySpreadConstraints"'))
    return text[:at] + HERE + text[at:]


def place(text: str) -> tuple[str, tuple[int, int]]:
    """Return a text without its mark, and the line and column of the mark."""
    before, _, behind = text.partition(HERE)
    assert HERE not in behind
    return before + behind, (before.count("\n") + 1, len(before) - before.rfind("\n"))


def findings(*arguments: str, stdin: str | None = None) -> list[Any]:
    outcome = CliRunner().invoke(cli, ["check", "--select", "SPR206", "-o", "json", *arguments], input=stdin)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    report_findings: list[Any] = contract.loaded(outcome.stdout)["findings"]
    return report_findings


def sources(*arguments: str, stdin: str | None = None) -> list[Any]:
    return [finding.get("source") for finding in findings(*arguments, stdin=stdin)]


LIST = "apiVersion: v1\nkind: List\nitems:\n"
CONFIG = "# why\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
SHAPES = {
    "one document": f"{WEB}      - {HERE}{BLOCK.replace('          ', '        ')}\n",
    "an item that is further in": f"{WEB}        -   {HERE}{BLOCK.replace('          ', '            ')}\n",
    "the second document": f"{CONFIG}---\n# more\n\n{WEB}        - {HERE}{BLOCK}\n",
    "after a document with directives": f"%YAML 1.1\n---\n{CONFIG}...\n---\n{WEB}        - {HERE}{BLOCK}\n",
    "Windows line breaks": f"{WEB}        - {HERE}{BLOCK}\n".replace("\n", "\r\n"),
    "brackets": POD,
    "brackets behind what is not ASCII": POD.replace("spec:\n ", "spec:\n  'ö€😀': {}\n "),
    "an anchor": f"x: &x {{app: web}}\n{WEB.replace('labels: {app: web}', 'labels: *x')}        - {HERE}{BLOCK}\n",
    "an item that is an alias": f"x: {HERE}&x\n  {BLOCK.replace('          ', '  ')}\n{WEB}        - *x\n",
    "a List": LIST + item(CONFIG.removeprefix("# why\n")) + item(f"{WEB}        - {HERE}{BLOCK}\n"),
    "an indented List": LIST
    + item(CONFIG.removeprefix("# why\n"), "  ")
    + item(f"{WEB}        - {HERE}{BLOCK}\n", "  "),
    "a List whose kind stands below": (
        "apiVersion: v1\nitems:\n" + item(f"{WEB}        - {HERE}{BLOCK}\n") + "kind: List\n"
    ),
    "a List with an anchor": (
        LIST
        + item("apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: c}\n")
        + item(f"{WEB}        - {HERE}{BLOCK}\n")
    ),
    "JSON": pretty(TEMPLATE) + "\n",
    "JSON in one line": marked(TEMPLATE, None),
    "a second JSON document on the line": json.dumps({"apiVersion": "v1", "kind": "Secret"}) + marked(TEMPLATE, None),
    "a JSON List": pretty(
        {"kind": "List", "apiVersion": "v1", "items": [{"apiVersion": "v1", "kind": "Secret"}, TEMPLATE]}
    ),
    "a JSON List in one line": marked(
        {
            "metadata": {"ö": 1},
            "kind": "List",
            "apiVersion": "v1",
            "items": [{"apiVersion": "v1", "kind": "X"}, TEMPLATE],
        },
        None,
    ),
    "a typed list": pretty(
        {
            "kind": "DeploymentList",
            "apiVersion": "apps/v1",
            "items": [{key: TEMPLATE[key] for key in ("metadata", "spec")}],
        }
    ),
    "YAML behind JSON": json.dumps({"apiVersion": "v1", "kind": "Secret"}) + f"\n---\n{WEB}        - {HERE}{BLOCK}\n",
}

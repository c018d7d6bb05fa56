"""Run ``merge`` and ``unmerge`` on texts, and write the pod of most of these texts."""

from __future__ import annotations

import textwrap

from click.testing import CliRunner, Result

from kubectl_spread.cli import cli

HEAD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web, rev: r1, tenant: a}
spec:
"""


def run(command: str, text: str | bytes, *options: str) -> Result:
    """Run a command on a text on standard input, by default as 1.37."""
    version = () if any(option.startswith("--server-version") for option in options) else ("--server-version=1.37",)
    return CliRunner().invoke(cli, [command, "-f", "-", *version, *options], input=text)


def out(command: str, text: str | bytes, *options: str) -> str:
    """Return the standard output of a run that succeeds without messages."""
    result = run(command, text, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout_bytes.decode()


def pod(spec: str) -> str:
    """Return a pod labelled app=web, rev=r1 and tenant=a, with the fields of a spec."""
    return HEAD + textwrap.indent(textwrap.dedent(spec), "  ")


def constrained(fields: str) -> str:
    """Return that pod with one spread constraint, which ends with ``fields``."""
    constraint = "topologySpreadConstraints:\n- maxSkew: 1\n  topologyKey: zone\n  whenUnsatisfiable: DoNotSchedule\n"
    return pod(constraint + textwrap.indent(textwrap.dedent(fields), "  "))

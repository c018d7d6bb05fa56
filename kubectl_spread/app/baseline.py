"""``check --baseline FILE``: the findings of an earlier report."""

from __future__ import annotations

from kubectl_spread.errors import UsageError
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import plural
from kubectl_spread.report import model
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.engine import Baseline, FindingKey
from kubectl_spread.sources.files import baseline, inputs


def load(path: str, filename: tuple[str, ...]) -> Baseline:
    """Read the report of an earlier ``check -o json`` or ``-o yaml``.

    Args:
        path: The file, or ``-``.
        filename: The files of ``--filename``, where standard input may not be named again.

    Raises:
        UsageError: Standard input is named twice.
        SourceError: The file cannot be read.
        DecodeError: It is not a report.
    """
    if path == inputs.STDIN and inputs.STDIN in filename:
        raise UsageError("--baseline and --filename cannot both be standard input")
    severities: dict[FindingKey, list[Severity]] = {}
    for finding in baseline.read(path, inputs.standard_input(), api_version=model.API_VERSION, kind=model.KIND):
        ref = ObjectRef(finding.namespace, finding.object.kind, finding.object.name)
        key = FindingKey(finding.code, ref, finding.path)
        severities.setdefault(key, []).append(Severity(finding.severity))
    return Baseline({key: tuple(of_key) for key, of_key in severities.items()})


def gone(summary: model.Summary) -> str:
    """Return a note on findings of the baseline that do not occur any more, or ""."""
    if not isinstance(summary.gone, int) or not summary.gone:
        return ""
    return f"{plural(summary.gone, 'finding')} of the baseline {'is' if summary.gone == 1 else 'are'} gone"

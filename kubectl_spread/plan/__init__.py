"""Which running pods does a plan evict because rules report their stale selectors? The search is in `engine`.

It may import `rules` and below. It does no input or output and reads no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedPod
from kubectl_spread.audit.merge.verdicts import BINDING_KEYS, Confidence, Verdict
from kubectl_spread.engine.targets import StalePod
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.engine import findings_of
from kubectl_spread.rules.selectors import REMOVED_LABEL, STALE_LABEL

_VERDICTS: Final = {STALE_LABEL.code: Verdict.STALE_LABEL, REMOVED_LABEL.code: Verdict.REMOVED_LABEL}
STALE: Final = frozenset(_VERDICTS.values())
"""The verdicts on the keys of stale pods."""
_BOUND_AGAIN: Final = "label {key} gets its node's value when its replacement is bound, so that it would be stale too"
_AUTHORED: Final = "the API does not record whether label {key} was removed or never there"


def stale_pods(audit: Audit) -> list[StalePod]:
    """Return the running pods that rules report at severity warning or higher, each once, by namespace and name."""
    rows: dict[tuple[ObjectRef, str], list[EvaluatedConstraint]] = {}
    for row in audit.rows:
        if row.members:
            rows.setdefault((row.workload, str(row.path)), []).append(row)
    stale: dict[ObjectRef, StalePod] = {}
    for finding in findings_of(audit, (STALE_LABEL, REMOVED_LABEL), Severity.WARNING):
        counted = bool(finding.values["siblings"])
        for member in _members(rows.get((finding.ref, finding.path), ()), _VERDICTS[finding.code]):
            stale.setdefault(member.pod.ref, _stale(member, finding.ref, finding.name, counted=counted))
    return [stale[ref] for ref in sorted(stale)]


def _members(rows: list[EvaluatedConstraint] | tuple[()], verdict: Verdict) -> Iterator[EvaluatedPod]:
    for row in rows:
        for member in row.members:
            if member.pod.node and not member.pod.terminating and any(key.verdict is verdict for key in member.keys):
                yield member


def _stale(member: EvaluatedPod, workload: ObjectRef, rule: str, *, counted: bool) -> StalePod:
    keys = [key for key in member.keys if key.verdict in STALE]
    why = "its siblings do not count it" if counted else f"its affinity still has the old value of {keys[0].key}"
    lasting = ""
    for key in keys:
        if key.key in BINDING_KEYS:
            lasting = _BOUND_AGAIN.format(key=key.key)
        elif key.verdict is Verdict.REMOVED_LABEL and key.confidence is not Confidence.CERTAIN:
            lasting = _AUTHORED.format(key=key.key)
    return StalePod(member.pod, workload, member.term.topology_key, f"{rule}: {why}", lasting)

"""SPR207: stored pods that the API would refuse to create again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import Evidence, Rule
from kubectl_spread.rules.rule_input import InputPart, RuleInput
from kubectl_spread.rules.stored import names_a_key_twice, refused_pods

_COPIES: Final = (
    "; this is about copies (a restored backup, a syncer such as vcluster), for their owner makes new pods from its "
    "template"
)
_CORRECT: Final = "correct the field that the error names in the saved manifest before it is created"


def _refused_again(subject: RuleInput) -> Iterator[Evidence]:
    """Yield stored pods that could not be created as they are; an owner makes new ones from its template."""
    if not subject.audit.context.extra_checks.recreate:
        return
    pods, errors = refused_pods(subject, subject.audit.admission.creations)
    if pods:
        owned = pods[0].pod_class.owner is not None
        values = {"errors": "; ".join(errors), "owner": _COPIES if owned else ""}
        severity = Severity.INFO if owned else Severity.ERROR
        fix = None if names_a_key_twice(errors) else _CORRECT
        yield Evidence(tuple(pod.name for pod in pods), values, severity, fix)


REFUSED_AGAIN: Final = Rule(
    code="SPR207",
    name="refused-again",
    severity=Severity.ERROR,
    summary="The API would refuse the stored pod if it were created again as it stands (--recreate)",
    message="created again, they are refused: {errors}{owner}",
    why=(
        "A merged pod holds its matchLabelKeys and, in the selector, what was made of them. kube-apiserver takes the "
        "two together for a contradiction, so a backup that is restored, a clone, a copy into another cluster or "
        "kubectl replace --force loses the pod. Pods that a controller owns come back from its template."
    ),
    fix="run the saved manifest through kubectl spread unmerge before it is created; correct by hand what that leaves",
    source="https://github.com/loft-sh/vcluster/issues/3684",
    needs_nodes=False,
    of=frozenset({InputPart.PODS}),
    check=_refused_again,
)

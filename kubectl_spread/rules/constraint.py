"""SPR2xx: the constraint or the template by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.rules.model import Evidence, Rule, Severity, Subject


def _refused(subject: Subject) -> Iterator[Evidence]:
    for refusal, pods in subject.refusals:
        yield Evidence(pods, {"refused": str(refusal.refused), "errors": "; ".join(refusal.messages)})


REFUSED: Final = Rule(
    code="SPR201",
    name="refused",
    severity=Severity.ERROR,
    summary="kube-apiserver would refuse the pod, or the pods of a template",
    message="kube-apiserver refuses {refused}: {errors}",
    why=(
        "A template is judged as it is written, its pods after the merge: a key that stands in matchLabelKeys and in "
        "the selector, or twice in matchLabelKeys, passes in a Deployment and then every pod is refused. A manifest "
        "that was exported from a cluster holds the merged part already and is refused as well. A path that ends in "
        "[i][j] is about entry j of matchLabelKeys in constraint i."
    ),
    fix="correct the field that the error names; run an exported pod through kubectl spread unmerge",
    source="https://github.com/kubernetes/kubernetes/issues/130063",
    needs_nodes=False,
    check=_refused,
)

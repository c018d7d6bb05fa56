"""Comparison: what another Kubernetes would make of the same objects."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_spread.audit.evaluation.evaluators import Evaluator
from kubectl_spread.audit.merge.admission_check import AdmissionCheck
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.features import Behaviour


class Comparison:
    """The same snapshot by another behaviour; every answer is computed once, at first use."""

    def __init__(self, behaviour: Behaviour, evaluator: Evaluator, templates: Iterable[Template]) -> None:
        """Compare ``behaviour`` with that of ``evaluator``."""
        self.behaviour = behaviour
        self.evaluator = evaluator.judged_by(behaviour)
        self.admission = AdmissionCheck(behaviour)
        self._templates: dict[ObjectRef, list[Template]] = {}
        for template in templates:
            self._templates.setdefault(template.workload, []).append(template)

    def templates(self, workload: ObjectRef) -> list[Template]:
        """Return the templates of a workload."""
        return self._templates.get(workload, [])

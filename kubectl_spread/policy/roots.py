"""Where objects have pod templates, and the CEL variables that the expressions of all rules share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.podclasses import IGNORE_ANNOTATION
from kubectl_spread.audit.snapshot.templates import COMPLETION_INDEX, labels_of_controller
from kubectl_spread.kube.features import Behaviour

_NO_LABELS: Final = "[]"


class Root(msgspec.Struct, frozen=True):
    """A place of pod templates, or of pods.

    Attributes:
        name: The name of the place, a part of the name of its policy.
        template: The CEL expression of the template, or of the pod.
        kinds: The kinds that have it there.
        resources: Their resources, by API group.
        job_spec: The CEL expression of the spec of Jobs; "" where there are none.
    """

    name: str
    template: str
    kinds: tuple[str, ...]
    resources: Mapping[str, tuple[str, ...]]
    job_spec: str = ""

    @property
    def labels(self) -> str:
        """The CEL expression of the labels of its pods."""
        return f"{self.template}.?metadata.?labels.orValue({{}})"

    @property
    def changed(self) -> str:
        """A CEL condition: the object is new, or an update changes a field of the pods that the rules read."""
        old = self.template.replace("object", "oldObject", 1)
        fields = ("metadata.?labels", "spec.?topologySpreadConstraints", "spec.?affinity")
        changes = [f"{self.template}.{field} != {old}.{field}" for field in fields]
        return " ||\n".join(['request.operation == "CREATE"', *changes])


PODS: Final = Root("pods", "object", ("Pod",), {"": ("pods",)})
WORKLOADS: Final = Root(
    "workloads",
    "object.spec.template",
    ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"),
    {
        "apps": ("deployments", "replicasets", "statefulsets", "daemonsets"),
        "batch": ("jobs",),
        "": ("replicationcontrollers",),
    },
    job_spec="dyn(object).spec",
)
CRON_JOBS: Final = Root(
    "cronjobs",
    "object.spec.jobTemplate.spec.template",
    ("CronJob",),
    {"batch": ("cronjobs",)},
    job_spec="object.spec.jobTemplate.spec",
)
POD_TEMPLATES: Final = Root("podtemplates", "object.template", ("PodTemplate",), {"": ("podtemplates",)})
TEMPLATES: Final = (WORKLOADS, CRON_JOBS, POD_TEMPLATES)
ROOTS: Final = (PODS, *TEMPLATES)


_COMPARISONS: Final = "(t.match.size() + t.mismatch.size()) * (t.match.size() + t.mismatch.size() + t.selected.size())"
_MOST_COMPARISONS: Final = 2_000_000
"""More comparisons of keys take kube-apiserver seconds, since its cost budget does not count those of short texts.

Source: kubernetes v1.37.1 staging/src/k8s.io/apiserver/pkg/cel/library/cost.go, traversalCost.
"""


def text(value: object) -> str:
    """Return a text or a list of texts as a CEL literal."""
    return json.dumps(value)


def is_text(expression: str) -> bool:
    """Tell whether a CEL expression is one literal text."""
    return re.fullmatch(r'"[^"\\]*"', expression) is not None


def repeated(keys: str) -> str:
    """Return the condition that a list has a key twice."""
    return f"{keys}.indexOf(key) != {keys}.lastIndexOf(key)"


def known(key: str) -> str:
    """Return the condition that the pods have a label, or will get it from their controller."""
    return f"({key} in variables.labels || {key} in variables.presumed)"


def variables(root: Root) -> dict[str, str]:
    """Return the CEL expressions of the shared variables, by name, in the order in which they build on each other.

    ``all`` are the terms of a pod: maps with these keys, each present whatever the pod states:

    - ``spread``, ``anti``: the term is a spread constraint, or pod anti-affinity;
    - ``required``: the scheduler filters nodes by it;
    - ``pins``: a DoNotSchedule constraint with more domains than the nodes that the pod can use;
    - ``topologyKey``, ``match``, ``mismatch``: the fields topologyKey, matchLabelKeys and mismatchLabelKeys;
    - ``selects``: labelSelector is set;
    - ``labels``, ``requirements``, ``selected``: matchLabels, matchExpressions, and the keys of both.

    ``listed`` are all of them, also where they have too many keys to compare, and ``all`` is empty then.
    """
    spec = f"{root.template}.spec"
    lists = [_spread_constraints(spec)]
    for field, anti in (("podAffinity", False), ("podAntiAffinity", True)):
        path = f"{spec}.?affinity.?{field}.?"
        lists.append(_affinity(f"{path}requiredDuringSchedulingIgnoredDuringExecution", "t", anti=anti, required=True))
        preferred = f"{path}preferredDuringSchedulingIgnoredDuringExecution"
        lists.append(_affinity(preferred, "t.podAffinityTerm", anti=anti, required=False))
    return {
        "labels": root.labels,
        "presumed": _presumed(root),
        "ignored": (
            f'object.metadata.?annotations[?{text(IGNORE_ANNOTATION)}].orValue("").split(",")'
            '.map(word, word.trim()).filter(word, word != "")'
        ),
        "listed": " +\n".join(lists),
        "all": f"variables.listed.map(t, {_COMPARISONS}).sum() <= {_MOST_COMPARISONS} ? variables.listed : []",
    }


def _presumed(root: Root) -> str:
    """Return the expression of the labels that the controller of the pods sets, and that the template does not."""
    cases = [
        f"request.kind.kind == {text(kind)} ? {text(labels_of_controller(kind))} :"
        for kind in root.kinds
        if labels_of_controller(kind)
    ]
    labels = " ".join([*cases, _NO_LABELS])
    if root.job_spec:
        indexed = f'{root.job_spec}.?completionMode.orValue("") == "Indexed"'
        labels = f"({labels}) + ({indexed} ? {text([COMPLETION_INDEX])} : {_NO_LABELS})"
    if labels == _NO_LABELS:
        return labels
    unset = "!(key in variables.labels)"
    if "Job" in root.kinds:
        # The API server has set them already. No author knows their value, so that check presumes it.
        unset += ' || request.kind.kind == "Job" && key.endsWith("controller-uid")'
    return f"({labels}).filter(key, {unset})"


def merged(behaviour: Behaviour) -> str:
    """Return the beginning of a condition: the API server merges the keys of a term."""
    return "" if behaviour.merges_spread_selectors else "!t.spread && "


def _spread_constraints(spec: str) -> str:
    pins = (
        't.whenUnsatisfiable == "DoNotSchedule" && '
        '(t.?nodeAffinityPolicy.orValue("Honor") == "Ignore" || t.?minDomains.orValue(1) > 1)'
    )
    required = 't.whenUnsatisfiable == "DoNotSchedule"'
    return _terms(f"{spec}.?topologySpreadConstraints", "t", spread=True, required=required, pins=pins)


def _affinity(path: str, term: str, *, anti: bool, required: bool) -> str:
    return _terms(
        path, term, anti=anti, required=str(required).lower(), mismatch=f"{term}.?mismatchLabelKeys.orValue([])"
    )


def _terms(
    path: str,
    term: str,
    *,
    required: str,
    spread: bool = False,
    anti: bool = False,
    pins: str = "false",
    mismatch: str = "[]",
) -> str:
    """Return the expression of the terms in a list of the API."""
    selector = f"{term}.?labelSelector"
    match_labels, expressions = f"{selector}.?matchLabels.orValue({{}})", f"{selector}.?matchExpressions.orValue([])"
    fields = {
        "spread": str(spread).lower(),
        "anti": str(anti).lower(),
        "required": required,
        "pins": pins,
        "topologyKey": f"{term}.topologyKey",
        "match": f"{term}.?matchLabelKeys.orValue([])",
        "mismatch": mismatch,
        "selects": f"has({term}.labelSelector)",
        "labels": match_labels,
        "requirements": expressions,
        "selected": f"{match_labels}.map(key, key) + {expressions}.map(r, r.key)",
    }
    entries = ",\n".join(f"  {text(name)}: dyn({value})" for name, value in fields.items())
    return f"{path}.orValue([]).map(t, {{\n{entries}\n}})"

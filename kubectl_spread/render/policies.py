"""Admission policies as YAML for ``kubectl apply``."""

from __future__ import annotations

import textwrap

from kubectl_spread import __version__
from kubectl_spread.phrases import listed
from kubectl_spread.policy.documents import Action, Policies
from kubectl_spread.render import yaml_text
from kubectl_spread.render.ci.common import HOME

_EFFECTS = {
    Action.DENY: "kube-apiserver refuses a request that violates a rule.",
    Action.WARN: "kube-apiserver warns the sender of a request that violates a rule, and accepts the request.",
    Action.AUDIT: "kube-apiserver accepts a request that violates a rule, and writes the violation to its audit log.",
}
_WIDTH = 110


def text(policies: Policies) -> str:
    """Return policies as a stream of YAML documents, after comments that say what they do."""
    codes = [rule.code for rule in policies.effective_rules]
    rules = f"{'rule' if len(codes) == 1 else 'rules'} {listed(codes, len(codes))}"
    comments = (
        f"Admission policies for Kubernetes 1.{policies.behaviour.minor}, printed by kubectl-spread {__version__}.",
        f"They evaluate new and changed objects by the {rules}. kubectl spread explain CODE explains a rule.",
        f"{_EFFECTS[policies.action]} A request that cannot be evaluated is accepted (failurePolicy: Ignore).",
        "Install: kubectl apply -f FILE. Remove: kubectl delete -f FILE.",
        f"{HOME}/blob/main/docs/policy.md",
    )
    lines = (line for comment in comments for line in textwrap.wrap(comment, _WIDTH))
    return "".join(f"# {line}\n" for line in lines) + yaml_text.dump(policies.documents(), explicit_start=True)

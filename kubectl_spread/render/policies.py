"""Admission policies as YAML for ``kubectl apply``."""

from __future__ import annotations

from kubectl_spread import __version__
from kubectl_spread.policy.documents import Action, Policies
from kubectl_spread.render import yaml_text

_EFFECTS = {
    Action.DENY: "refuses violations",
    Action.WARN: "accepts violations with a warning",
    Action.AUDIT: "accepts violations and writes them to its audit log",
}


def text(policies: Policies) -> str:
    """Return policies as a stream of YAML documents, after comments that say what they do."""
    codes = ", ".join(sorted(rule.code for rule in policies.rules))
    comments = (
        f"Admission policies for Kubernetes 1.{policies.behaviour.minor}, printed by kubectl-spread {__version__}.",
        f"They evaluate new objects and changes by the rules {codes}.",
        f"kube-apiserver {_EFFECTS[policies.action]}. kubectl spread explain CODE explains a rule.",
        "Install: kubectl apply -f FILE. Remove: kubectl delete -f FILE.",
    )
    return "".join(f"# {line}\n" for line in comments) + yaml_text.dump(policies.documents(), explicit_start=True)

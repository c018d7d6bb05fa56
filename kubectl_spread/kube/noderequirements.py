"""Requirements: which values of a node's labels does a pod, or a NodePool, allow, and do the two have one in common?

Source: kubernetes-sigs/karpenter v1.15.0 pkg/scheduling/requirement.go and requirements.go, Compatible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import NodeSelectorRequirement
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.nodeaffinity import parse_int
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.phrases import listed, value

_PROVIDERS: Final = (
    "kubernetes.io",
    "k8s.io",
    "k8s.aws",
    "amazonaws.com",
    "azure.com",
    "google.com",
    "alibabacloud.com",
)
"""The ends of the prefixes of labels that a provider may give a node without a requirement in its NodePool."""


class AllowedValues(msgspec.Struct, frozen=True):
    """The values that a label may have.

    Attributes:
        values: The values that are allowed, or those that are not, where ``excluded``.
        excluded: Whether all other values are allowed.
        least: The smallest number that is allowed; None for any value.
        most: The largest number that is allowed; None for any value.
    """

    values: frozenset[str] = frozenset()
    excluded: bool = True
    least: int | None = None
    most: int | None = None

    @property
    def allows_absent(self) -> bool:
        """Whether a node without the label is allowed, as NotIn and DoesNotExist do."""
        return self.excluded == bool(self.values)

    @property
    def is_empty(self) -> bool:
        """Whether no value is allowed."""
        impossible = self.least is not None and self.most is not None and self.least > self.most
        return impossible or not (self.values or self.excluded)

    @property
    def listed(self) -> frozenset[str] | None:
        """The values, where they are listed; None where they are not."""
        return None if self.excluded else self.values

    @property
    def text(self) -> str:
        """The values in words."""
        names = listed([value(each) for each in sorted(self.values)])
        if not self.excluded:
            return names if self.values else "absent"
        if self.least is not None or self.most is not None:
            bounds = (f"at least {self.least}" if self.least is not None else "", self._upper)
            return " and ".join(filter(None, bounds))
        return f"not {names}" if self.values else "any value"

    @property
    def _upper(self) -> str:
        return f"at most {self.most}" if self.most is not None else ""

    def allows(self, text: str) -> bool:
        """Tell whether a value is allowed."""
        if (text in self.values) == self.excluded:
            return False
        if self.least is None and self.most is None:
            return True
        number = parse_int(text)
        if number is None:
            return False
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)

    def both(self, other: AllowedValues) -> AllowedValues:
        """Return the values that both allow."""
        least = max((each for each in (self.least, other.least) if each is not None), default=None)
        most = min((each for each in (self.most, other.most) if each is not None), default=None)
        if self.excluded and other.excluded:
            return AllowedValues(self.values | other.values, excluded=True, least=least, most=most)
        choices = self.values if not self.excluded else other.values
        common = frozenset(each for each in choices if self.allows(each) and other.allows(each))
        return AllowedValues(common, excluded=False)


Requirements = Mapping[str, AllowedValues]
"""Maps the key of a label to the values that it may have; other labels may have any."""


def allowed_values(requirement: NodeSelectorRequirement) -> AllowedValues | None:
    """Return what a requirement allows; None for an operator that is not known, or a bound that is not a number."""
    values = frozenset(requirement.values)
    match requirement.operator:
        case "In":
            return AllowedValues(values, excluded=False)
        case "NotIn":
            return AllowedValues(values)
        case "Exists":
            return AllowedValues()
        case "DoesNotExist":
            return AllowedValues(excluded=False)
    bound = parse_int(requirement.values[0]) if requirement.values else None
    if bound is None:
        return None
    match requirement.operator:
        case "Gt":
            return AllowedValues(least=bound + 1)
        case "Gte":
            return AllowedValues(least=bound)
        case "Lt":
            return AllowedValues(most=bound - 1)
        case "Lte":
            return AllowedValues(most=bound)
    return None


def combined(expressions: Iterable[NodeSelectorRequirement], labels: Labels) -> Requirements:
    """Return requirements that hold together, and with labels; one that cannot be read may allow any value."""
    requirements = {key: AllowedValues(frozenset([text]), excluded=False) for key, text in labels.items()}
    for expression in expressions:
        allowed = allowed_values(expression) or AllowedValues()
        earlier = requirements.get(expression.key)
        requirements[expression.key] = allowed if earlier is None else earlier.both(allowed)
    return requirements


def together(first: Requirements, second: Requirements) -> dict[str, AllowedValues]:
    """Return what two requirements allow together."""
    both = {key: first[key].both(allowed) if key in first else allowed for key, allowed in second.items()}
    return {**first, **both}


def alternatives(placement: Placement) -> Iterator[Requirements]:
    """Yield the requirements of a pod: one for each term of its required node affinity, with its node selector."""
    required = nodeaffinity.required(placement.affinity)
    if required is None or not required.node_selector_terms:
        yield combined((), placement.node_selector)
        return
    for term in required.node_selector_terms:
        yield combined(term.match_expressions, placement.node_selector)


def conflict(pool: Requirements, pod: Requirements) -> str:
    """Return the key of the first label on which a NodePool has no value that a pod allows; "" for none.

    A label that the NodePool does not name is missing on its nodes, unless their provider may set it.
    """
    for key in sorted(pod):
        if key in pool:
            both_absent = pool[key].allows_absent and pod[key].allows_absent
            if pool[key].both(pod[key]).is_empty and not both_absent:
                return key
        elif not pod[key].allows_absent and not _may_be_set(key):
            return key
    return ""


def _may_be_set(key: str) -> bool:
    """Tell whether a provider, the kubelet or Karpenter may give a node a label."""
    prefix, _, _ = key.rpartition("/")
    return prefix.endswith(_PROVIDERS) or "karpenter" in prefix

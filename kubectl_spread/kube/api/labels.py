"""Labels: topology keys, which labels a selector selects, of many labels too, and why it cannot be parsed.

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector, and
pkg/labels/selector.go, Requirement.Matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, lru_cache, reduce
from itertools import product
from typing import Final, Generic, TypeVar

from kubectl_spread.kube.api import content, field
from kubectl_spread.kube.api.field import FieldPath, MapKey
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement, Node

Labels = Mapping[str, str]

HOSTNAME: Final = "kubernetes.io/hostname"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
TOPOLOGY_KEYS: Final[Mapping[str, str]] = {"hostname": HOSTNAME, "node": HOSTNAME, "region": REGION, "zone": ZONE}
"""Maps the short name of a topology key to the key."""
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
DOMAIN_NOUNS: Final[Mapping[str, str]] = {key: name for name, key in TOPOLOGY_KEYS.items()}
"""Maps a topology key to what its domains are called."""


def zone_of(node: Node) -> tuple[str, str]:
    """Return the region and zone of a node; nodes without both are one zone.

    Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/node/topology/helpers.go, GetZoneKey.
    """
    labels = node.metadata.labels
    return labels.get(BETA_REGION, labels.get(REGION, "")), labels.get(BETA_ZONE, labels.get(ZONE, ""))


class Operator(StrEnum):
    """The operators of a label selector's requirements."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


_OPERATORS: Final = frozenset(Operator)


def matches(selector: LabelSelector | None, labels: Labels) -> bool:
    """Tell whether ``selector`` selects ``labels``: None selects nothing, an empty selector everything."""
    if selector is None:
        return False
    return (
        all(labels.get(key) == value for key, value in selector.match_labels.items())
        and all(satisfies(requirement, labels) for requirement in selector.match_expressions)
        and valid(selector)
    )


def matcher(requirements: Iterable[LabelSelectorRequirement]) -> Callable[[Labels], bool]:
    """Return a test of labels against all ``requirements``, which is fast for many labels or values."""
    tests = [(requirement.key, requirement.operator, frozenset(requirement.values)) for requirement in requirements]
    return lambda labels: all(_satisfies(key, operator, values, labels) for key, operator, values in tests)


def satisfies(requirement: LabelSelectorRequirement, labels: Labels) -> bool:
    """Tell whether ``labels`` meet one requirement; NotIn and DoesNotExist are met by an absent key."""
    return _satisfies(requirement.key, requirement.operator, requirement.values, labels)


def _satisfies(key: str, operator: str, values: Container[str], labels: Labels) -> bool:
    match operator:
        case Operator.IN:
            return key in labels and labels[key] in values
        case Operator.NOT_IN:
            return key not in labels or labels[key] not in values
        case Operator.EXISTS:
            return key in labels
        case Operator.DOES_NOT_EXIST:
            return key not in labels
    return False


def valid(selector: LabelSelector) -> bool:
    """Tell whether the selector can be parsed; a selector that cannot be parsed selects nothing."""
    return not parse_error(selector)


def parse_error(selector: LabelSelector | None) -> str:
    """Return the scheduler's error for a selector that cannot be parsed; "" if it can be parsed.

    The error is that of the first such requirement: matchLabels in key order, then the expressions. The scheduler reads
    matchLabels in any order.

    Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/labels/selector.go, NewRequirement.
    """
    if selector is None:
        return ""
    return next((error for requirement in requirements(selector) if (error := _requirement_error(requirement))), "")


@lru_cache(maxsize=4096)
def _requirement_error(requirement: LabelSelectorRequirement) -> str:
    if requirement.operator not in _OPERATORS:
        return f'"{requirement.operator}" is not a valid label selector operator'
    wants_values = requirement.operator in (Operator.IN, Operator.NOT_IN)
    errors = []
    if problems := content.label_key_problems(requirement.key):
        errors.append(field.invalid(FieldPath(("key",)), requirement.key, "; ".join(problems)).message)
    if wants_values and not requirement.values:
        errors.append("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty")
    if not wants_values and requirement.values:
        values = ",".join(f'"{value}"' for value in requirement.values)
        errors.append(f"values: Invalid value: [{values}]: values set must be empty for exists and does not exist")
    errors += [
        field.invalid(FieldPath(("values", index, MapKey(requirement.key))), value, "; ".join(problems)).message
        for index, value in enumerate(requirement.values)
        if (problems := content.label_value_problems(value))
    ]
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""


def is_empty(selector: LabelSelector) -> bool:
    """Tell whether the selector has no requirements."""
    return not selector.match_labels and not selector.match_expressions


def requirements(selector: LabelSelector) -> Iterator[LabelSelectorRequirement]:
    """Yield every requirement, matchLabels as ``In`` with one value, in key order, before the expressions."""
    for key in sorted(selector.match_labels):
        yield LabelSelectorRequirement(key=key, operator=Operator.IN, values=(selector.match_labels[key],))
    yield from selector.match_expressions


def keys(selector: LabelSelector) -> frozenset[str]:
    """Return the label keys that the selector mentions anywhere."""
    return frozenset(requirement.key for requirement in requirements(selector))


def describe_requirements(selector: LabelSelector, part: Iterable[LabelSelectorRequirement]) -> list[str]:
    """Return a part of a selector's requirements as text; a requirement of its matchLabels is ``app=web``."""
    return [
        f"{requirement.key}={requirement.values[0]}"
        if requirement.key in selector.match_labels and requirement not in selector.match_expressions
        else describe_requirement(requirement)
        for requirement in part
    ]


def describe_requirement(requirement: LabelSelectorRequirement) -> str:
    """Return a requirement as text: ``rev In [r1]``, ``x Exists``."""
    if not requirement.values:
        return f"{requirement.key} {requirement.operator}"
    values = ", ".join(value or '""' for value in requirement.values)
    return f"{requirement.key} {requirement.operator} [{values}]"


def describe(selector: LabelSelector | None) -> str:
    """Return a selector on one line: ``app=web, rev In [r1]``; ``<none>`` for None, ``{}`` for an empty one."""
    if selector is None:
        return "<none>"
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    parts += [describe_requirement(requirement) for requirement in selector.match_expressions]
    return ", ".join(parts) or "{}"


_REQUIREMENT: Final = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[^\s=!,()<>]+)
      | (?P<key>[^\s=!,()<>]+)(?:
            \s*(?P<sign>==|=|!=)\s*(?P<value>[^\s=!,()<>]*)
          | \s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)
_FIELD: Final = re.compile(r"\s*(?P<field>[^=!,\s]+)\s*(?P<sign>==|=|!=)(?P<value>[^=!,]*)(?:,|$)")


def parse_labels(text: str) -> tuple[LabelSelectorRequirement, ...]:
    """Return the requirements of a label selector; "" has none.

    Raises:
        ValueError: The text is not a label selector.
    """
    requirements = []
    position = 0
    while position < len(text):
        match = _REQUIREMENT.match(text, position)
        if match is None or text.endswith(","):
            raise ValueError(f'unable to parse label selector "{text}" at "{text[position:]}"')
        requirement = _requirement(match)
        for problem in _problems(requirement):
            raise ValueError(f'unable to parse label selector "{text}": {problem}')
        requirements.append(requirement)
        position = match.end()
    return tuple(requirements)


def _problems(requirement: LabelSelectorRequirement) -> Iterator[str]:
    for problem in content.label_key_problems(requirement.key):
        yield f'key "{requirement.key}": {problem}'
    for value in requirement.values:
        for problem in content.label_value_problems(value):
            yield f'value "{value}": {problem}'


def _requirement(match: re.Match[str]) -> LabelSelectorRequirement:
    if match["absent"]:
        return LabelSelectorRequirement(key=match["absent_key"], operator=Operator.DOES_NOT_EXIST)
    if match["sign"]:
        operator = Operator.NOT_IN if match["sign"] == "!=" else Operator.IN
        return LabelSelectorRequirement(key=match["key"], operator=operator, values=(match["value"],))
    if match["set"]:
        operator = Operator.IN if match["set"] == "in" else Operator.NOT_IN
        values = tuple(value.strip() for value in match["values"].split(","))
        return LabelSelectorRequirement(key=match["key"], operator=operator, values=values)
    return LabelSelectorRequirement(key=match["key"], operator=Operator.EXISTS)


def parse_fields(text: str) -> tuple[tuple[str, str, bool], ...]:
    """Return (field, value, equal) for each term of a field selector; "" has none.

    Raises:
        ValueError: The text is not a field selector.
    """
    terms = []
    position = 0
    while position < len(text):
        match = _FIELD.match(text, position)
        if match is None:
            raise ValueError(f'invalid field selector: "{text}"; can\'t understand "{text[position:]}"')
        terms.append((match["field"], match["value"], match["sign"] != "!="))
        position = match.end()
    return tuple(terms)


_NOT_ZERO: Final = re.compile(rb"[^\0]", re.DOTALL)
_BITS: Final = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))


def bitmap(numbers: Iterable[int]) -> int:
    """Return the bitmap of ``numbers``."""
    return reduce(lambda bits, number: bits | 1 << number, numbers, 0)


def ascending(bits: int) -> Iterator[int]:
    """Yield the numbers in a bitmap, ascending; each is found when it is asked for."""
    content = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
    return (8 * byte.start() + bit for byte in _NOT_ZERO.finditer(content) for bit in _BITS[content[byte.start()]])


class LabelIndex:
    """An index of label sets, which are numbered from 0.

    Attributes:
        everything: The bitmap of all label sets.
    """

    def __init__(self, labels: Sequence[Labels]) -> None:
        """Index label sets in the order of their numbers; the values of a key are indexed when they are first read."""
        self._labels = labels
        self.everything = (1 << len(labels)) - 1
        self._having: dict[str, list[int]] = {}
        for number, label_set in enumerate(labels):
            for key in label_set:
                self._having.setdefault(key, []).append(number)
        self._values: dict[str, dict[str, list[int]]] = {}
        self._bitmaps: dict[tuple[str, str | None], int] = {}

    def having(self, key: str) -> Sequence[int]:
        """Return the label sets that have a key, ascending."""
        return self._having.get(key, ())

    def values(self, key: str) -> Mapping[str, Sequence[int]]:
        """Map each value of a key to the label sets that have it, ascending."""
        if key not in self._having:
            return {}
        if key not in self._values:
            values = self._values[key] = {}
            for number in self._having[key]:
                values.setdefault(self._labels[number][key], []).append(number)
        return self._values[key]

    def having_bits(self, key: str) -> int:
        """Return the bitmap of the label sets that have a key."""
        return self._bits(key, None, self.having(key))

    def value_bits(self, key: str, values: Iterable[str]) -> int:
        """Return the bitmap of the label sets whose value for a key is one of ``values``."""
        index, bits = self.values(key), 0
        for value in values:
            if value in index:
                bits |= self._bits(key, value, index[value])
        return bits

    def _bits(self, key: str, value: str | None, having: Sequence[int]) -> int:
        if (key, value) not in self._bitmaps:
            self._bitmaps[key, value] = bitmap(having)
        return self._bitmaps[key, value]


_T = TypeVar("_T")


class Labelled(Generic[_T]):
    """Values with labels, numbered in the order they were added."""

    def __init__(self) -> None:
        self._all: list[tuple[Labels, _T]] = []

    def add(self, labels: Labels, value: _T) -> None:
        """Add a value."""
        self._all.append((labels, value))
        self.__dict__.pop("_index", None)

    def __iter__(self) -> Iterator[tuple[Labels, _T]]:
        """Yield all values with their labels."""
        return iter(self._all)

    def __getitem__(self, number: int) -> _T:
        """Return a value by its number."""
        return self._all[number][1]

    def selected(self, selector: LabelSelector) -> Iterator[tuple[Labels, _T]]:
        """Yield the values that a selector selects, with their labels."""
        return (self._all[number] for number in self.selection(selector))

    def selection(self, selector: LabelSelector) -> tuple[int, ...]:
        """Return the numbers of the values that a selector selects, ascending."""
        if not valid(selector):
            return ()
        selecting = tuple(requirements(selector))
        matches = matcher(selecting)
        return tuple(number for number in self._candidates(selecting) if matches(self._all[number][0]))

    @cached_property
    def _index(self) -> LabelIndex:
        return LabelIndex([labels for labels, _ in self._all])

    def _candidates(self, requirements: Sequence[LabelSelectorRequirement]) -> Sequence[int]:
        """Return the numbers of the values that meet the rarest requirement In, ascending; all without such."""
        having = (
            [self._index.values(requirement.key).get(value, ()) for value in dict.fromkeys(requirement.values)]
            for requirement in requirements
            if requirement.operator == Operator.IN
        )
        rarest = min(having, key=lambda lists: sum(map(len, lists)), default=None)
        if rarest is None:
            return range(len(self._all))
        return rarest[0] if len(rarest) == 1 else sorted(number for numbers in rarest for number in numbers)


ANYWHERE: Final = ""
"""The namespace of what may select pods of any namespace."""


class Selecting(Generic[_T]):
    """Values that select pods, such as terms, each filed under a namespace and a label that the pods have."""

    def __init__(self) -> None:
        self._filed: dict[tuple[str, tuple[str, str] | None], list[_T]] = {}

    def add(self, namespace: str, selector: LabelSelector | None, value: _T) -> None:
        """File a value under the rarest of the labels that a selector requires.

        Args:
            namespace: The namespace of the pods, or ``ANYWHERE``.
            selector: The selector; None selects nothing.
            value: The value.
        """
        if selector is not None:
            labels = selector.match_labels.items()
            rarest = min(labels, key=lambda label: len(self._filed.get((namespace, label), ())), default=None)
            self._filed.setdefault((namespace, rarest), []).append(value)

    def that_may_select(self, namespace: str, labels: Labels) -> Iterator[_T]:
        """Yield the values that may select pods with ``labels``; one that was added twice may come twice."""
        for place in product((namespace, ANYWHERE), (*labels.items(), None)):
            yield from self._filed.get(place, ())

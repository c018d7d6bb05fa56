"""Selectors as text: the values of kubectl's ``-l`` and ``--field-selector``.

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/labels/selector.go, Parse, and
pkg/fields/selector.go, ParseSelector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubectl_spread.kube.api import content
from kubectl_spread.kube.api.labels import Operator
from kubectl_spread.kube.api.types import LabelSelectorRequirement

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

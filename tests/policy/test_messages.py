"""The messages of policies as CEL expressions."""

from __future__ import annotations

import pytest

from kubectl_spread.kube import features
from kubectl_spread.policy.documents import CARRIED, Policies
from kubectl_spread.policy.expressions import message


def test_a_message_joins_texts_and_values() -> None:
    template = "{field} lists {keys}{changed}. {effect}"
    values = {"field": '"matchLabelKeys"', "keys": "violation[0]", "changed": '""', "effect": "violation[1]"}
    assert message(template, values) == '"matchLabelKeys lists " +\n(violation[0]) +\n". " +\n(violation[1])'


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("SPR101", "Keep the old value here, and change the label in the pod template, so that new pods are created "),
        ("SPR203", "List each key once."),
        ("SPR205", "Set labelSelector to the labels of the pods to spread."),
        ("SPR212", "Nothing to do if that scheduler respects spread constraints."),
    ],
)
def test_a_message_ends_with_what_to_do(code: str, ending: str) -> None:
    behaviour = features.behaviour(37, features.gates(37, {}))
    messages = [
        validation["messageExpression"]
        for document in Policies(CARRIED, behaviour).documents()
        for validation in document["spec"].get("validations", ())
        if validation["message"].startswith(code)
    ]
    assert messages
    assert all(ending in each for each in messages)

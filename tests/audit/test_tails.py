"""Which requirements of a stored selector did the merge append?"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubectl_spread.audit.snapshot.terms import SelectorParts, split, topology_terms
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import describe
from tests.builders import Json, affinity, constraint, decode_pod, pod_json, requirement, selector, term


def rev(*values: str, operator: str = "In") -> Json:
    return requirement("rev", operator, *values)


X_EXISTS = requirement("x", "Exists")
APP = requirement("app", "In", "web")
NOT_A = requirement("tenant", "NotIn", "a")
NOT_B = requirement("tenant", "NotIn", "b")


def splits(pod: Json) -> tuple[SelectorParts, ...]:
    return split(topology_terms(decode_pod(pod).spec))


def described(selector_parts: SelectorParts) -> tuple[str, str]:
    """Return the authored part and the tail, in their order."""
    tail = [f"{key} {operator} {value or repr('')}" for (operator, key), value in selector_parts.tail.items()]
    return describe(selector_parts.authored), ", ".join(tail)


@pytest.mark.parametrize(
    ("expressions", "match", "mismatch", "parts"),
    [
        pytest.param([rev("r1")], ["rev"], [], ("{}", "rev In r1"), id="the whole selector"),
        pytest.param([X_EXISTS, rev("r1")], ["rev"], [], ("x Exists", "rev In r1"), id="behind the author's own"),
        pytest.param([rev("r1"), X_EXISTS], ["rev"], [], ("rev In [r1], x Exists", ""), id="not in front of it"),
        pytest.param([rev("r1", "r2")], ["rev"], [], ("rev In [r1, r2]", ""), id="not with two values"),
        pytest.param([rev("r1", operator="NotIn")], ["rev"], [], ("rev NotIn [r1]", ""), id="not NotIn of a match key"),
        pytest.param([rev(operator="Exists")], ["rev"], [], ("rev Exists", ""), id="not Exists"),
        pytest.param([rev("")], ["rev"], [], ("{}", "rev In ''"), id='"" is a value'),
        pytest.param(
            [rev("r1"), APP], ["rev", "app"], [], ("{}", "rev In r1, app In web"), id="in the order of the keys"
        ),
        pytest.param([APP, rev("r1")], ["rev", "app"], [], ("app In [web]", "rev In r1"), id="not against it"),
        pytest.param([APP], ["rev", "app", "zone"], [], ("{}", "app In web"), id="keys may be missing in between"),
        pytest.param([rev("r1"), rev("r1")], ["rev"], [], ("rev In [r1]", "rev In r1"), id="a key only once"),
        pytest.param([rev("r1"), NOT_A], ["rev"], ["tenant"], ("{}", "rev In r1, tenant NotIn a"), id="In, then NotIn"),
        pytest.param(
            [NOT_A, NOT_A], [], ["tenant", "tenant"], ("{}", "tenant NotIn a"), id="a key as often as it is named"
        ),
        pytest.param(
            [NOT_A, NOT_B],
            [],
            ["tenant", "tenant"],
            ("tenant NotIn [a]", "tenant NotIn b"),
            id="a key that is named twice has one value",
        ),
        pytest.param(
            [NOT_A, rev("r1")], ["rev"], ["tenant"], ("tenant NotIn [a]", "rev In r1"), id="not NotIn, then In"
        ),
        pytest.param(
            [NOT_A, NOT_B], [], ["tenant"], ("tenant NotIn [a]", "tenant NotIn b"), id="of two NotIn the last"
        ),
        pytest.param(
            [rev("r1"), APP], ["app"], [], ("rev In [r1]", "app In web"), id="a key that is not listed ends it"
        ),
        pytest.param([], ["rev"], ["tenant"], ("{}", ""), id="nothing"),
    ],
)
def test_the_tail_is_the_longest_end_that_the_merge_could_have_appended(
    expressions: list[Json], match: Sequence[str], mismatch: Sequence[str], parts: tuple[str, str]
) -> None:
    affinity_term = term(selects=selector(None, *expressions), match=match, mismatch=mismatch)
    (only,) = splits(pod_json(affinity=affinity("podAffinity", affinity_term)))
    assert described(only) == parts
    assert not only.handwritten


def test_a_term_without_selector_has_no_tail() -> None:
    (only,) = splits(pod_json(constraints=[constraint(match=["rev"], labelSelector=None)]))
    assert described(only) == ("<none>", "")


def spreads(*values: tuple[Sequence[str], Sequence[Json]]) -> list[tuple[str, str]]:
    pod = pod_json(
        constraints=[constraint(match=match, selects=selector(None, *expressions)) for match, expressions in values]
    )
    return [described(parts) for parts in splits(pod)]


def test_a_key_that_another_constraint_lacks_was_written_by_hand() -> None:
    """One creation merges a key everywhere or nowhere."""
    assert spreads((["rev"], [rev("r1")]), (["rev"], [X_EXISTS])) == [("rev In [r1]", ""), ("x Exists", "")]


def test_a_key_that_another_constraint_does_not_name_proves_nothing() -> None:
    assert spreads((["rev"], [rev("r1")]), (["app"], [X_EXISTS])) == [("{}", "rev In r1"), ("x Exists", "")]


def test_a_handwritten_key_ends_the_tail_and_may_unmask_others() -> None:
    """In the first one rev is written by hand, so app in front of it is, and so app in the third."""
    assert spreads(
        (["app", "rev"], [APP, rev("r1")]),
        (["rev"], [X_EXISTS]),
        (["app"], [APP]),
    ) == [("app In [web], rev In [r1]", ""), ("x Exists", ""), ("app In [web]", "")]


def test_a_constraint_without_selector_contradicts_nothing() -> None:
    pod = pod_json(
        constraints=[
            constraint(match=["rev"], selects=selector(None, rev("r1"))),
            constraint(match=["rev"], labelSelector=None),
        ]
    )
    assert [described(parts) for parts in splits(pod)] == [("{}", "rev In r1"), ("<none>", "")]


def test_keys_of_spread_constraints_prove_nothing_about_affinity_terms() -> None:
    """An affinity term may be merged although the spread constraint is not."""
    pod = pod_json(
        constraints=[constraint(match=["rev"], selects=selector(None, X_EXISTS))],
        affinity=affinity("podAntiAffinity", term(match=["rev"], selects=selector(None, rev("r1")))),
    )
    assert [described(parts) for parts in splits(pod)] == [("x Exists", ""), ("{}", "rev In r1")]


def test_terms_are_in_the_order_of_the_api_and_sort_by_number() -> None:
    both = {
        field: {**affinity(field, term())[field], **affinity(field, term(), required=False)[field]}
        for field in ("podAntiAffinity", "podAffinity")
    }
    actual_terms = topology_terms(decode_pod(pod_json(constraints=[constraint()] * 11, affinity=both)).spec)
    paths = [str(term.path) for term in actual_terms]
    spread = [f"spec.topologySpreadConstraints[{index}]" for index in range(11)]
    terms = [
        f"spec.affinity.{field}.{kind}DuringSchedulingIgnoredDuringExecution[0]{end}"
        for field in ("podAffinity", "podAntiAffinity")
        for kind, end in (("required", ""), ("preferred", ".podAffinityTerm"))
    ]
    assert paths == [*spread, *terms]
    assert sorted(sorted(spread), key=lambda path: FieldPath.parse(path).order) == spread
    assert [term.required for term in actual_terms[11:]] == [True, False, True, False]
    assert all(term.spread for term in actual_terms[:11])

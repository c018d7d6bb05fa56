"""Numbers that the API cannot hold are refused by file, line and field."""

from __future__ import annotations

import pytest

from tests.hostile.commands import clean, refusal, run

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: REPLICAS
  template:
    spec:
      topologySpreadConstraints:
      - topologyKey: zone
        maxSkew: SKEW
        minDomains: DOMAINS
      affinity:
        podAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - podAffinityTerm: {topologyKey: zone}
            weight: WEIGHT
"""
JSON_DEPLOYMENT = """\
{"apiVersion": "apps/v1",
"kind": "Deployment",
"metadata": {"name": "web"}, "spec": {

"replicas": REPLICAS,
"template": {"spec": {"topologySpreadConstraints": [{

"topologyKey": "zone",

"maxSkew": SKEW,
"minDomains": DOMAINS}],
"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{

"podAffinityTerm": {"topologyKey": "zone"},

"weight": WEIGHT}]}}}}}}
"""
FIELDS = {
    "REPLICAS": "STDIN:5: Deployment default/web: spec.replicas",
    "SKEW": "STDIN:10: Deployment default/web: spec.template.spec.topologySpreadConstraints[0].maxSkew",
    "DOMAINS": "STDIN:11: Deployment default/web: spec.template.spec.topologySpreadConstraints[0].minDomains",
    "WEIGHT": "STDIN:16: Deployment default/web: spec.template.spec.affinity.podAffinity"
    ".preferredDuringSchedulingIgnoredDuringExecution[0].weight",
}
RANGE = "integer is out of the range of int32"


def with_number(text: str, field: str, number: str) -> str:
    for name in FIELDS:
        text = text.replace(name, number if name == field else "1")
    return text


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    ("number", "problem"),
    [
        pytest.param("2147483648", RANGE, id="int32 and one"),
        pytest.param("-2147483649", RANGE, id="below int32"),
        pytest.param("18446744073709551616", RANGE, id="beyond uint64"),
        pytest.param("1e300", RANGE, id="large float"),
        pytest.param("1.5", "expected integer, got number", id="fraction"),
        pytest.param('"1"', "expected integer, got string", id="string"),
        pytest.param("true", "expected integer, got boolean", id="boolean"),
        pytest.param("[1]", "expected integer, got array", id="array"),
    ],
)
@pytest.mark.parametrize("text", [pytest.param(DEPLOYMENT, id="YAML"), pytest.param(JSON_DEPLOYMENT, id="JSON")])
def test_numbers_that_the_api_cannot_hold_are_refused(text: str, field: str, number: str, problem: str) -> None:
    assert refusal(with_number(text, field, number)) == f"error: {FIELDS[field]}: {problem}"


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [pytest.param("1e400", id="1e400"), pytest.param("9" * 5000, id="5000 digits")])
def test_numbers_that_no_type_can_hold_are_refused(field: str, number: str) -> None:
    """In YAML Kubernetes reads such a number as text; in JSON it is out of every range."""
    in_yaml = refusal(with_number(DEPLOYMENT, field, number))
    assert in_yaml == f"error: {FIELDS[field]}: expected integer, got string"
    in_json = refusal(with_number(JSON_DEPLOYMENT, field, number))
    assert in_json == f"error: {FIELDS[field]}: number is out of range"


@pytest.mark.parametrize("number", ["1e400", "9" * 5000, "1" + "0" * 400, "1e-400", "-0", "0.1"])
def test_numbers_in_fields_that_are_not_read_may_have_any_size(number: str) -> None:
    in_json = f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p"}}, "x": {number}}}'
    in_yaml = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nx: {number}\n"
    assert clean(run(in_json)).exit_code == 0
    assert all(clean(run(in_yaml, command)).exit_code == 0 for command in ("check", "merge", "unmerge"))


def test_merge_refuses_a_number_that_it_cannot_write_again() -> None:
    body = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},\n"x": 1e400}'
    assert refusal(body, "merge", "-o", "json").startswith("error: STDIN:1: invalid JSON: Number out of range")

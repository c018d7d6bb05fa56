"""The errors of the API server, word for word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.apiserver import pod_errors, prepare_for_create
from kubectl_spread.kube.features import Gate, behaviour, gates
from tests.builders import HOSTNAME, Json, affinity, constraint, decode_pod, pod_json, requirement, selector, term

P = "spec.topologySpreadConstraints[0]"
A = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
R1 = {"app": "web", "rev": "r1"}
R2 = {"app": "web", "rev": "r2"}
NO_LABELS: Mapping[str, str] = {}
NO_SELECTOR = "must not be specified when labelSelector is not set"
OVERLAP = "exists in both matchLabelKeys and labelSelector"
REV_IN_R1 = requirement("rev", "In", "r1")
NAME_HELP = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_HELP = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
LABEL_HELP = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_HELP = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
WITH_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
BOTH_RULES = (27, 33, 34, 37)


def created(pod: Json, minor: int = 37, **overrides: bool) -> list[str]:
    """Return the messages of the errors on a new pod."""
    decoded = decode_pod(pod)
    served = behaviour(minor, gates(minor, {Gate[name]: value for name, value in overrides.items()}))
    return [
        error.message for error in pod_errors(prepare_for_create(decoded.spec, decoded.metadata.labels, served), served)
    ]


def keyed(match: Sequence[str], **fields: object) -> Json:
    with_selector: Json = {"labelSelector": selector({"app": "web"}), **fields}
    return constraint(match=match, **with_selector)


@pytest.mark.parametrize(
    ("labels", "manifest", "merging", "legacy"),
    [
        pytest.param(R1, keyed(["rev"]), [], [], id="1: one key"),
        pytest.param(R1, keyed(["rev"], labelSelector={}), [], [], id="2: the empty selector"),
        pytest.param(
            R1,
            keyed(["rev"], labelSelector=None),
            [f"{P}.matchLabelKeys: Forbidden: {NO_SELECTOR}"],
            [f"{P}.matchLabelKeys: Forbidden: {NO_SELECTOR}"],
            id="3: keys need a selector",
        ),
        pytest.param(R1, keyed(["nope"]), [], [], id="4: an absent label"),
        pytest.param(
            R1, keyed(["rev", "rev"]), [f'{P}[1]: Invalid value: "rev": {OVERLAP}'], [], id="8: a key listed twice"
        ),
        pytest.param(R1, keyed(["nope", "nope"]), [], [], id="9: an absent key listed twice"),
        pytest.param(
            R1,
            keyed(["rev"], labelSelector=selector({"rev": "r1"})),
            [f'{P}[0]: Invalid value: "rev": {OVERLAP}'],
            [f'{P}.matchLabelKeys[0]: Invalid value: "rev": {OVERLAP}'],
            id="10: the key in matchLabels",
        ),
        pytest.param(
            NO_LABELS,
            keyed(["rev"], labelSelector=selector({"rev": "r1"})),
            [],
            [f'{P}.matchLabelKeys[0]: Invalid value: "rev": {OVERLAP}'],
            id="11: the key in matchLabels, without the label",
        ),
        pytest.param(
            R1,
            keyed(["rev"], labelSelector=selector(None, requirement("rev", "Exists"))),
            [f'{P}[0]: Invalid value: "rev": {OVERLAP}'],
            [f'{P}.matchLabelKeys[0]: Invalid value: "rev": {OVERLAP}'],
            id="12: the key in an expression",
        ),
        pytest.param(
            NO_LABELS,
            keyed(["rev"], labelSelector=selector(None, requirement("rev", "Exists"))),
            [],
            [f'{P}.matchLabelKeys[0]: Invalid value: "rev": {OVERLAP}'],
            id="13: the key in an expression, without the label",
        ),
        pytest.param(
            R1,
            keyed(["rev"], labelSelector=selector({"app": "web"}, REV_IN_R1)),
            [f'{P}[0]: Invalid value: "rev": {OVERLAP}'],
            [f'{P}.matchLabelKeys[0]: Invalid value: "rev": {OVERLAP}'],
            id="15: a merged pod created again",
        ),
        pytest.param(
            R2,
            keyed(["rev"], labelSelector=selector({"app": "web"}, REV_IN_R1)),
            [f'{P}[0]: Invalid value: "rev": {OVERLAP}'],
            [f'{P}.matchLabelKeys[0]: Invalid value: "rev": {OVERLAP}'],
            id="16: a merged pod created again with another value",
        ),
        pytest.param(
            NO_LABELS,
            keyed(["rev"], labelSelector=selector({"app": "web"}, REV_IN_R1)),
            [],
            [f'{P}.matchLabelKeys[0]: Invalid value: "rev": {OVERLAP}'],
            id="17: a merged pod created again without labels",
        ),
        pytest.param(
            NO_LABELS,
            keyed(["rev"], labelSelector=selector({"rev": "r1"}, requirement("rev", "Exists"))),
            [f'{P}[0]: Invalid value: "rev": {OVERLAP}'],
            [f'{P}.matchLabelKeys[0]: Invalid value: "rev": {OVERLAP}'],
            id="the key in both parts of the selector is refused with any labels",
        ),
        pytest.param(
            R1,
            keyed(["rev"], labelSelector=selector({"rev": "r1"}, REV_IN_R1)),
            [f'{P}[0]: Invalid value: "rev": {OVERLAP}'] * 2,
            [f'{P}.matchLabelKeys[0]: Invalid value: "rev": {OVERLAP}'],
            id="each surplus expression is one error",
        ),
        pytest.param(
            R1,
            keyed(["/simple"]),
            [f'{P}.matchLabelKeys[0]: Invalid value: "/simple": prefix part must be non-empty'],
            [f'{P}.matchLabelKeys[0]: Invalid value: "/simple": prefix part must be non-empty'],
            id="38: a bad key name",
        ),
        pytest.param(
            R1,
            keyed(["/simple"], labelSelector=None),
            [f"{P}.matchLabelKeys: Forbidden: {NO_SELECTOR}"],
            [
                f"{P}.matchLabelKeys: Forbidden: {NO_SELECTOR}",
                f'{P}.matchLabelKeys[0]: Invalid value: "/simple": prefix part must be non-empty',
            ],
            id="a bad key name without a selector is a second error by the legacy rule",
        ),
    ],
)
def test_keys_are_compared_with_the_merged_selector_where_the_server_merges(
    labels: Mapping[str, str], manifest: Json, merging: list[str], legacy: list[str]
) -> None:
    """Version 1.33 and a server without the merge refuse every key that the selector has."""
    pod = pod_json(labels=labels, constraints=[manifest])
    assert created(pod, 37) == merging
    assert created(pod, 34) == merging
    assert created(pod, 33) == legacy
    assert created(pod, 27) == legacy
    assert created(pod, 34, SELECTOR_MERGE=False) == legacy


def test_a_dropped_field_is_not_validated() -> None:
    """24: with the base gate off the keys are gone before validation."""
    pod = pod_json(labels=R1, constraints=[keyed(["rev"], labelSelector=selector({"rev": "r1"}))])
    assert created(pod, 34, MATCH_LABEL_KEYS=False) == []


@pytest.mark.parametrize(
    ("constraints", "messages"),
    [
        pytest.param(
            [constraint(max_skew=0)], [f"{P}.maxSkew: Invalid value: 0: must be greater than zero"], id="33: maxSkew 0"
        ),
        pytest.param(
            [constraint(max_skew=-1)],
            [f"{P}.maxSkew: Invalid value: -1: must be greater than zero"],
            id="33: maxSkew -1",
        ),
        pytest.param(
            [constraint(minDomains=2, hard=False)],
            [
                (
                    f"{P}.minDomains: Invalid value: 2: "
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                )
            ],
            id="34: minDomains of a soft constraint",
        ),
        pytest.param(
            [constraint(minDomains=0, hard=False)],
            [
                f"{P}.minDomains: Invalid value: 0: must be greater than zero",
                (
                    f"{P}.minDomains: Invalid value: 0: "
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                ),
            ],
            id="34: both errors together",
        ),
        pytest.param(
            [constraint(key="zone"), constraint(key="zone")],
            [f'{P}.{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{zone, DoNotSchedule}}"'],
            id="35: a duplicated pair is an error on the earlier constraint",
        ),
        pytest.param(
            [constraint(key='z"e'), constraint(key='z"e')],
            [f'{P}.{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{z\\"e, DoNotSchedule}}"'],
            id="the duplicate value is quoted like any other",
        ),
        pytest.param(
            [constraint(key="zone"), constraint(key="zone", hard=False)], [], id="35: one hard and one soft constraint"
        ),
        pytest.param([constraint(key="foo bar")], [], id="36: a topologyKey need not be a label key"),
        pytest.param([constraint(key="")], [f"{P}.topologyKey: Required value: can not be empty"], id="no topologyKey"),
        pytest.param([constraint(labelSelector=None)], [], id="37: a nil selector is not an error"),
        pytest.param(
            [constraint(whenUnsatisfiable="")],
            [f'{P}.whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"'],
            id="no whenUnsatisfiable",
        ),
        pytest.param(
            [constraint(nodeAffinityPolicy="x", nodeTaintsPolicy="honor")],
            [
                f'{P}.nodeAffinityPolicy: Unsupported value: "x": supported values: "Honor", "Ignore"',
                f'{P}.nodeTaintsPolicy: Unsupported value: "honor": supported values: "Honor", "Ignore"',
            ],
            id="unknown policies",
        ),
        pytest.param(
            [
                constraint(
                    max_skew=0,
                    key="",
                    whenUnsatisfiable="Maybe",
                    minDomains=0,
                    nodeTaintsPolicy="x",
                    match=["/a"],
                    selects=selector(None, requirement("b", "In")),
                )
            ],
            [
                f"{P}.maxSkew: Invalid value: 0: must be greater than zero",
                f"{P}.topologyKey: Required value: can not be empty",
                (
                    f'{P}.whenUnsatisfiable: Unsupported value: "Maybe": '
                    'supported values: "DoNotSchedule", "ScheduleAnyway"'
                ),
                f"{P}.minDomains: Invalid value: 0: must be greater than zero",
                (
                    f"{P}.minDomains: Invalid value: 0: "
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not Maybe"
                ),
                f'{P}.nodeTaintsPolicy: Unsupported value: "x": supported values: "Honor", "Ignore"',
                f'{P}.matchLabelKeys[0]: Invalid value: "/a": prefix part must be non-empty',
                (
                    f"{P}.labelSelector.matchExpressions[0].values: Required value: "
                    "must be specified when `operator` is 'In' or 'NotIn'"
                ),
            ],
            id="everything at once, in the API's order",
        ),
    ],
)
@pytest.mark.parametrize("minor", BOTH_RULES)
def test_errors_on_spread_constraints(constraints: list[Json], messages: list[str], minor: int) -> None:
    assert created(pod_json(constraints=constraints), minor) == messages


S = f"{P}.labelSelector"


@pytest.mark.parametrize(
    ("manifest", "messages"),
    [
        pytest.param(
            selector({"/a": "b!"}),
            [
                f'{S}.matchLabels: Invalid value: "/a": prefix part must be non-empty',
                f'{S}.matchLabels: Invalid value: "b!": {VALUE_HELP}',
            ],
            id="matchLabels",
        ),
        pytest.param(
            selector(None, requirement("a", "Near", "b")),
            [f'{S}.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator'],
            id="unknown operator",
        ),
        pytest.param(
            selector(None, requirement("a", "Exists"), requirement("a", "Exists", "b")),
            [
                (
                    f"{S}.matchExpressions[1].values: Forbidden: "
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
            ],
            id="values of an operator without values",
        ),
        pytest.param(
            selector(None, requirement("", "In", "-a", "b" * 64)),
            [
                f'{S}.matchExpressions[0].key: Invalid value: "": name part must be non-empty',
                f'{S}.matchExpressions[0].key: Invalid value: "": name part {NAME_HELP}',
                f'{S}.matchExpressions[0].values[0]: Invalid value: "-a": {VALUE_HELP}',
                f'{S}.matchExpressions[0].values[1]: Invalid value: "{"b" * 64}": must be no more than 63 bytes',
            ],
            id="errors on the key precede those on values",
        ),
        pytest.param(
            selector(None, requirement("a", "In", 'x"\\\n\x01\u200b')),
            [
                f'{S}.matchExpressions[0].values[0]: Invalid value: "x\\"\\\\\\n\\x01\\u200b": {VALUE_HELP}',
            ],
            id="values are quoted as Go quotes them",
        ),
    ],
)
def test_errors_on_label_selectors(manifest: Json, messages: list[str]) -> None:
    assert created(pod_json(constraints=[constraint(labelSelector=manifest)])) == messages


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        pytest.param("rev", [], id="a name"),
        pytest.param("example.com/Re_v.1-a", [], id="prefix and name"),
        pytest.param("a" * 63, [], id="63 bytes"),
        pytest.param("a" * 64, ["name part must be no more than 63 bytes"], id="64 bytes"),
        pytest.param(f"{'a' * 63}.{'b' * 189}/c", [], id="a prefix of 253 bytes"),
        pytest.param(f"{'a' * 254}/c", ["prefix part must be no more than 253 bytes"], id="a prefix of 254 bytes"),
        pytest.param("Example.com/a", [f"prefix part {SUBDOMAIN_HELP}"], id="prefixes are lower case"),
        pytest.param("a/", ["name part must be non-empty", f"name part {NAME_HELP}"], id="no name"),
        pytest.param("/", ["prefix part must be non-empty", "name part must be non-empty", f"name part {NAME_HELP}"]),
        pytest.param("-a", [f"name part {NAME_HELP}"], id="a name starts with a letter or digit"),
        pytest.param("é", [f"name part {NAME_HELP}"], id="ASCII only"),
        pytest.param(
            "a/b/c",
            [
                f"a valid label key {NAME_HELP} {WITH_PREFIX}",
            ],
            id="two slashes",
        ),
    ],
)
def test_errors_on_label_keys(key: str, problems: list[str]) -> None:
    expected = [f'{P}.matchLabelKeys[0]: Invalid value: "{key}": {problem}' for problem in problems]
    assert created(pod_json(constraints=[keyed([key])])) == expected


def anti(*terms: Json, required: bool = True) -> Json:
    return affinity("podAntiAffinity", *terms, required=required)


MATCH_AND_MISMATCH = f'{A}.matchLabelKeys[0]: Invalid value: "rev": exists in both matchLabelKeys and mismatchLabelKeys'
TENANT_EXISTS = requirement("tenant", "Exists")


@pytest.mark.parametrize(
    ("labels", "manifest", "messages"),
    [
        pytest.param(
            {"rev": "r1", "tenant": "a"},
            term(match=["rev"], mismatch=["tenant"], selects=selector(None, TENANT_EXISTS)),
            [],
            id="18: the selector may have a key to mismatch",
        ),
        pytest.param({"tenant": "a"}, term(mismatch=["tenant", "tenant"]), [], id="19: a duplicated key to mismatch"),
        pytest.param(
            {"tenant": "b"},
            term(mismatch=["tenant"], selects=selector(None, requirement("tenant", "NotIn", "a"))),
            [],
            id="20: a key that the selector has with NotIn",
        ),
        pytest.param(
            R1,
            term(match=["rev"], mismatch=["rev"]),
            [f'{A}[0]: Invalid value: "rev": {OVERLAP}', MATCH_AND_MISMATCH],
            id="21: matched and mismatched, with the label",
        ),
        pytest.param(
            NO_LABELS,
            term(match=["rev"], mismatch=["rev"]),
            [MATCH_AND_MISMATCH],
            id="21: matched and mismatched, without the label",
        ),
        pytest.param(
            R1,
            term(match=["rev"], mismatch=["rev"], labelSelector=None),
            [
                f"{A}.matchLabelKeys: Forbidden: {NO_SELECTOR}",
                f"{A}.mismatchLabelKeys: Forbidden: {NO_SELECTOR}",
                MATCH_AND_MISMATCH,
            ],
            id="keys need a selector",
        ),
        pytest.param(
            NO_LABELS,
            term(key="foo bar"),
            [f'{A}.topologyKey: Invalid value: "foo bar": name part {NAME_HELP}'],
            id="36: the topologyKey of a term is a label name",
        ),
        pytest.param(
            NO_LABELS,
            term(key=""),
            [
                f"{A}.topologyKey: Required value: can not be empty",
                f'{A}.topologyKey: Invalid value: "": name part must be non-empty',
                f'{A}.topologyKey: Invalid value: "": name part {NAME_HELP}',
            ],
            id="no topologyKey",
        ),
        pytest.param(
            NO_LABELS,
            term(
                match=["/a"],
                mismatch=["/b"],
                namespaces=["Bad", "a.b", "c" * 64],
                namespaceSelector=selector(None, requirement("x", "In")),
                selects=selector({"app": "!"}),
            ),
            [
                f'{A}.labelSelector.matchLabels: Invalid value: "!": {VALUE_HELP}',
                (
                    f"{A}.namespaceSelector.matchExpressions[0].values: Required value: "
                    "must be specified when `operator` is 'In' or 'NotIn'"
                ),
                f'{A}.namespace: Invalid value: "Bad": {LABEL_HELP}',
                f'{A}.namespace: Invalid value: "a.b": must not contain dots',
                f'{A}.namespace: Invalid value: "{"c" * 64}": must be no more than 63 characters',
                f'{A}.matchLabelKeys[0]: Invalid value: "/a": prefix part must be non-empty',
                f'{A}.mismatchLabelKeys[0]: Invalid value: "/b": prefix part must be non-empty',
            ],
            id="everything at once, in the API's order",
        ),
    ],
)
@pytest.mark.parametrize("minor", [33, 37])
def test_errors_on_affinity_terms(labels: Mapping[str, str], manifest: Json, messages: list[str], minor: int) -> None:
    assert created(pod_json(labels=labels, affinity=anti(manifest)), minor) == messages


def test_preferred_terms_have_weights_and_longer_paths() -> None:
    """22: the path of a preferred term names podAffinityTerm."""
    three = anti(term(), term(), term(match=["rev"], selects=selector({"rev": "r1"})), required=False)
    three["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["weight"] = 0
    three["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][1]["weight"] = 101
    preferred = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    assert created(pod_json(labels=R1, affinity=three)) == [
        f"{preferred}[0].weight: Invalid value: 0: must be in the range 1-100",
        f"{preferred}[1].weight: Invalid value: 101: must be in the range 1-100",
        f'{preferred}[2].podAffinityTerm[0]: Invalid value: "rev": {OVERLAP}',
    ]


def test_errors_come_in_the_order_of_the_api() -> None:
    """PodAffinity (required, preferred), podAntiAffinity, then spread constraints."""
    bad = term(key="", selects=selector({"app": "web"}))
    both: Json = {}
    for field in ("podAntiAffinity", "podAffinity"):
        lists = [affinity(field, bad, required=required)[field] for required in (False, True)]
        both[field] = {**lists[0], **lists[1]}
    messages = created(pod_json(affinity=both, constraints=[constraint(max_skew=0)]))
    assert [message.partition("[")[0].removeprefix("spec.") for message in dict.fromkeys(messages)][::3] == [
        "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution",
        "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
        "topologySpreadConstraints",
    ]


@pytest.mark.parametrize(
    ("match", "manifest", "merging", "legacy"),
    [
        pytest.param(["rev"], selector({"rev": "r1"}), False, True, id="14: one overlap"),
        pytest.param(["rev", "rev"], selector({"app": "web"}), False, False, id="a key twice"),
        pytest.param(["rev"], selector({"rev": "r1"}, requirement("rev", "Exists")), True, True, id="two overlaps"),
    ],
)
def test_templates_are_validated_before_the_merge(
    match: list[str], manifest: Json, merging: bool, legacy: bool
) -> None:
    """The API server may accept a template although it refuses all of its pods."""
    spec = decode_pod(pod_json(labels=R1, constraints=[keyed(match, labelSelector=manifest)])).spec
    path = FieldPath.parse("spec.template.spec")
    for minor, refused in ((37, merging), (33, legacy)):
        errors = pod_errors(spec, behaviour(minor, gates(minor, {})), path)
        assert bool(errors) is refused
        assert all(error.message.startswith(f"{path}.topologySpreadConstraints[0]") for error in errors)
        assert all(error.message.startswith(f"{error.path}: ") for error in errors)


def test_a_term_without_keys_has_no_errors() -> None:
    assert created(pod_json(affinity=anti(term(key=HOSTNAME)))) == []

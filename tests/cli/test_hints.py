"""Notes on stderr about options and annotations without effect, and about objects that are not evaluated."""

from __future__ import annotations

import json

import pytest
from click.testing import Result

from tests.audits import deployment
from tests.builders import ZONE, Json, claim_json, constraint, node_json, pod_json, requirement, term, volume_json
from tests.cli.test_check import EMPTY, JUDGED, check

SPREAD = pod_json("p", constraints=[constraint()])
FINISHED: Json = {**SPREAD, "status": {"phase": "Succeeded"}}
OTHER_FINISHED: Json = {**pod_json("q", constraints=[constraint()]), "status": {"phase": "Failed"}}
MIRROR = pod_json("m", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})


def notes(outcome: Result) -> list[str]:
    return outcome.stderr.replace(JUDGED, "").splitlines()


def names(*objects: Json, arguments: tuple[str, ...] = ()) -> list[str]:
    """Return the notes of a check, which succeeds."""
    outcome = check(*objects, arguments=("-o", "name", "--fail-on", "never", *arguments))
    assert outcome.exit_code == 0
    return notes(outcome)


RACK: Json = node_json("a1", labels={"topology.kubernetes.io/region": "west", "rack": "r1"})


@pytest.mark.parametrize(
    ("objects", "expected", "unused"),
    [
        pytest.param([SPREAD], "zone=3", [], id="the key of a pod"),
        pytest.param([SPREAD], f"{ZONE}=3", [], id="written out"),
        pytest.param([deployment(constraints=[constraint()])], "zone=3", [], id="the key of a template"),
        pytest.param([SPREAD], "zone=3,region=1,rack=2", ["topology.kubernetes.io/region", "rack"], id="two"),
        pytest.param(
            [pod_json("p", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term()]}})],
            "hostname=3",
            ["kubernetes.io/hostname"],
            id="a key of affinity alone",
        ),
    ],
)
def test_a_note_names_expected_keys_that_no_constraint_has(
    objects: list[Json], expected: str, unused: list[str]
) -> None:
    output = [f'--expect-domains: no constraint has the key "{key}"' for key in unused]
    assert names(*objects, RACK, arguments=("--expect-domains", expected)) == output


def test_each_node_is_a_domain_without_the_label_of_its_name() -> None:
    node = node_json("a1")
    del node["metadata"]["labels"]["kubernetes.io/hostname"]
    assert names(SPREAD, node, arguments=("--by", "node")) == []


NOT_LOOKED_UP = "no nodes were read, and only nodes tell the domains (read nodes too, or leave out the option)"


@pytest.mark.parametrize("fail_on", ["error", "never"])
@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--expect-domains", "zone=1,zome=3"), '--expect-domains: no node has the label "zome"; did you mean "zone"?'),
        (("--by", "zone", "--by", "zome"), '--by: no node has the label "zome"; did you mean "zone"?'),
        (("--by", "racks"), '--by: no node has the label "racks"; did you mean "rack"?'),
        (("--by", "owner"), '--by: no node has the label "owner"'),
    ],
)
def test_a_topology_key_that_no_node_has_is_an_error(arguments: tuple[str, ...], output: str, fail_on: str) -> None:
    outcome = check(SPREAD, RACK, arguments=("-o", "json", "--fail-on", fail_on, *arguments))
    assert (outcome.exit_code, notes(outcome)) == (2, [f"error: {output}"])
    assert json.loads(outcome.stdout)["summary"]["pods"] == 1


@pytest.mark.parametrize("objects", [[SPREAD], [EMPTY]], ids=["a pod", "none"])
@pytest.mark.parametrize(
    ("option", "keys"), [("--expect-domains", "zone=3"), ("--expect-domains", "zome=3,rack=2"), ("--by", "zone")]
)
def test_a_topology_key_cannot_be_looked_up_without_nodes(option: str, keys: str, objects: list[Json]) -> None:
    outcome = check(*objects, arguments=("-o", "name", option, keys))
    assert (outcome.exit_code, notes(outcome)) == (2, [f"error: {option}: {NOT_LOOKED_UP}"])


@pytest.mark.parametrize("again", ["zone=5", "zone=4", f"{ZONE}=5"])
def test_a_key_that_is_expected_twice_is_refused(again: str) -> None:
    outcome = check(EMPTY, arguments=("--expect-domains", f"zone=4,{again}"))
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    key = again.partition("=")[0]
    assert outcome.stderr == f'error: --expect-domains: the key "{key}" is given twice: give it one number\n'


def test_an_empty_input_has_no_note_about_keys() -> None:
    assert names(EMPTY, RACK, arguments=("--expect-domains", "zone=3")) == [
        "no pods or pod templates in 1 file (1 object of another kind)"
    ]


def test_unknown_words_in_annotations_are_reported_once() -> None:
    def ignoring(words: str) -> Json:
        return {"annotations": {"kubectl-spread/ignore": words}}

    output = names(
        pod_json("p", metadata=ignoring("SPR999, spr101"), constraints=[constraint()]),
        pod_json("q", metadata=ignoring("SPR999,SPR3,stale-label"), constraints=[constraint()]),
        pod_json("r", owner="Deployment/web", constraints=[constraint()]),
        deployment("web", annotations={"kubectl-spread/ignore": "nope"}),
    )
    assert output == [
        f'kubectl-spread/ignore: no rule has the code or name "{word}" (kubectl spread rules lists them)'
        for word in ("SPR999", "nope")
    ]


@pytest.mark.parametrize(
    ("objects", "output"),
    [
        pytest.param([FINISHED], "nothing to check: 1 finished pod skipped", id="finished"),
        pytest.param([FINISHED, OTHER_FINISHED], "nothing to check: 2 finished pods skipped", id="two"),
        pytest.param([MIRROR], "nothing to check: 1 mirror pod skipped", id="mirror"),
        pytest.param(
            [FINISHED, MIRROR], "nothing to check: 1 finished pod and 1 mirror pod skipped", id="finished and mirror"
        ),
        pytest.param([EMPTY], "No resources found", id="none"),
        pytest.param(
            [node_json("a1")], "no pods or pod templates in 1 file (1 object of another kind)", id="another kind"
        ),
    ],
)
def test_a_note_says_that_nothing_was_evaluated(objects: list[Json], output: str) -> None:
    assert names(*objects) == [output]


def test_pods_out_of_scope_are_not_counted() -> None:
    assert names(FINISHED, arguments=("sts",)) == ["No resources found"]


def test_missing_services_matter_only_to_pods_without_constraints() -> None:
    output = "no Services in what was read: default constraints select by the pods' owners alone"
    assert output not in names(SPREAD, arguments=("--defaults",))
    assert output not in names(pod_json("p", schedulerName="other"), arguments=("--defaults",))
    assert output in names(SPREAD, pod_json("q"), arguments=("--defaults",))


def test_missing_volumes_matter_only_to_uneven_pods_with_claims() -> None:
    output = "claims or PersistentVolumes are not in what was read: volumes may keep pods where they are"
    data = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    nodes = [node_json("a1"), node_json("b1")]

    def db(number: int, node: str, *volumes: Json) -> Json:
        return pod_json(f"db-{number}", node=node, owner="ReplicaSet/db", constraints=[constraint()], volumes=volumes)

    uneven = [*nodes, db(0, "a1", *data), db(1, "a1", *data)]
    assert output in names(*uneven)
    assert output not in names(*nodes, db(0, "a1"), db(1, "a1"))
    assert output not in names(*nodes, db(0, "a1", *data), db(1, "b1", *data))
    assert output not in names(*uneven, claim_json("data", "pv"), volume_json("pv", requirement(ZONE, "In", "a")))

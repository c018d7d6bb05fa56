"""Objects of kinds that Kubernetes does not define are checked by the pod templates in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli, formats
from tests import contract, jsonpatch
from tests.builders import Json, constraint, pod_json, selector

WEB = {"app": "web"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
IMAGE = "registry.example/app"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def template(*constraints: Json, labels: dict[str, str] | None = None, **spec: Any) -> Json:
    return {
        "metadata": {"labels": WEB if labels is None else labels},
        "spec": {
            **({"topologySpreadConstraints": list(constraints)} if constraints else {}),
            "containers": [{"name": "app", "image": IMAGE}],
            **spec,
        },
    }


def custom(api_version: str, kind: str, spec: Json, name: str = "web", **metadata: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def rollout(*constraints: Json, **fields: Any) -> Json:
    spec = {"replicas": 3, "selector": {"matchLabels": WEB}, "template": template(*constraints)}
    return custom("argoproj.io/v1alpha1", "Rollout", {**spec, **fields})


def unknown(*constraints: Json, **metadata: Any) -> Json:
    return custom("example.com/v1", "Fleet", {"pods": template(*constraints)}, **metadata)


def prometheus(*constraints: Json) -> Json:
    return custom("monitoring.coreos.com/v1", "Prometheus", {"topologySpreadConstraints": list(constraints)}, "main")


def run(*objects: Json, arguments: tuple[str, ...] = ()) -> tuple[int, str, list[str]]:
    Path("f.json").write_text("\n".join(json.dumps(each) for each in objects), encoding="utf-8")
    outcome = CliRunner().invoke(cli, ["check", "-f", "f.json", *arguments])
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    notes = [line for line in outcome.stderr.splitlines() if not line.startswith("evaluated as")]
    return outcome.exit_code, outcome.stdout, notes


def report(*objects: Json, arguments: tuple[str, ...] = ()) -> Any:
    _, stdout, _ = run(*objects, arguments=("-o", "json", *arguments))
    return contract.loaded(stdout)


def found(*objects: Json, arguments: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """Return the code, the object and the path of each finding."""
    return [
        (finding["code"], f"{finding['object']['kind']}/{finding['object']['name']}", finding["path"])
        for finding in report(*objects, arguments=arguments)["findings"]
    ]


def test_labels_of_a_rollout_are_those_of_its_controller() -> None:
    """``pod-template-hash`` is a label of Deployments; a Rollout has another."""
    manifest = rollout(constraint(match=["pod-template-hash"]))
    (finding,) = report(manifest)["findings"]
    assert (finding["code"], finding["path"]) == ("SPR107", "spec.template.spec.topologySpreadConstraints[0]")
    assert finding["fix"] == "Use rollouts-pod-template-hash instead of pod-template-hash."
    patched = jsonpatch.applied(manifest, finding["patch"]["operations"])
    assert found(patched) == []


def test_a_rollout_counts_old_and_new_pods_together() -> None:
    manifest = rollout(constraint())
    (finding,) = report(manifest)["findings"]
    assert (finding["code"], finding["severity"]) == ("SPR208", "info")
    patched = jsonpatch.applied(manifest, finding["patch"]["operations"])
    (spread,) = patched["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert spread["matchLabelKeys"] == ["rollouts-pod-template-hash"]
    assert found(patched) == []


def test_labels_that_a_rollout_sets_on_one_revision_may_be_selected() -> None:
    canary = constraint(
        hard=False, selects=selector({"app": "web", "role": "canary"}), match=["rollouts-pod-template-hash"]
    )
    strategy = {"canary": {"canaryMetadata": {"labels": {"role": "canary"}}}}
    assert found(rollout(canary, strategy=strategy)) == []
    assert found(rollout(canary)) == [("SPR206", "Rollout/web", "spec.template.spec.topologySpreadConstraints[0]")]


def test_each_template_of_an_object_has_findings_of_its_own() -> None:
    other = constraint(selects=selector({"app": "other"}))
    groups = {"leaderTemplate": template(other), "workerTemplate": template(other), "size": 4}
    manifest = custom("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": groups})
    path = "spec.leaderWorkerTemplate.{}.spec.topologySpreadConstraints[0]"
    assert found(manifest) == [
        ("SPR206", "LeaderWorkerSet/web", path.format("leaderTemplate")),
        ("SPR206", "LeaderWorkerSet/web", path.format("workerTemplate")),
    ]


@pytest.mark.parametrize(
    "term",
    [
        pytest.param(constraint(selects=selector({"app": "web", "fleet": "a"})), id="a label in the selector"),
        pytest.param(constraint(match=["fleet-revision"]), id="a label in matchLabelKeys"),
        pytest.param(constraint(match=["app.example.com/set"], selects=selector({})), id="an empty selector with keys"),
        pytest.param(
            constraint(selects=selector({"set": "a"}), match=["set"]),
            id="a label in the selector and in matchLabelKeys",
        ),
    ],
)
def test_an_unknown_controller_may_add_labels(term: Json) -> None:
    status, _, notes = run(unknown(term))
    assert status == 0
    assert notes == ["labels that a pod template lacks are not reported where a controller may add them (fleet/web)"]


def test_a_label_with_another_value_is_reported_for_every_kind() -> None:
    assert found(unknown(constraint(selects=selector({"app": "other"})))) == [
        ("SPR206", "Fleet/web", "spec.pods.spec.topologySpreadConstraints[0]")
    ]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "key"),
    [
        ("apps.kruise.io/v1alpha1", "CloneSet", lambda pod: {"template": pod}, "pod-template-hash"),
        (
            "ray.io/v1",
            "RayCluster",
            lambda pod: {"workerGroupSpecs": [{"replicas": 2, "template": pod}]},
            "ray.io/group",
        ),
        ("serving.knative.dev/v1", "Service", lambda pod: {"template": pod}, "serving.knative.dev/revision"),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            lambda pod: {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": pod}}}]},
            "jobset.sigs.k8s.io/replicatedjob-name",
        ),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            lambda pod: {"leaderWorkerTemplate": {"workerTemplate": pod}},
            "leaderworkerset.sigs.k8s.io/name",
        ),
    ],
)
def test_labels_of_known_controllers_have_an_effect_in_match_label_keys(
    api_version: str, kind: str, spec: Any, key: str
) -> None:
    assert found(custom(api_version, kind, spec(template(constraint(match=[key]))))) == []
    missing = found(custom(api_version, kind, spec(template(constraint(match=["no-such-label"])))))
    assert [code for code, _, _ in missing] == ["SPR107"]


def test_constraints_that_the_api_refuses_are_reported_with_its_words() -> None:
    (finding,) = report(unknown(constraint(max_skew=0)))["findings"]
    assert finding["code"] == "SPR202"
    assert finding["message"] == (
        "kube-apiserver refuses every pod of it: spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be "
        "greater than zero."
    )


def test_constraints_without_a_template_are_checked_without_labels() -> None:
    status, stdout, notes = run(
        prometheus(constraint(max_skew=0), constraint(key="a", selects=selector({"app": "other"}))),
        arguments=("-o", "json"),
    )
    assert [(each["code"], each["path"]) for each in json.loads(stdout)["findings"]] == [
        ("SPR202", "spec.topologySpreadConstraints[0]")
    ]
    assert status == 1
    labels = "the labels of the pods are unknown and were not compared with the selectors"
    assert notes == [f"spread constraints without a pod template (prometheus/main): {labels}"]


def test_a_selector_that_is_not_set_may_be_set_by_a_controller() -> None:
    null = {key: value for key, value in constraint().items() if key != "labelSelector"}
    (finding,) = report(prometheus(null))["findings"]
    assert (finding["code"], finding["severity"]) == ("SPR204", "info")
    assert finding["message"] == (
        "labelSelector is not set and therefore selects no pods, so nothing is spread, unless a controller sets it."
    )
    assert found(prometheus({**null, "additionalLabelSelectors": "OnResource"})) == []
    assert found(prometheus({**null, "labelSelector": {}, "additionalLabelSelectors": "OnShard"})) == []
    assert found(prometheus({**null, "labelSelector": {}})) == [
        ("SPR205", "Prometheus/main", "spec.topologySpreadConstraints[0]")
    ]


def test_keys_without_a_selector_are_not_refused_where_a_controller_may_set_it() -> None:
    """An operator adds the selector of its own pods, so kube-apiserver never sees the constraint as it is written."""
    keys = {key: value for key, value in constraint(match=["rev"]).items() if key != "labelSelector"}
    for spec in (keys, {**keys, "additionalLabelSelectors": "OnShard"}):
        (finding,) = report(prometheus(spec))["findings"]
        assert (finding["code"], finding["severity"]) == ("SPR204", "info")
        assert finding["message"].endswith("refuses pods with its matchLabelKeys, unless a controller sets it.")
    (finding,) = report(unknown(keys))["findings"]
    assert (finding["code"], finding["severity"]) == ("SPR204", "warning")
    # Another error of the same constraint is reported all the same.
    assert [code for code, _, _ in found(prometheus({**keys, "maxSkew": 0}))] == ["SPR202"]
    # The controller of a Rollout copies its template.
    assert [code for code, _, _ in found(rollout(keys))] == ["SPR202"]


@pytest.mark.parametrize("strategy", ["canary", "blueGreen"])
@pytest.mark.parametrize("terms", [{PREFERRED: {"weight": 1}}, {REQUIRED: {}}], ids=["preferred", "required"])
def test_anti_affinity_between_revisions_of_a_rollout_does_not_spread_one_revision(strategy: str, terms: Json) -> None:
    field = f"spec.strategy.{strategy}.antiAffinity"
    manifest = rollout(strategy={strategy: {"antiAffinity": terms}})
    (finding,) = report(manifest)["findings"]
    assert finding["code"] == "SPR504"
    assert (
        f"{field} only keeps pods of a new revision from nodes that have pods of the stable one."
        in (finding["message"])
    )
    _, _, notes = run(rollout(constraint(match=["rollouts-pod-template-hash"]), strategy=manifest["spec"]["strategy"]))
    assert [note for note in notes if note.startswith(f"rollout/web: {field} makes Argo Rollouts add")] == notes
    explained = CliRunner().invoke(cli, ["explain", "rollout/web", "-f", "f.json"])
    assert f"rollout/web: {field} makes Argo Rollouts add an anti-affinity term" in explained.stderr


@pytest.mark.parametrize("terms", [{}, None, {REQUIRED: None}, "soft"])
def test_no_anti_affinity_between_revisions_is_not_mentioned(terms: Any) -> None:
    (finding,) = report(rollout(strategy={"canary": {"antiAffinity": terms}}))["findings"]
    assert "antiAffinity" not in finding["message"].replace("podAntiAffinity", "")


def machine(*constraints: Json, **fields: Any) -> Json:
    """Return the template of a virtual machine of KubeVirt."""
    spec = {"domain": {"devices": {}}, "volumes": [{"name": "root", "containerDisk": {"image": IMAGE}}], **fields}
    if constraints:
        spec["topologySpreadConstraints"] = list(constraints)
    return {"metadata": {"labels": WEB}, "spec": spec}


VIRTUAL_MACHINES = [
    ("kubevirt.io/v1", "VirtualMachine", lambda of: {"template": of}, "spec.template.spec"),
    ("kubevirt.io/v1", "VirtualMachineInstanceReplicaSet", lambda of: {"template": of}, "spec.template.spec"),
    (
        "pool.kubevirt.io/v1alpha1",
        "VirtualMachinePool",
        lambda of: {"virtualMachineTemplate": {"spec": {"template": of}}},
        "spec.virtualMachineTemplate.spec.template.spec",
    ),
    (
        "infrastructure.cluster.x-k8s.io/v1alpha1",
        "KubevirtMachineTemplate",
        lambda of: {"template": {"spec": {"virtualMachineTemplate": {"spec": {"template": of}}}}},
        "spec.template.spec.virtualMachineTemplate.spec.template.spec",
    ),
]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "path"), VIRTUAL_MACHINES, ids=[each[1] for each in VIRTUAL_MACHINES]
)
def test_the_template_of_a_virtual_machine_is_checked(
    api_version: str, kind: str, spec: Callable[[Json], Json], path: str
) -> None:
    other = constraint(selects=selector({"app": "other"}))
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector(WEB), "matchLabelKeys": ["app", "app"]}
    affinity = {"podAntiAffinity": {REQUIRED: [term]}}
    manifest = custom(api_version, kind, spec(machine(other, affinity=affinity)))
    assert {(code, at) for code, _, at in found(manifest)} == {
        ("SPR206", f"{path}.topologySpreadConstraints[0]"),
        ("SPR202", f"{path}.affinity.podAntiAffinity.{REQUIRED}[0]"),
    }


def test_labels_of_a_virtual_machine_instance_are_those_of_its_pod() -> None:
    keys = ["app", "kubevirt.io", "vm.kubevirt.io/name", "pod-template-hash"]
    spec = machine(constraint(match=keys, selects=selector({"db": "1"})))["spec"]
    (absent, mismatch) = report(custom("kubevirt.io/v1", "VirtualMachineInstance", spec, labels=WEB))["findings"]
    assert (absent["code"], absent["values"]["keys"]) == ("SPR107", "pod-template-hash")
    assert (mismatch["code"], mismatch["values"]["have"]) == ("SPR206", "no label db")


def test_virtual_machines_are_spread_among_one_another() -> None:
    """One virtual machine has one pod, so its selector is meant to count those of others."""
    first, second = (
        custom("kubevirt.io/v1", "VirtualMachine", {"template": machine(constraint())}, name) for name in ("a", "b")
    )
    assert found(first, second) == []
    several = {"replicas": 3, "template": machine()}
    assert found(custom("kubevirt.io/v1", "VirtualMachineInstanceReplicaSet", several)) == [
        ("SPR504", "VirtualMachineInstanceReplicaSet/web", "spec.template.spec.topologySpreadConstraints")
    ]


def test_a_value_of_another_type_in_a_virtual_machine_is_an_error() -> None:
    status, _, notes = run(
        custom("kubevirt.io/v1", "VirtualMachine", {"template": machine({**constraint(), "maxSkew": "1"})})
    )
    assert status == 2
    assert "spec.template.spec.topologySpreadConstraints[0].maxSkew" in notes[0]


def test_a_misspelt_field_of_a_pod_template_is_reported_where_the_right_one_is_clear() -> None:
    manifest = unknown()
    manifest["spec"]["pods"]["spec"]["topologySpreadConstraint"] = [constraint()]
    manifest["spec"]["topologySpreadConstraint"] = [constraint()]
    manifest["spec"]["pods"]["spec"]["fleetSize"] = 3
    (finding,) = report(manifest)["findings"]
    assert (finding["code"], finding["path"]) == ("SPR215", "spec.pods.spec.topologySpreadConstraint")
    assert finding["fix"] == "Rename it to topologySpreadConstraints."


def test_findings_have_the_position_of_the_field(directory: Path) -> None:
    (directory / "f.yaml").write_text(
        "apiVersion: jobset.x-k8s.io/v1alpha2\n"
        "kind: JobSet\n"
        "metadata: {name: train}\n"
        "spec:\n"
        "  replicatedJobs:\n"
        "    - name: driver\n"
        "      template: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}\n"
        "    - name: workers\n"
        "      template:\n"
        "        spec:\n"
        "          template:\n"
        "            metadata: {labels: {app: train}}\n"
        "            spec:\n"
        "              containers: [{name: a, image: b}]\n"
        "              topologySpreadConstraints:\n"
        "                - maxSkew: 1\n"
        "                  topologyKey: zone\n"
        "                  whenUnsatisfiable: DoNotSchedule\n"
        "                  labelSelector: {matchLabels: {app: trian}}\n",
        encoding="utf-8",
    )
    outcome = CliRunner().invoke(cli, ["check", "-f", "f.yaml", "-o", "github"])
    path = "spec.replicatedJobs[1].template.spec.template.spec.topologySpreadConstraints[0]"
    assert outcome.stdout.startswith(
        "::warning file=f.yaml,line=16,col=19,title=SPR206 self-mismatch default/JobSet/train"
    )
    assert f"%0A{path}%0A" in outcome.stdout


def test_a_kind_with_the_name_of_a_kubernetes_kind_is_named_with_its_group() -> None:
    """A patch of ``statefulset/db`` would be of another object."""
    other = constraint(selects=selector({"app": "other"}))
    manifest = custom("apps.kruise.io/v1beta1", "StatefulSet", {"template": template(other)}, "db")
    expected = [("SPR206", "StatefulSet.apps.kruise.io/db", "spec.template.spec.topologySpreadConstraints[0]")]
    assert found(manifest) == expected
    assert found(manifest, arguments=("statefulsets.apps.kruise.io/db",)) == expected
    status, _, notes = run(manifest, arguments=("sts/db",))
    assert (status, notes) == (2, ['error: statefulsets "db" not found in the files'])


def test_captured_pods_are_those_of_their_custom_owner() -> None:
    """The finding on the pods is not repeated for the templates of the ReplicaSet and of the Rollout."""
    other = constraint(hard=False, selects=selector({"app": "other"}))
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "controller": True, "uid": "1"}
    replicas = custom("apps/v1", "ReplicaSet", {"replicas": 1, "template": template(other)}, "web-1", uid="2")
    replicas["metadata"]["ownerReferences"] = [owner]
    captured = rollout(other)
    captured["metadata"]["uid"] = "1"
    pod = pod_json("web-1-a", labels=WEB, owner="ReplicaSet/web-1", constraints=[other])
    assert found({"apiVersion": "v1", "kind": "List", "items": [captured, replicas, pod]}) == [
        ("SPR206", "Rollout/web", "spec.topologySpreadConstraints[0]")
    ]
    (finding,) = report(captured)["findings"]
    assert ("patch" in finding, "source" in finding) == (False, False)
    assert found(captured, arguments=("rollout/web",)) == [
        ("SPR206", "Rollout/web", "spec.template.spec.topologySpreadConstraints[0]")
    ]


def test_a_typed_list_of_custom_objects_is_read() -> None:
    """As ``kubectl get --raw`` returns it: the items have no kind of their own."""
    item = rollout(constraint(selects=selector({"app": "other"})))
    items = [{key: item[key] for key in ("metadata", "spec")}]
    listed = {"apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutList", "metadata": {}, "items": items}
    assert [code for code, _, _ in found(listed)] == ["SPR206"]


def test_the_annotation_silences_findings_of_a_custom_object() -> None:
    other = constraint(selects=selector({"app": "other"}))
    assert found(unknown(other, annotations={"kubectl-spread/ignore": "SPR206"})) == []


@pytest.mark.parametrize("kind", ["example.com/v1 Fleet", "argoproj.io/v1alpha1 Rollout", "apps/v1 Deployment"])
def test_the_error_about_a_placeholder_names_the_line_of_the_field(kind: str) -> None:
    version, _, name = kind.partition(" ")
    manifest = custom(version, name, {"template": template(constraint(), constraint(key="${KEY}"))})
    text = json.dumps(manifest, indent=1)
    (line,) = [number for number, written in enumerate(text.splitlines(), 1) if "${KEY}" in written]
    for file, content in (("f.json", text), ("f.yaml", f"# A comment.\n---\n{text}")):
        Path(file).write_text(content, encoding="utf-8")
        stderr = CliRunner().invoke(cli, ["check", "-f", file]).stderr
        assert f"error: {file}:{line + 2 * (file == 'f.yaml')}: {name} default/web: spec.template" in stderr


def test_custom_objects_that_describe_no_pods_are_counted() -> None:
    status, stdout, notes = run(custom("argoproj.io/v1alpha1", "Rollout", {"workloadRef": {"name": "web"}}))
    assert (status, stdout) == (0, "")
    assert notes == ["no pods or pod templates in 1 file (1 object of another kind)"]


def test_a_template_that_is_not_evaluated_is_an_error_and_hides_no_other() -> None:
    faulty = [constraint(max_skew=0), constraint(key="{{ .Values.key }}")]
    manifest = custom("example.com/v1", "Fleet", {"a": template(*faulty), "b": template(constraint(max_skew=0))})
    status, stdout, (_, *errors) = run(manifest, arguments=("-o", "json"))
    field = "spec.a.spec.topologySpreadConstraints[1].topologyKey"
    assert errors == [f"error: f.json:1: Fleet default/web: spec.a.spec is not evaluated: {field}: it has placeholders"]
    summary = contract.loaded(stdout)["summary"]
    assert (status, summary["skipped"], summary["templateConstraints"]) == (2, {"unevaluated": 1}, 1)
    (finding,) = json.loads(stdout)["findings"]
    assert (finding["code"], finding["path"]) == ("SPR202", "spec.b.spec.topologySpreadConstraints[0]")
    (unchecked,) = json.loads(stdout)["unchecked"]
    assert (unchecked["reason"], unchecked["path"]) == ("unevaluated", "spec.a.spec")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("table", "Not evaluated: 1 pod template. No findings in 1 workload (1 pod template)."),
        ("wide", "Not evaluated: 1 pod template. No findings in 1 workload (1 pod template)."),
        ("markdown", "**Not evaluated: 1 pod template.**\n\nNo findings in 1 workload (1 pod template).\n"),
        ("json", '"unevaluated": 1'),
        ("yaml", "unevaluated: 1"),
        ("html", ">Not evaluated: 1 pod template.</h1>"),
        ("html", "Not evaluated: 1 pod template."),
        ("openmetrics", 'kube_spread_skipped_objects{reason="unevaluated"} 1'),
        ("github", "::error title=kubectl-spread::could not be checked: 1 unevaluated"),
        ("sarif", "could not be checked: 1 unevaluated"),
        ("sarif", '"executionSuccessful": false'),
        ("junit", 'message="could not be checked: 1 unevaluated"'),
    ],
)
def test_every_format_has_what_was_not_evaluated(form: str, text: str) -> None:
    status, stdout, _ = run(unknown(constraint(key="{{ .Values.key }}")), arguments=("-o", form))
    assert status == 2
    assert text in stdout


NAMELESS = {"openmetrics"}
"""Formats of numbers."""
WRONG_TYPE = {**constraint(), "maxSkew": "0"}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"selector": {"matchLabels": WEB}, "template": template(WRONG_TYPE)},
}


@pytest.mark.parametrize("form", formats.names("check"))
@pytest.mark.parametrize(
    ("manifest", "reason", "name", "problem"),
    [
        pytest.param(
            unknown(constraint(key="{{ .Values.key }}")),
            "unevaluated",
            "Fleet",
            "it has placeholders",
            id="placeholder",
        ),
        pytest.param(unknown(WRONG_TYPE), "unevaluated", "Fleet", "expected integer, got string", id="unknown kind"),
        pytest.param(DEPLOYMENT, "malformed", "Deployment", "expected integer, got string", id="Kubernetes' own kind"),
    ],
)
def test_every_format_shows_a_template_that_could_not_be_evaluated(
    form: str, manifest: Json, reason: str, name: str, problem: str
) -> None:
    status, stdout, notes = run(manifest, arguments=("-o", form, "--fail-on", "never"))
    assert status == 2
    assert any(note.startswith("error: ") and problem in note for note in notes)
    if form in ("table", "wide"):
        first = "Not evaluated: 1 pod template." if reason == "unevaluated" else "Not read: 1 malformed object."
        assert stdout.splitlines()[-1].startswith(first)
    elif form in NAMELESS:
        assert f'{{reason="{reason}"}} 1' in stdout
    elif form == "name":
        assert stdout == ("deploy/web\n" if name == "Deployment" else "fleet/web\n")
    else:
        assert problem in stdout
        assert f"{name} default/web" in stdout


@pytest.mark.parametrize("form", ["github", "junit", "sarif"])
def test_texts_for_ci_name_the_first_of_many_templates(form: str) -> None:
    pools = [template(constraint(key="${KEY}")) for _ in range(25)]
    stdout = run(custom("example.com/v1", "Fleet", {"pools": pools}), arguments=("-o", form))[1]
    assert stdout.count("topologyKey: it has placeholders") == 20
    assert "and 5 more" in stdout


def test_names_in_several_namespaces_have_them() -> None:
    elsewhere = {**DEPLOYMENT, "metadata": {"name": "web", "namespace": "other"}}
    assert run(DEPLOYMENT, elsewhere, arguments=("-o", "name"))[1] == "default/deploy/web\nother/deploy/web\n"


@pytest.mark.parametrize("fail_on", ["error", "never"])
@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(unknown({**constraint(), "maxSkew": "0"}), id="a wrong type in an unknown kind"),
        pytest.param(unknown(constraint(key="$(KEY)")), id="a placeholder in a constraint"),
        pytest.param(rollout({**constraint(), "maxSkew": "${SKEW}"}), id="a placeholder in a known kind"),
        pytest.param(prometheus(constraint(), {}), id="an empty constraint"),
        pytest.param(custom("example.com/v1", "Fleet", {"topologySpreadConstraints": "${ALL}"}), id="all constraints"),
    ],
)
def test_what_is_not_evaluated_is_never_healthy(manifest: Json, fail_on: str) -> None:
    status, stdout, _ = run(manifest, arguments=("-o", "json", "--fail-on", fail_on))
    assert (status, contract.loaded(stdout)["summary"]["skipped"]) == (2, {"unevaluated": 1})


@pytest.mark.parametrize("api_version", ["policy/v1", "v1", "networking.k8s.io/v1"])
def test_an_unknown_kind_of_kubernetes_with_a_template_is_an_error(api_version: str) -> None:
    spec = {"template": template(constraint(max_skew=0))}
    status, stdout, notes = run(custom(api_version, "Foo", spec), arguments=("-o", "json", "--fail-on", "never"))
    what = f'"Foo" is not a known kind of {api_version}, so its pod template (spec.template.spec) is not evaluated'
    assert (status, notes) == (2, [f"error: f.json:1: Foo default/web: kind: {what}"])
    assert contract.loaded(stdout)["summary"]["skipped"] == {"malformed": 1}


@pytest.mark.parametrize(
    "other",
    [
        custom("policy/v1", "Foo", {"minAvailable": 1}),
        {**custom("apps/v1", "ControllerRevision", {}), "data": {"spec": {"template": template(constraint())}}},
        {**custom("v1", "ConfigMap", {}), "data": {"pod.json": json.dumps(template(constraint()))}},
    ],
    ids=lambda other: other["kind"],
)
def test_other_kinds_of_kubernetes_without_a_template_in_use_are_counted(other: Json) -> None:
    status, stdout, _ = run(other, arguments=("-o", "json"))
    assert (status, contract.loaded(stdout)["summary"]["skipped"]) == (0, {"unknownKind": 1})


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("fleet/web",), 2),
        (("rollout/api",), 0),
        (("-n", "default"), 2),
        (("-n", "other"), 0),
        (("-l", "app=web"), 2),
        (("-l", "app=other"), 0),
    ],
    ids=str,
)
def test_only_what_is_asked_for_must_be_evaluated(arguments: tuple[str, ...], status: int) -> None:
    api = custom("argoproj.io/v1alpha1", "Rollout", {"template": template(labels={"app": "other"})}, "api")
    elsewhere = custom("argoproj.io/v1alpha1", "Rollout", {"template": template()}, "web", namespace="other")
    rendered_later = unknown(constraint(key="${KEY}"))
    for each in (rendered_later, api):
        each["metadata"]["namespace"] = "default"
    assert run(rendered_later, api, elsewhere, arguments=arguments)[0] == status


@pytest.mark.parametrize(("version", "status"), [("${VERSION}", 2), ("1", 0)])
def test_a_template_whose_labels_cannot_be_read_may_have_the_labels_of_a_selector(version: str, status: int) -> None:
    manifest = unknown(constraint(key="${KEY}"))
    manifest["spec"]["pods"]["metadata"]["labels"] = {"app": "web", "version": version}
    assert run(manifest, arguments=("-l", "version=2"))[0] == status


def test_a_template_that_names_its_constraints_by_a_placeholder_is_not_reported_as_unspread() -> None:
    for field in ("topologySpreadConstraints", "affinity"):
        manifest = rollout()
        manifest["spec"]["template"]["spec"][field] = "${VALUE}"
        assert found(manifest) == []


def test_a_template_that_is_not_evaluated_is_not_explained() -> None:
    Path("f.json").write_text(json.dumps(rollout(constraint(key="${KEY}"), constraint(key="rack"))), encoding="utf-8")
    outcome = CliRunner().invoke(cli, ["explain", "rollout/web", "-f", "f.json", "-o", "json"])
    assert (outcome.exit_code, json.loads(outcome.stdout).get("templates", [])) == (2, [])
    assert "spec.template.spec is not evaluated" in outcome.stderr


def test_a_template_of_a_known_kind_with_an_invalid_value_is_an_error() -> None:
    field = "spec.template.spec.topologySpreadConstraints[0].maxSkew"
    status, _, notes = run(rollout({**constraint(), "maxSkew": "1"}))
    assert (status, notes) == (
        2,
        [f"error: f.json:1: Rollout default/web: {field}: expected integer, got string"],
    )


def test_stored_objects_of_one_name_and_of_several_groups_do_not_conflict() -> None:
    fleets = [custom(f"{group}/v1", "Fleet", {"pods": template()}, uid=group) for group in ("a.example", "b.example")]
    assert run(*fleets)[0] == 0
    assert report(*fleets)["summary"]["templates"] == 2


def test_merge_leaves_custom_objects_as_they_are() -> None:
    text = json.dumps(rollout(constraint(match=["app"])))
    outcome = CliRunner().invoke(cli, ["merge", "-f", "-"], input=text)
    assert (outcome.exit_code, outcome.stdout.rstrip("\n")) == (0, text)

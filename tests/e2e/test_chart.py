"""The chart of the monitor, as the real helm renders it, is the base that the real kubectl renders."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from string import Template
from typing import Any, Final

import pytest

from kubectl_spread import __version__
from tests.deploy.objects import (
    BASE,
    CHART,
    KUBERNETES,
    NAME,
    VALUES,
    Objects,
    chart,
    helm,
    kustomized,
    load,
    overlay,
    parsed,
    pod_templates,
    template,
)
from tests.e2e.spread import Spread
from tests.generated import ROOT
from tests.rbac import permissions_of

pytestmark = pytest.mark.e2e

PAGES = "".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("monitor", "monitor-access"))
OF_HELM = {"helm.sh/chart", "app.kubernetes.io/managed-by"}
PROXY = ("-f", str(CHART / "ci" / "kube-rbac-proxy-values.yaml"))
NAMESPACES = ("-f", str(CHART / "ci" / "namespaces-values.yaml"))


def without_labels_of_helm(objects: Objects) -> Objects:
    """Return objects without the labels that only helm sets."""
    return {name: _without_labels_of_helm(document) for name, document in objects.items()}


def _without_labels_of_helm(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _without_labels_of_helm(value) for key, value in document.items() if key not in OF_HELM}
    return [_without_labels_of_helm(item) for item in document] if isinstance(document, list) else document


def blocks(page: str, kind: str) -> list[str]:
    """Return the blocks of one kind on a page, without the fences."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_kustomization_of_the_page_renders(tmp_path: Path) -> None:
    """Its addresses name directories of this version; here the checkout has them."""
    kustomization, patches = (text for text in blocks(PAGES, "yaml") if "resources:" in text or "patches:" in text)
    assert set(re.findall(r"\?ref=(\S+)", kustomization)) == {f"v{__version__}"}
    checkout = os.path.relpath(ROOT, tmp_path)
    local = re.sub(
        r"https://github.com/kubectl-spread/kubectl-spread//([^?]+)\?ref=\S+", rf"{checkout}/\1", kustomization
    )
    (tmp_path / "kustomization.yaml").write_text(local + patches, encoding="utf-8")
    objects = kustomized(tmp_path)
    assert f"ServiceMonitor/{NAME}" in objects
    (pod,) = pod_templates(objects)
    assert pod["spec"]["containers"][0]["image"] == f"registry.example.com/{NAME}:{__version__}"
    (rule,) = objects[f"NetworkPolicy/{NAME}"]["spec"]["ingress"]
    assert rule["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "observability"}


@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.name if path else "values.yaml")
def test_helm_finds_no_fault(values: Path | None) -> None:
    completed = helm("lint", "--strict", str(CHART), KUBERNETES, *(["-f", str(values)] if values else []))
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_the_chart_renders_the_base() -> None:
    """Only the namespace is missing, which helm creates itself."""
    base = dict(kustomized(BASE))
    del base[f"Namespace/{NAME}"]
    assert without_labels_of_helm(chart()) == base


def test_the_chart_renders_the_service_monitor_of_the_component(tmp_path: Path) -> None:
    name = f"ServiceMonitor/{NAME}"
    component = kustomized(overlay(tmp_path / "overlay", "service-monitor"))
    rendered = chart("--set=prometheus.monitor.enabled=true")
    assert without_labels_of_helm(rendered)[name] == component[name]
    assert rendered.keys() - chart().keys() == {name}


def test_kube_rbac_proxy_is_the_same_in_both(tmp_path: Path) -> None:
    component = dict(kustomized(overlay(tmp_path / "overlay", "service-monitor", "kube-rbac-proxy")))
    flags = ("--set=kubeRBACProxy.enabled=true", "--set=prometheus.monitor.enabled=true")
    rendered = without_labels_of_helm(chart(*flags))
    del component[f"Namespace/{NAME}"]
    assert rendered == component


def test_default_constraints_are_the_same_in_both(tmp_path: Path) -> None:
    component = kustomized(overlay(tmp_path / "overlay", "default-constraints"))
    rendered = without_labels_of_helm(chart("--set=defaultConstraints.enabled=true"))
    for name in (f"Deployment/{NAME}", f"ClusterRole/{NAME}"):
        assert rendered[name] == component[name]


def test_the_configuration_of_the_scheduler_is_mounted() -> None:
    (pod,) = pod_templates(chart("--set=defaultConstraints.enabled=true,defaultConstraints.configMapName=scheduler"))
    (container,) = pod["spec"]["containers"]
    (mount,), (volume,) = container["volumeMounts"], pod["spec"]["volumes"]
    (argument,) = [each for each in container["args"] if "scheduler" in each]
    assert argument == f"--scheduler-config={mount['mountPath']}/config.yaml"
    assert (mount["name"], volume["configMap"]) == (volume["name"], {"name": "scheduler"})
    assert "--defaults" not in container["args"]


def test_the_proxy_alone_reaches_the_report(tmp_path: Path) -> None:
    """Prometheus sends its token to the proxy, which listens at the port of the Service."""
    objects = kustomized(overlay(tmp_path / "overlay", "service-monitor", "default-constraints", "kube-rbac-proxy"))
    (pod,) = pod_templates(objects)
    monitor, proxy = pod["spec"]["containers"]
    assert monitor["args"] == [
        "monitor",
        "-A",
        "--listen=127.0.0.1:8080",
        "--telemetry=:8081",
        "--defaults",
        "--accept-hosts=.*",
    ]
    assert [port["name"] for port in monitor["ports"]] == ["telemetry"]
    assert [port["name"] for port in proxy["ports"]] == ["http", "http-healthz"]
    report, telemetry = objects[f"ServiceMonitor/{NAME}"]["spec"]["endpoints"]
    assert report["bearerTokenFile"].endswith("/token")
    assert telemetry == {"port": "telemetry", "honorLabels": True}


def test_alerts_and_dashboard_select_the_job_of_the_release() -> None:
    """The job is the name of the monitor, which a value may replace."""
    flags = ("--set=prometheus.rules.enabled=true", "--set=dashboard.enabled=true")
    objects = chart(*flags)
    assert objects.keys() - chart().keys() == {f"PrometheusRule/{NAME}", f"ConfigMap/{NAME}-dashboard"}
    mixin = ROOT / "mixin" / "rendered"
    assert objects[f"PrometheusRule/{NAME}"]["spec"] == load(mixin / "alerts.yaml")
    (page,) = objects[f"ConfigMap/{NAME}-dashboard"]["data"].values()
    assert page == (mixin / "dashboard.json").read_text(encoding="utf-8")
    renamed = chart(*flags, "--set=nameOverride=spread-eu")
    (page,) = renamed[f"ConfigMap/{NAME}-dashboard"]["data"].values()
    for text in (json.dumps(renamed[f"PrometheusRule/{NAME}"]), page):
        assert set(re.findall(r'job=\\"([^"\\]+)', text)) == {"spread-eu"}
        assert json.loads(text)


@pytest.mark.parametrize("flags", [(), NAMESPACES], ids=" ".join)
def test_a_role_that_exists_is_bound_and_not_created(flags: tuple[str, ...]) -> None:
    objects = chart(*flags, "--set=rbac.useExistingRole=reader")
    assert not [name for name in objects if name.startswith(("Role/", "ClusterRole/"))]
    bound = {name: document["roleRef"] for name, document in objects.items() if "RoleBinding/" in name}
    assert {name.partition("/")[0] for name in bound} == {"ClusterRoleBinding", *(["RoleBinding"] if flags else [])}
    assert {role["name"] for role in bound.values()} == {"reader"}


def test_probes_and_the_strategy_are_values() -> None:
    objects = chart("--set=startupProbe.httpGet.port=1,readinessProbe=null,updateStrategy.type=Recreate")
    (pod,) = pod_templates(objects)
    (container,) = pod["spec"]["containers"]
    assert "readinessProbe" not in container
    assert container["startupProbe"] == {"httpGet": {"port": 1}}
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert objects[f"Deployment/{NAME}"]["spec"]["strategy"] == {"type": "Recreate"}


def test_further_manifests_are_rendered() -> None:
    text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Release.Name }}-extra'}}"
    both = [text, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "further"}}]
    objects = chart("--set-json", f"extraManifests={json.dumps(both)}")
    assert objects.keys() - chart().keys() == {f"ConfigMap/{NAME}-extra", "ConfigMap/further"}


def test_an_empty_list_of_sources_admits_nobody() -> None:
    """A rule without sources would admit everybody."""
    policy = chart("--set-json", "networkPolicy.from=[]")[f"NetworkPolicy/{NAME}"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == []
    everybody = chart("--set-json", 'networkPolicy.from=[{"namespaceSelector":{}}]')[f"NetworkPolicy/{NAME}"]["spec"]
    (rule,) = everybody["ingress"]
    assert rule["from"] == [{"namespaceSelector": {}}]
    assert [port["port"] for port in rule["ports"]] == ["http", "telemetry"]


def test_each_listed_namespace_has_a_monitor_and_a_role() -> None:
    """Nothing in other namespaces may be read, except nodes and volumes, which are in none."""
    objects = chart(*NAMESPACES)
    arguments = [pod["spec"]["containers"][0]["args"] for pod in pod_templates(objects)]
    ports = ["--listen=:8080", "--telemetry=:8081"]
    assert arguments == [["monitor", f"--namespace={namespace}", *ports] for namespace in ("shop", "web")]
    assert {name for name in objects if name.startswith("Role")} == {
        f"{kind}/{NAME} in {namespace}" for kind in ("Role", "RoleBinding") for namespace in ("shop", "web")
    }
    assert {str(permission) for permission in permissions_of([objects[f"ClusterRole/{NAME}"]])} == {
        "get /metrics",
        "get namespaces/kube-system",
        "list nodes",
        "list persistentvolumes",
        "watch nodes",
        "watch persistentvolumes",
    }


def test_roles_of_namespaces_and_the_cluster_role_allow_the_same() -> None:
    listed = chart(*NAMESPACES)
    roles = [listed[f"Role/{NAME} in shop"], listed[f"ClusterRole/{NAME}"]]
    assert permissions_of(roles) == permissions_of([chart()[f"ClusterRole/{NAME}"]])


def test_listed_namespaces_may_be_read_by_a_cluster_role() -> None:
    objects = chart(*NAMESPACES, "--set=rbac.useClusterRole=true")
    assert not [name for name in objects if name.startswith("Role")]
    assert objects[f"ClusterRole/{NAME}"]["rules"] == chart()[f"ClusterRole/{NAME}"]["rules"]


def test_selectors_of_several_monitors_do_not_overlap() -> None:
    objects = chart(*NAMESPACES)
    for namespace in ("shop", "web"):
        name = f"{NAME}-{namespace}"
        deployment = objects[f"Deployment/{name}"]["spec"]
        selector = deployment["selector"]["matchLabels"]
        assert selector["kubectl-spread/namespace"] == namespace
        assert selector.items() <= deployment["template"]["metadata"]["labels"].items()
        assert objects[f"Service/{name}"]["spec"]["selector"] == selector
        assert objects[f"PodDisruptionBudget/{name}"]["spec"]["selector"]["matchLabels"] == selector
        for constraint in deployment["template"]["spec"]["topologySpreadConstraints"]:
            assert constraint["labelSelector"]["matchLabels"] == selector


def test_names_of_long_namespaces_are_distinct() -> None:
    long = [f"{'team-' * 10}{end}" for end in ("one", "two")]
    objects = chart("--set-json", f"namespaces={json.dumps(long)}")
    names = [name.partition("/")[2] for name in objects if name.startswith("Service/")]
    assert len(set(names)) == 2
    assert max(map(len, names)) <= 63


NAMED: Final = Template(
    """{
    "namespaceOverride": "$name", "nameOverride": "$name", "fullnameOverride": "$name", "namespaces": ["$name"],
    "serviceAccount": {"name": "$name"},
    "defaultConstraints": {"enabled": true, "configMapName": "$name"},
    "prometheus": {
      "monitor": {"enabled": true, "namespace": "$name"}, "rules": {"enabled": true, "namespace": "$name"}
    },
    "dashboard": {"enabled": true, "namespace": "$name"}, "rbac": {"useExistingRole": "$name"}
    }"""
)
FREE: Final = Template(
    """{
    "clusterName": "$name", "extraArgs": ["$name"], "priorityClassName": "$name", "namespacesDenylist": ["shop"],
    "image": {"registry": "$name", "repository": "$name", "tag": "$name"},
    "kubeRBACProxy": {
      "enabled": true, "extraArgs": ["$name"], "image": {"registry": "$name", "repository": "$name", "tag": "$name"}
    },
    "serviceAccount": {"name": "$name", "annotations": {"example.com/a": "$name"}},
    "annotations": {"example.com/a": "$name"}, "customLabels": {"a": "$name"}, "podLabels": {"b": "$name"},
    "podAnnotations": {"example.com/a": "$name"}, "nodeSelector": {"a": "$name"},
    "env": [{"name": "A", "value": "$name"}], "service": {"annotations": {"example.com/a": "$name"}},
    "prometheus": {"monitor": {
      "enabled": true, "jobLabel": "$name", "additionalLabels": {"c": "$name"}, "targetLabels": ["$name"],
      "annotations": {"example.com/a": "$name"}, "http": {"bearerTokenFile": "$name"}
    }, "rules": {"enabled": true, "annotations": {"example.com/a": "$name"}, "additionalLabels": {"c": "$name"}}},
    "dashboard": {"enabled": true, "annotations": {"example.com/a": "$name"}, "labels": {"c": "$name"}}
    }"""
)
"""Values of the chart that are text, with a placeholder: names of objects, and those that may have any character."""


@pytest.mark.parametrize(
    ("values", "name"),
    [
        *((NAMED, name) for name in ("123", "1e3", "0x1f", "true", "null")),
        *((FREE, name) for name in ("123", "true", "prod: eu", "prod #1", "{a}", "- a", "it's", 'the "eu"', "a\\b")),
    ],
    ids=lambda value: value if isinstance(value, str) else ("named" if value is NAMED else "free"),
)
def test_text_in_values_stays_text(values: Template, name: str, tmp_path: Path) -> None:
    """Whatever it looks like in YAML, the objects have it where they have a harmless word."""

    def rendered(text: str) -> str:
        (tmp_path / "values.json").write_text(values.substitute(name=json.dumps(text)[1:-1]), encoding="utf-8")
        return json.dumps(chart("-f", str(tmp_path / "values.json")))

    assert json.loads(rendered(name)) == json.loads(rendered("harmless").replace("harmless", json.dumps(name)[1:-1]))


def test_a_release_may_be_called_by_a_number() -> None:
    objects = parsed(template(release="123").stdout)
    assert objects
    for document in objects.values():
        assert document["metadata"]["labels"]["app.kubernetes.io/instance"] == "123"


def test_values_of_an_endpoint_replace_those_for_the_proxy() -> None:
    """A Prometheus may verify a certificate that the proxy is given."""
    values = '{"tlsConfig": {"serverName": "a.svc"}, "bearerTokenFile": "/token"}'
    objects = chart(*PROXY, "--set-json", f"prometheus.monitor.http={values}")
    report, telemetry = objects[f"ServiceMonitor/{NAME}"]["spec"]["endpoints"]
    assert (report["tlsConfig"], report["bearerTokenFile"]) == ({"serverName": "a.svc"}, "/token")
    assert (report["scheme"], telemetry) == ("https", {"port": "telemetry", "honorLabels": True})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--set=rbac.useClusterRole=false"], "rbac.useClusterRole=false needs the list of namespaces to watch"),
        (["--set=namespaces={shop}", "--set=namespacesDenylist={web}"], "namespacesDenylist has no effect"),
        (["--set=replica=2"], "replica"),
        (["--set=defaultConstraints.configMapName=scheduler"], "configMapName has no effect without"),
        (["--set=defaultConstraints.enabled=true,defaultConstraints.configMapName=a: b"], "configMapName"),
    ],
)
def test_wrong_values_end_with_a_reason(flags: list[str], message: str) -> None:
    completed = template(*flags)
    assert completed.returncode == 1
    assert message in completed.stderr


@pytest.mark.parametrize("flags", [(), NAMESPACES, PROXY, ("--set=replicas=3",)], ids=" ".join)
def test_its_own_constraints_have_no_findings(spread: Spread, flags: tuple[str, ...]) -> None:
    """Not even notes."""
    answer = spread("check", "-f", "-", "--severity=info", "-o", "json", input=template(*flags).stdout)
    assert (answer.status, answer.report["findings"]) == (0, [])
    assert answer.report["summary"]["templates"] >= 1

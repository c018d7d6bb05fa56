"""Every format identifies the cluster, and names from a kubeconfig are only data in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from xml.etree import ElementTree as ET

import msgspec
import pytest
import yaml

from kubectl_spread.cli import formats
from kubectl_spread.explain.explanation import explain
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.render import about, explanation, html, screen, table, words
from kubectl_spread.render.ci import github
from kubectl_spread.render.ci.junit import junit
from kubectl_spread.render.markdown import markdown
from kubectl_spread.render.table import Layout
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.report.model import Report
from tests.audits import audit, deployment, engine_of, reported
from tests.builders import constraint, pod_json
from tests.render import identified, test_github, test_junit, test_openmetrics, test_sarif
from tests.render.identified import READ_AT, UID
from tests.render.test_markdown import PARSER, tables
from tests.render.test_render import EVIL, several, without_nodes

PIPE: Final = Terminal()
MARKUP: Final = '<script>alert(1)</script> "quoted" [x](http://evil) ::error:: | `a` {0} @x'
COUNTS: Final = "9 pods in 3 workloads, 4 nodes in 2 zones"
FORMATS: Final = tuple(form for form in formats.names("check") if form not in ("name", "table", "wide"))
IDENTITY: Final = {
    "context": "prod-eu",
    "name": "eu-1",
    "uid": UID,
    "readAt": READ_AT,
    "serverVersion": "1.37.1",
    "evaluatedAs": "1.37",
    "namespace": "shop",
}


def header(report: Report) -> str:
    return words.safe("  ".join(about.header(report.cluster, report.summary, report.findings)))


def changed(**fields: Any) -> Report:
    """Return a report of a live cluster with other fields."""
    report = identified.several()
    return msgspec.structs.replace(report, cluster=msgspec.structs.replace(report.cluster, **fields))


def test_the_first_line_describes_the_cluster() -> None:
    first, empty, *_ = table.check(identified.several(), Layout(), PIPE).splitlines()
    assert (first, empty) == (f"prod-eu  Kubernetes 1.37.1  namespace shop: {COUNTS}  {READ_AT}", "")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_first_line_fits_the_terminal(width: int) -> None:
    text = table.check(identified.several(), Layout(headers=True), Terminal(width=width)).split("\n\n")[0]
    assert max(map(len, text.splitlines())) <= width
    assert " ".join(text.split()) == " ".join(f"prod-eu Kubernetes 1.37.1 namespace shop: {COUNTS} {READ_AT}".split())
    assert READ_AT in text


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, [f"prod-eu  Kubernetes 1.37.1  namespace shop: {COUNTS}  {READ_AT}"]),
        (
            80,
            [
                "prod-eu  Kubernetes 1.37.1  namespace shop: 9 pods in 3 workloads,",
                f"  4 nodes in 2 zones  {READ_AT}",
            ],
        ),
        (
            40,
            [
                "prod-eu  Kubernetes 1.37.1",
                "  namespace shop: 9 pods in 3 workloads,",
                "  4 nodes in 2 zones",
                f"  {READ_AT}",
            ],
        ),
    ],
)
def test_the_first_line_ends_between_phrases(width: int | None, lines: list[str]) -> None:
    text = table.check(identified.several(), Layout(), Terminal(width=width))
    assert text.split("\n\n")[0].splitlines() == lines


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        pytest.param({}, "prod-eu", id="the context"),
        pytest.param({"name_source": "flag"}, "eu-1", id="the name that the user gave"),
        pytest.param({"context": msgspec.UNSET}, "eu-1", id="the name, without a context"),
        pytest.param({"context": msgspec.UNSET, "name": msgspec.UNSET}, "", id="nothing is known"),
        pytest.param({"context": "a\x1b[31m\nb"}, "a\\x1b[31m\\nb", id="characters that are not shown"),
    ],
)
def test_the_label_of_a_cluster_is_the_best_name(fields: dict[str, Any], label: str) -> None:
    report = changed(**fields)
    assert words.safe(about.label(report.cluster)) == label
    assert header(report) == f"{label}  Kubernetes 1.37.1  namespace shop: {COUNTS}  {READ_AT}".lstrip()


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        pytest.param({}, "Kubernetes 1.37.1", id="the server's"),
        pytest.param(
            {"evaluated_as": "1.36", "version_source": "flag"},
            "Kubernetes 1.37.1, evaluated as 1.36",
            id="chosen",
        ),
        pytest.param({"evaluated_as": "1.36"}, "Kubernetes 1.37.1, evaluated as 1.36", id="emulated"),
        pytest.param(
            {"server_version": "1.99.0-eks-1"}, "Kubernetes 1.99.0-eks-1, evaluated as 1.37", id="newer than known"
        ),
        pytest.param(
            {"compared_with": "1.36"},
            "Kubernetes 1.37.1, compared with 1.36, default feature gates",
            id="compared",
        ),
        pytest.param({"gates_source": "flag"}, "Kubernetes 1.37.1, with --feature-gates", id="gates that are given"),
        pytest.param({"gates_source": "metrics"}, "Kubernetes 1.37.1", id="gates that are read"),
        pytest.param(
            {"server_version": msgspec.UNSET, "version_source": "flag"},
            "evaluated as Kubernetes 1.37",
            id="files, chosen",
        ),
        pytest.param(
            {"server_version": msgspec.UNSET, "version_source": "default"},
            "evaluated as Kubernetes 1.37 (newest known; --server-version changes it)",
            id="files",
        ),
        pytest.param(
            {
                "server_version": msgspec.UNSET,
                "version_source": "flag",
                "evaluated_as": "1.33",
                "compared_with": "1.34",
            },
            "evaluated as Kubernetes 1.33, compared with 1.34, default feature gates",
            id="files, compared",
        ),
    ],
)
def test_the_version_and_its_source_are_printed(fields: dict[str, Any], part: str) -> None:
    assert header(changed(**fields)).split("  ")[1] == part


def test_assumed_gates_are_printed_if_a_finding_depends_on_them() -> None:
    assert "gates" not in header(reported(several()))
    unmerged = pod_json("p", node="a1", labels={"rev": "r1"}, constraints=[constraint(match=["rev"])], stored=True)
    report = reported(audit(unmerged))
    verdicts = {verdict for row in report.constraints for verdict in row.verdicts}
    assert verdicts <= {"unmerged", "pre-upgrade"}, verdicts
    assert "evaluated as Kubernetes 1.37, default feature gates  " in header(report)


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        pytest.param({}, f"namespace shop: {COUNTS}", id="a namespace"),
        pytest.param({"namespace": msgspec.UNSET}, f"all namespaces: {COUNTS}", id="all of a cluster"),
        pytest.param({"namespace": msgspec.UNSET, "server_version": msgspec.UNSET}, COUNTS, id="all of the files"),
        pytest.param({"zone_count": 0}, "namespace shop: 9 pods in 3 workloads, 4 nodes", id="nodes without zones"),
        pytest.param({"nodes": "none"}, "namespace shop: 9 pods in 3 workloads, no nodes", id="no nodes"),
        pytest.param(
            {"nodes": "inferred"},
            "namespace shop: 9 pods in 3 workloads, domains inferred from pods' labels",
            id="inferred domains",
        ),
    ],
)
def test_the_numbers_of_objects_are_printed(fields: dict[str, Any], part: str) -> None:
    assert header(changed(**fields)).split("  ")[2] == part


def test_templates_are_counted_where_there_are_no_pods() -> None:
    assert header(reported(audit(deployment()))).endswith("  1 pod template, no nodes")
    assert header(reported(audit())).endswith("  0 pods, no nodes")


def test_explain_names_the_namespace_once() -> None:
    answer = explain(several(), identified.several(), ObjectRef("shop", "Deployment", "web"), engine_of(several()))
    lines = screen.text(explanation.document(answer), PIPE).splitlines()
    assert sum("in shop" in line for line in lines) == 1
    assert lines[-4] == f"prod-eu  Kubernetes 1.37.1  9 pods, 4 nodes in 2 zones  {READ_AT}"


def test_sarif_has_the_identity_of_the_cluster() -> None:
    run = test_sarif.run(identified.several())
    assert run["properties"] == {"cluster": IDENTITY}
    assert run["automationDetails"] == {"id": f"kubectl-spread/prod-eu/{READ_AT}"}


def test_junit_has_the_identity_of_the_cluster() -> None:
    report = identified.several()
    test_junit.parsed(report)
    suites = list(ET.fromstring(junit(report)).iter("testsuite"))
    assert suites
    for suite in suites:
        properties = {element.attrib["name"]: element.attrib["value"] for element in suite.iter("property")}
        assert properties == {f"cluster.{name}": value for name, value in IDENTITY.items()}


def test_github_commands_name_the_cluster() -> None:
    titles = [properties["title"] for _, properties, _ in test_github.commands(github(identified.several()))]
    assert titles
    assert all(title.endswith(" in prod-eu") for title in titles)


def test_metrics_have_the_identity_of_the_cluster() -> None:
    report = identified.several()
    ((labels, value),) = (
        (dict(labels), value)
        for (name, labels), value in test_openmetrics.parsed(test_openmetrics.openmetrics(report)).items()
        if name == "kube_spread_info"
    )
    assert value == 1
    assert labels == {
        "context": "prod-eu",
        "cluster_name": "eu-1",
        "cluster_uid": UID,
        "server_version": "1.37.1",
        "evaluated_as": "1.37",
        "version_source": "live",
        "nodes": "listed",
    }
    assert test_openmetrics.of(report, "read_timestamp_seconds") == 1795325047
    assert test_openmetrics.of(reported(several()), "read_timestamp_seconds") is None


def test_an_unknown_identity_is_left_out() -> None:
    """The identity of a capture without ``--cluster-name`` is only the version."""
    report = reported(without_nodes())
    assert about.identity(report.cluster) == {"evaluatedAs": "1.37"}
    assert "automationDetails" not in test_sarif.run(report)


@pytest.mark.parametrize("text", [EVIL, MARKUP, EVIL + MARKUP], ids=["escapes", "markup", "both"])
@pytest.mark.parametrize("form", FORMATS)
def test_names_of_a_kubeconfig_are_data_in_every_format(form: str, text: str) -> None:
    """A kubeconfig may come from an attacker."""
    report = identified.several(context=f"c{text}", name=f"n{text}")
    printed = formats.rendered(report, form)
    assert all(char.isprintable() or char in "\n\t" for char in printed)
    _CHECKS[form](report, printed, f"c{text}")


def _json(_report: Report, printed: str, context: str) -> None:
    assert json.loads(printed)["cluster"]["context"] == context


def _yaml(_report: Report, printed: str, context: str) -> None:
    assert yaml.safe_load(printed)["cluster"]["context"] == context


def _html(_report: Report, printed: str, _context: str) -> None:
    assert printed.count("</script>") == html.page(identified.several()).count("</script>")
    assert "<script>alert" not in printed


def _markdown(_report: Report, printed: str, _context: str) -> None:
    assert [len(table) for table in tables(printed)] == [len(table) for table in tables(markdown(identified.several()))]
    line = next(token for token in PARSER.parse(printed) if "Kubernetes 1.37.1" in token.content)
    assert {child.type for child in line.children or ()} <= {"text", "text_special"}


def _github(_report: Report, printed: str, _context: str) -> None:
    assert len(test_github.commands(printed)) == len(test_github.commands(github(identified.several())))


def _sarif(report: Report, _printed: str, context: str) -> None:
    run = test_sarif.run(report)
    assert run["properties"]["cluster"]["context"] == words.safe(context)
    assert run["automationDetails"]["id"] == f"kubectl-spread/{words.safe(context)}/{READ_AT}"


_CHECKS: Final[Mapping[str, Callable[[Report, str, str], object]]] = {
    "json": _json,
    "yaml": _yaml,
    "html": _html,
    "markdown": _markdown,
    "github": _github,
    "sarif": _sarif,
    "junit": lambda report, _printed, _context: test_junit.parsed(report),
    "openmetrics": lambda _report, printed, _context: test_openmetrics.parsed(printed),
}


def test_every_format_is_checked() -> None:
    assert set(_CHECKS) == set(FORMATS)

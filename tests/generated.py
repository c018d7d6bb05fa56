"""Pages and parts of pages that are generated from the code; run as a module it writes them (``make docs``)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import click
import msgspec
from click.testing import CliRunner

from kubectl_spread import __version__, policy
from kubectl_spread.cli import cli
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.render import screen
from kubectl_spread.render.document import AnswerSection
from kubectl_spread.render.domain_evidence import domains, replicas, waiting
from kubectl_spread.render.explanation import document
from kubectl_spread.render.selector_evidence import rollup, templates
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.rules import RULES
from tests import answers, manual, metrics, rule_examples, schemas
from tests.deploy import readme as chart_readme
from tests.mixin import dashboard
from tests.render.uneven import crowded, uneven, unmade
from tests.threads import cases

_ANSWERED: Final = (0, 1)
"""The exit statuses of a command that printed all of its answer."""
ROOT: Final = Path(__file__).parent.parent
SAMPLE: Final = "examples/cluster.json"
PENDING: Final = "examples/pending.yaml"
CHECK: Final = ("check", "-f", SAMPLE, "--server-version", "1.37")
EXPLAIN_API: Final = ("explain", "deploy/api", "-n", "shop", "-f", SAMPLE, "--server-version", "1.37")
EXPLAIN: Final = ("explain", "deploy/cart", "-n", "shop", "-f", SAMPLE, "--server-version", "1.37")

CHART: Final = "template shop examples/chart --set api.replicas=3,db.replicas=3"
"""The arguments of helm for the chart in docs/offline.md."""
KUSTOMIZATION: Final = "examples/kustomize/production"
RENDERED: Final = ROOT / "tests" / "e2e" / "rendered"
"""What helm and kubectl rendered for these; ``tests/e2e/test_rendered.py`` renders them again."""
FRONT: Final = "examples/recommend/front.yaml"
DOMAINS: Final = "docs/domains/cluster.yaml"
PLAN: Final = "docs/plan/cluster.yaml"
AUTOSCALERS: Final = "docs/autoscalers"
THREADS: Final = "tests/threads"
BLUEBIRD: Final = f"{THREADS}/24-canary-is-wedged-by-tainted-nodes"
COREDNS: Final = f"{THREADS}/26-second-coredns-is-pending"
FRONTEND: Final = f"{THREADS}/15-rollout-leaves-3-2-0"
INFLATE: Final = f"{THREADS}/42-deployment-lacks-the-label"
OPENSEARCH: Final = f"{THREADS}/28-nodes-lack-the-topology-key"
PODINFO: Final = f"{THREADS}/54-default-constraints-are-invisible"
SOLVER: Final = f"{THREADS}/47-reason-of-each-node"
SYMPTOMS: Final = "docs/troubleshooting"
"""The cases behind the answers in docs/pending.md and docs/troubleshooting.md."""


def page(path: str) -> str:
    """Return a page as generated now, as a whole, or in its marked blocks and where it names the release."""
    if path in PAGES:
        return PAGES[path]()
    text = (ROOT / path).read_text(encoding="utf-8")
    if path in OF_THE_RELEASE:
        text = _RELEASE.sub(rf"\g<1>{__version__}", text)
    for name, block in BLOCKS.get(path, {}).items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{path} has no block {name}")
        text = pattern.sub(lambda _: f"{begin}{block()}{end}", text)  # noqa: B023 - used at once
    return text


def run(*arguments: str) -> str:
    """Return the stdout of a command."""
    result = CliRunner().invoke(cli, arguments, prog_name="kubectl spread")
    if result.exit_code not in _ANSWERED:
        raise ValueError(f"{' '.join(arguments)}: {result.stderr}")
    return result.stdout


def carried() -> str:
    """Return the rules of policies as a table."""
    rows = sorted(
        (rule.code, rule.name, str(rule.severity), rule.summary) for rule in RULES if rule.code in policy.codes()
    )
    cells = (("rule", "name", "severity", "summary"), ("---",) * 4, *rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def sample_findings() -> str:
    """Return the findings on the sample cluster, a line for each, as a Markdown block."""
    findings = json.loads(run(*CHECK, "-A", "-o", "json", "--severity", "info"))["findings"]
    lines = (f"{finding['code']} {finding['object']['name']}: {finding['message']}\n" for finding in findings)
    return f"```text\n{''.join(lines)}```\n"


def source(path: str) -> str:
    """Return a file of YAML as a Markdown block."""
    return f"```yaml\n{(ROOT / path).read_text(encoding='utf-8')}```\n"


def section_block(
    make: Callable[[Explanation], Iterable[AnswerSection]], explained: Callable[[], Explanation] = uneven
) -> str:
    """Return a section of ``explain`` about an uneven Deployment, on a narrow terminal, as a Markdown block."""
    text = "\n".join(screen.section(section, Terminal(width=80)) for section in make(explained()))
    return f"```\n{text}```\n"


def conclusion_block(explained: Callable[[], Explanation]) -> str:
    """Return the conclusion and the causes of ``explain`` in the same way."""
    answer = msgspec.structs.replace(document(explained()), sections=[], header=[], notes=[])
    return f"```\n{screen.text(answer, Terminal(width=80))}```\n"


def ten_recipes() -> str:
    """Return the table of docs/recommend.md, of which each row is an answer."""
    from tests.recommend import recipes  # noqa: PLC0415 - it needs this module

    return recipes.table()


def rules_page() -> str:
    """Return docs/rules.md."""
    return run("rules", "-o", "markdown")


def cli_page() -> str:
    """Return docs/cli.md."""
    head = "# Commands\n\nWhat `kubectl spread help COMMAND` prints, and the list of `kubectl spread options`.\n"
    return head + "".join(f"\n## {name}\n\n```\n{text}```\n" for name, text in _helps())


def _helps() -> Iterator[tuple[str, str]]:
    yield "kubectl spread", run("--help")
    for name in cli.list_commands(click.Context(cli)):
        yield f"kubectl spread {name}", run(name, *(() if name == "options" else ("--help",)))


PAGES: Final[dict[str, Callable[[], str]]] = {
    # docs/rules.md has these examples.
    rule_examples.PATH: rule_examples.text,
    dashboard.PATH: dashboard.text,
    chart_readme.PATH: chart_readme.text,
    "docs/rules.md": rules_page,
    "docs/cli.md": cli_page,
    "docs/threads.md": cases.page,
    **{path: partial(manual.page, name) for path, name in manual.paths().items()},
    **{schemas.path(kind): partial(schemas.text, kind) for kind in schemas.KINDS},
}
BLOCKS: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "README.md": {"pending": lambda: answers.fetched("explain deploy/web", PENDING, lines=7)},
    "docs/ci.md": {
        "pre-commit": lambda: source("docs/ci/pre-commit-config.yaml"),
        "kustomize": lambda: source("docs/ci/pre-commit-kustomize.yaml"),
        "github": lambda: source("docs/ci/github.yml"),
        "gitlab": lambda: source("docs/ci/gitlab-ci.yml"),
        "cronjob": lambda: source("docs/ci/cronjob.yaml"),
    },
    "docs/comparison.md": {"kubectl spread": sample_findings},
    "docs/policy.md": {"rules": carried},
    "docs/offline.md": {
        "chart": lambda: answers.piped(f"helm {CHART}", RENDERED / "chart.yaml"),
        "kustomization": lambda: answers.kustomized(KUSTOMIZATION, RENDERED / "production.yaml"),
    },
    "docs/metrics.md": {"metrics": metrics.tables, "telemetry": metrics.telemetry},
    "docs/monitor.md": {"scrape": lambda: source("deploy/prometheus/scrape.yaml")},
    "docs/permissions.md": {"cluster": lambda: source("docs/rbac/cluster.yaml")},
    "docs/getting-started.md": {
        "check": lambda: answers.on_terminal(*CHECK),
        "explain": lambda: answers.on_terminal(*EXPLAIN),
    },
    "docs/explain.md": {
        "scale-down": lambda: answers.on_terminal(*EXPLAIN_API),
        "owners": lambda: section_block(rollup),
        "templates": lambda: section_block(templates, unmade),
        "why": lambda: section_block(domains),
        "evictions": lambda: conclusion_block(crowded),
        "pending": lambda: section_block(waiting),
        "replicas": lambda: section_block(replicas, crowded),
    },
    "docs/autoscalers.md": {
        "karpenter": lambda: answers.section(
            "explain deploy/web -n shop", f"{AUTOSCALERS}/karpenter.yaml", "A node may be made"
        ),
        "cluster-autoscaler": lambda: answers.section(
            "explain deploy/web -n shop", f"{AUTOSCALERS}/cluster-autoscaler.yaml", "A node may be made"
        ),
        "simulate": lambda: answers.domains(
            "simulate --lose zone=eu-1c -n shop --runs 20", f"{AUTOSCALERS}/karpenter.yaml"
        ),
    },
    "docs/domains.md": {
        "zones": lambda: answers.domains("domains -A", DOMAINS),
        "zone": lambda: answers.domains("domains zone a -A", DOMAINS),
    },
    "docs/simulate.md": {
        "lose": lambda: answers.domains("simulate --lose zone=a -A --runs 20", SAMPLE),
    },
    "docs/plan.md": {
        "plan": lambda: answers.plan("plan -n shop", SAMPLE),
        "waves": lambda: answers.plan("plan -n shop", PLAN),
        "script": lambda: answers.waves("plan -n shop -o script", PLAN),
    },
    "docs/recommend.md": {
        "web": lambda: answers.domains("recommend deploy/web -n shop --runs 5", SAMPLE),
        "new": lambda: answers.domains(f"recommend -f {FRONT} --runs 5", SAMPLE),
        "recipes": ten_recipes,
    },
    "docs/pending.md": {
        "constraints": lambda: answers.explain("explain deploy/coredns -n kube-system", f"{COREDNS}/input.yaml", 2),
        "nodes": lambda: answers.explain("explain pod/solver-1 -n hpc", f"{SOLVER}/input.yaml", 4),
        "label": lambda: answers.check("check -n search", f"{OPENSEARCH}/input.yaml"),
        "anti-affinity": lambda: answers.explain("explain deploy/web -n shop", f"{SYMPTOMS}/anti-affinity.yaml", 3),
    },
    "docs/troubleshooting.md": {
        "one zone": lambda: answers.check("check", f"{INFLATE}/input.yaml"),
        "defaults": lambda: answers.check("check --defaults", f"{PODINFO}/input.yaml"),
        "stuck": lambda: answers.check("check", f"{BLUEBIRD}/input.yaml"),
        "refused": lambda: answers.check("check", f"{SYMPTOMS}/refused.yaml"),
        "rollout": lambda: answers.check("check -n shop --severity info", f"{FRONTEND}/input.yaml"),
        "scale-down": lambda: answers.explain("explain deploy/api -n shop", SAMPLE, 2),
        "old label": lambda: answers.explain("explain deploy/cart -n shop", SAMPLE, 2),
        "upgrade": lambda: answers.check("check deploy/mail -n shop --severity info", SAMPLE),
        "chart": lambda: answers.failure(f"check -f {SYMPTOMS}/chart.tpl"),
        "forbidden": lambda: answers.forbidden("check -A"),
    },
}
OF_THE_RELEASE: Final = (
    "deploy/Containerfile",
    "deploy/helm/kubectl-spread-monitor/Chart.yaml",
    *(
        f"deploy/kustomize/{name}"
        for name in ("base/kustomization.yaml", "kube-rbac-proxy/rbac.yaml", "service-monitor/service-monitor.yaml")
    ),
    *(f"docs/ci/{name}" for name in ("github.yml", "gitlab-ci.yml", "pre-commit-config.yaml")),
    *(f"docs/{name}.md" for name in ("install", "monitor", "snippets")),
    "mixin/config.libsonnet",
    "mixin/tests.yaml",
)
"""Files that people write, and that name the release."""
_RELEASE: Final = re.compile(
    r"(/v|\?ref=v|rev: v|spread@v|spread==|-monitor:|--version |[vV]ersion: |newTag: )\d+\.\d+\.\d+\b"
)


def main() -> None:
    """Write every page; those of the release come first, as pages show some of them."""
    for path in (*OF_THE_RELEASE, *PAGES, *BLOCKS):
        (ROOT / path).write_text(page(path), encoding="utf-8")


if __name__ == "__main__":
    main()

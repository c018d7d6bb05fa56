"""The completions that a shell, or kubectl for a shell, receives for a word; live names are in ``tests/e2e``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli, values
from kubectl_spread.rules import RULES

BIN = Path(sys.executable).parent
NOWHERE = {"KUBECONFIG": "/no/where", "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def completions(
    *words: str, environment: Mapping[str, str] | None = None, program: str = "kubectl_complete-spread"
) -> tuple[list[str], int]:
    """Return the lines for the last word, and the directive."""
    completed = subprocess.run(
        [BIN / program, *words], check=True, capture_output=True, text=True, env={**NOWHERE, **(environment or {})}
    )
    assert completed.stderr == ""
    *lines, last = completed.stdout.splitlines()
    assert last.startswith(":")
    return lines, int(last[1:])


def candidates(*words: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the candidates without their descriptions."""
    return [line.partition("\t")[0] for line in completions(*words, environment=environment)[0]]


def test_commands_are_completed() -> None:
    lines, directive = completions("ch")
    assert directive == 4
    (line,) = lines
    assert line.startswith("check\tShow which pods")
    assert candidates("") == cli.list_commands(click.Context(cli))


@pytest.mark.parametrize("words", [(), ("no-such-command", ""), ("check", "--no-such-flag", "")])
def test_words_that_cannot_be_completed_are_no_error(words: tuple[str, ...]) -> None:
    assert completions(*words)[1] == 4


def test_flags_have_descriptions() -> None:
    lines, _ = completions("check", "--name")
    assert lines == ["--namespace\tRead the pods of this namespace."]
    assert "--namespace" not in candidates("check", "--namespace", "shop", "--na")
    assert {"--context", "--select", "-n"} <= set(candidates("check", "-"))


VALUES: Mapping[str, list[str]] = {
    "check --fail-on w": ["warning"],
    "check --fail-on=w": ["warning"],
    "check -o j": ["json", "junit"],
    "check --color a": ["auto", "always"],
    "check --to 1.3": [f"1.{minor}" for minor in range(38, 29, -1)],
    "check --expect-domains z": ["zone="],
    "check --by zone,r": ["zone,region"],
    "check --field-selector spec.n": ["spec.nodeName="],
    "check --select SPR101,SPR10": [f"SPR101,SPR10{number}" for number in range(2, 10)],
    "check --ignore spr10": [f"spr10{number}" for number in range(1, 10)],
    "check --select stale": ["stale-label"],
    "domains z": ["zone"],
    "domains zone z": [],
    "domains -o y": ["yaml"],
    "explain SPR30": [f"SPR30{number}" for number in range(1, 10)],
    "explain stale": ["stale-label"],
    "check statef": ["statefulset"],
    "check ReplicaS": [],
    "merge --o": ["--output"],
    "rules -o m": ["markdown"],
    "completion p": ["powershell"],
}


@pytest.mark.parametrize(("line", "expected"), VALUES.items(), ids=VALUES)
def test_values_of_options_are_completed(line: str, expected: list[str]) -> None:
    assert candidates(*line.split()) == expected


IN_FILES: Mapping[str, list[str]] = {
    "simulate -f cluster.json --lose zone=": ["zone=a", "zone=b", "zone=c"],
    "simulate -f cluster.json --lose=zone=b": ["zone=b"],
    "simulate -f cluster.json --delete a": ["a1", "a2"],
    "simulate -f cluster.json --drain zone=a,zone=": ["zone=a,zone=b", "zone=a,zone=c"],
    "simulate -f cluster.json --drain a1,": [
        "a1,hostname=",
        "a1,node=",
        "a1,region=",
        "a1,zone=",
        *(f"a1,{node}" for node in ("a2", "b1", "b2", "c1", "c2")),
    ],
    "simulate -f cluster.json --add node=b": ["node=b1", "node=b2"],
    "simulate -f cluster.json --lose topology.kubernetes.io/zone=c": ["topology.kubernetes.io/zone=c"],
    "simulate -f cluster.json --lose rack=": [],
    "simulate -f cluster.json --restart deploy/ca": ["deploy/cart"],
    "domains -f cluster.json zone ": ["a", "b", "c"],
    "domains -f cluster.json zone=": ["zone=a", "zone=b", "zone=c"],
    "domains -f cluster.json node c": ["c1", "c2"],
    "explain -f cluster.json deploy/w": ["deploy/web"],
    "explain -f cluster.json -n other deploy/": [],
    "check -f broken.json deploy/": [],
    "check -f missing.json deploy/": [],
    "check -f - deploy/": [],
}


@pytest.mark.parametrize(("line", "expected"), IN_FILES.items(), ids=IN_FILES)
def test_names_and_values_come_from_files(
    line: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy("examples/cluster.json", tmp_path)
    (tmp_path / "broken.json").write_text('{"kind": "List", "items": [')
    monkeypatch.chdir(tmp_path)
    assert candidates(*line.split(" ")) == expected


def test_rules_have_their_summaries() -> None:
    lines, _ = completions("explain", "SPR101")
    assert lines == [f"SPR101\t{next(rule.summary for rule in RULES if rule.code == 'SPR101')}"]


DIRECTIVES: Mapping[str, int] = {
    "check -f ": 0,
    "check --kubeconfig ": 0,
    "check --baseline x": 0,
    "check -o json=": 0,
    "check --manifests ": 0,
    "check --expect-domains z": 6,
    "check --context ": 4,
    "check --fail-on ": 4,
}


@pytest.mark.parametrize(("line", "expected"), DIRECTIVES.items(), ids=DIRECTIVES)
def test_the_directive_leaves_files_and_directories_to_the_shell(line: str, expected: int) -> None:
    """After a value that ends in ``=`` the shell adds no space."""
    lines, directive = completions(*line.split(" "))
    assert directive == expected
    assert bool(lines) == (line in {"check --expect-domains z", "check --fail-on "})


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    names = [f"{stem}-{number}" for stem in ("kind", "prod") for number in range(2)]
    content = {
        "clusters": [{"name": f"{name}-cluster", "cluster": {"server": "https://127.0.0.1:1"}} for name in names],
        "users": [{"name": f"{name}-user", "user": {"token": "secret"}} for name in names],
        "contexts": [{"name": name} for name in [*names, "bad\tname\n"]],
    }
    path = tmp_path / "config"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(("option", "suffix"), [("--context", ""), ("--cluster", "-cluster"), ("--user", "-user")])
def test_names_of_the_kubeconfig_are_completed(kubeconfig: Path, option: str, suffix: str) -> None:
    """The kubeconfig comes from the environment or a flag; a name with control characters is left out."""
    expected = [f"kind-{number}{suffix}" for number in range(2)]
    assert candidates("check", option, "ki", environment={"KUBECONFIG": str(kubeconfig)}) == expected
    assert candidates("check", "--kubeconfig", str(kubeconfig), option, "ki") == expected
    assert len(candidates("explain", "--kubeconfig", str(kubeconfig), option, "")) == 4


@pytest.mark.parametrize("broken", [True, False])
@pytest.mark.parametrize("line", ["check -n ", "check deploy/", "check deploy ", "check --context "])
def test_errors_are_silent(tmp_path: Path, broken: bool, line: str) -> None:
    """An invalid kubeconfig, a server that does not answer and a credential plugin that prints text cause no output."""
    path = tmp_path / "config"
    plugin = {"command": "/bin/sh", "args": ["-c", "echo disturbing >&2; exit 1"], "interactiveMode": "IfAvailable"}
    api = {"apiVersion": "client.authentication.k8s.io/v1"}
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": {**plugin, **api}}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text("{" if broken else json.dumps(content))
    lines, directive = completions(*line.split(" "), environment={"KUBECONFIG": str(path)})
    assert (lines, directive) == (["x"] if "--context" in line and not broken else [], 4)


def imported(*words: str) -> set[str]:
    """Return the modules that are imported to complete these words."""
    code = (
        "import sys; from kubectl_spread.cli import completion as c\n"
        "found = c.KubectlComplete(c.cli, {}, 'kubectl-spread', 'X').complete()\n"
        "sys.stdout.write(found.splitlines()[0] + '\\n' + ' '.join(sys.modules))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code, *words], check=True, capture_output=True, text=True, env=dict(NOWHERE)
    )
    first, modules = completed.stdout.split("\n")
    assert not first.startswith(":")
    return set(modules.split())


HEAVY = {
    "kubernetes",
    "kubectl_spread.rules",
    "kubectl_spread.audit.snapshot.snapshot",
    "ruamel",
    "wcwidth",
    "deepdiff",
}


@pytest.mark.parametrize("line", ["ch", "check --", "explain --", "merge --", "unmerge --", "rules --", "schema --"])
def test_commands_and_flags_import_neither_rules_nor_kubernetes(line: str) -> None:
    assert imported(*line.split()).isdisjoint(HEAVY)


@pytest.mark.parametrize("line", ["check --fail-on ", "check -o j", "check --to "])
def test_fixed_values_import_neither_rules_nor_kubernetes(line: str) -> None:
    assert imported(*line.split(" ")).isdisjoint(HEAVY)


def test_rules_do_not_wait_for_a_cluster() -> None:
    assert "kubernetes" not in imported("check", "--select", "SPR")
    assert "kubernetes" not in imported("explain", "SPR")


def script(shell: str) -> str:
    """Return what ``completion`` prints."""
    outcome = CliRunner().invoke(cli, ["completion", shell])
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    return outcome.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_scripts_call_this_program(shell: str) -> None:
    assert "_KUBECTL_SPREAD_COMPLETE" in script(shell)
    assert f"{shell}_complete" in script(shell)


def test_an_unknown_shell_is_refused() -> None:
    outcome = CliRunner().invoke(cli, ["completion", "tcsh"])
    assert outcome.exit_code == 2
    assert "'tcsh' is not one of" in outcome.stderr


def test_a_missing_shell_is_one_line_that_lists_the_shells() -> None:
    outcome = CliRunner().invoke(cli, ["completion"], prog_name="kubectl spread")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    shells = "bash, fish, kubectl, powershell, zsh"
    missing = f"Missing argument '{{{shells.replace(', ', '|')}}}'. Choose from: {shells}"
    assert outcome.stderr == f"error: {missing} (see kubectl spread completion --help)\n"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_scripts_have_no_syntax_errors(shell: str) -> None:
    if shutil.which(shell) is None and not os.environ.get("CI"):
        pytest.skip(f"no {shell} here")
    subprocess.run([shell, "-n"], input=script(shell), check=True, text=True)


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        ("bash", "plain,json\nplain,junit\n"),
        ("zsh", "plain\njson\n_\nplain\njunit\n_\n"),
        ("fish", "plain,json\nplain,junit\n"),
        ("powershell", "plain\njson\n_\nplain\njunit\n_\n"),
    ],
)
def test_scripts_receive_candidates_by_the_variables_of_click(shell: str, expected: str) -> None:
    """PowerShell itself was never run."""
    words = "kubectl-spread check -o j"
    variables = {"_KUBECTL_SPREAD_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": "3"}
    if shell == "fish":
        variables["COMP_CWORD"] = "j"
    completed = subprocess.run(
        [BIN / "kubectl-spread"], check=True, capture_output=True, text=True, env={**NOWHERE, **variables}
    )
    assert (completed.stdout, completed.stderr) == (expected, "")


def test_the_script_for_kubectl_prints_what_the_installed_program_prints(tmp_path: Path) -> None:
    """Users of krew save the script on PATH."""
    path = tmp_path / "kubectl_complete-spread"
    path.write_text(script("kubectl"))
    path.chmod(0o755)
    completed = subprocess.run(
        [path, "check", "-o", "j"], check=True, capture_output=True, text=True, env=dict(NOWHERE)
    )
    assert completed.stdout.splitlines() == ["json", "junit", ":4"]


def test_every_option_with_a_value_has_candidates_or_none_on_purpose() -> None:
    """Only the user knows the values of the options in FREE. A new option needs candidates or an entry there."""
    free = set()
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        for option in command.params:
            completes = option._custom_shell_complete or isinstance(option.type, click.Choice)
            if isinstance(option, click.Option) and not (option.is_flag or completes):
                free.add(option.opts[-1])
    assert free == FREE


FREE = {
    "--accept-hosts",
    "--as",
    "--as-group",
    "--as-uid",
    "--as-user-extra",
    "--chunk-size",
    "--cluster-name",
    "--feature-gates",
    "--interval",
    "--keep",
    "--listen",
    "--max-age",
    "--max-per-workload",
    "--merge-since",
    "--password",
    "--proxy-url",
    "--replicas",
    "--request-timeout",
    "--runs",
    "--seconds",
    "--seed",
    "--selector",
    "--server",
    "--telemetry",
    "--tls-server-name",
    "--token",
    "--username",
}


def test_completers_of_paths_leave_them_to_the_shell() -> None:
    parameter = click.Option(["--x"])
    context = click.Context(cli)
    assert [candidate.type for candidate in values.directories(context, parameter, "a")] == ["dir"]
    assert [candidate.type for candidate in values.files(context, parameter, "a")] == ["file"]


@pytest.mark.parametrize("shell", ["bash", "fish", "kubectl", "zsh"])
def test_no_control_character_reaches_the_terminal(tmp_path: Path, shell: str) -> None:
    """A shell prints candidates unchanged, and their names come from a kubeconfig or a cluster."""
    names = ["fine", "f\x1b[31mred", "f\x1b]52;c;cm0gLXJm\x07", "f\u202egnp", "f\x9b2J", "f\rx", "f\nx"]
    path = tmp_path / "config"
    path.write_text(json.dumps({"contexts": [{"name": name} for name in names]}))
    words = "check --context f" if shell == "kubectl" else "kubectl-spread check --context f"
    environment = {
        **os.environ,
        "KUBECONFIG": str(path),
        "_KUBECTL_SPREAD_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": "f" if shell == "fish" else "3",
    }
    arguments = words.split() if shell == "kubectl" else ()
    command = [str(Path(sys.executable).with_name("kubectl-spread")), *arguments]
    completed = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert b"fine" in completed.stdout
    assert all(char.isprintable() or char == "\n" for char in completed.stdout.decode())
    assert completed.stdout.count(b"\n") <= 4

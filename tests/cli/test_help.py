"""Help has kubectl's order, and every sentence of it tells what the user gets."""

from __future__ import annotations

import json
import re
import shlex

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from kubectl_spread import __version__
from kubectl_spread.cli import cli, commandline
from kubectl_spread.cli.commandline import Command

CONTEXT = click.Context(cli, info_name="kubectl spread")
COMMANDS = {name: cli.get_command(CONTEXT, name) for name in cli.list_commands(CONTEXT)}

VERBS = {
    *("Accept", "Add", "Apply", "Authenticate", "Check", "Connect", "Correct", "Count", "Delete", "Evaluate"),
    *("Evict", "Exit", "Expect", "Explain", "Give", "Hide", "Impersonate", "Keep", "Leave", "Let"),
    *("List", "Print", "Read", "Refuse", "Remove", "Report", "Request", "Restart", "Run", "Serve"),
    *("Set", "Show", "Skip", "Stop", "Survive", "Trust", "Try", "Use", "Write"),
}
"""Listed here, because only a person can tell a verb from a noun."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="kubectl spread")


def headings(text: str) -> list[str]:
    return re.findall(r"^(\S.*):$", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_before_its_options_and_its_usage_last(name: str) -> None:
    outcome = run(name, "--help")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    parts = headings(outcome.stdout)
    assert (parts[0], parts[-1]) == ("Examples", "Usage")
    assert f"\nUsage:\n  kubectl spread {name} [options]" in outcome.stdout


def test_the_help_of_check_has_its_options_in_groups_and_the_connection_last() -> None:
    assert headings(run("check", "--help").stdout) == [
        "Examples",
        "What to read",
        "How to evaluate",
        "Output",
        "Other",
        "Advanced",
        "Connection",
        "Exit status",
        "Usage",
    ]


@pytest.mark.parametrize(
    ("name", "rare"),
    [
        (
            "check",
            [
                "field-selector",
                "cluster-name",
                "feature-gates",
                "merge-since",
                "recreate",
                "scheduler-config",
                "manifests",
            ],
        ),
        ("explain", ["cluster-name", "feature-gates", "merge-since", "recreate", "scheduler-config"]),
    ],
)
def test_rare_options_are_in_a_group_after_all_others_but_the_connection(name: str, rare: list[str]) -> None:
    _, _, advanced = run(name, "--help").stdout.partition("\nAdvanced:\n")
    group, _, _ = advanced.partition("\nConnection:\n")
    assert re.findall(r"^  --(\S+)", group, re.MULTILINE) == rare


def test_the_help_of_the_program_has_its_commands_in_groups() -> None:
    outcome = run("--help")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert headings(outcome.stdout) == [
        "Examples",
        "Find what to fix",
        "Watch over time",
        "Edit manifests",
        "Prevent",
        "Look up",
        "Other",
        "Usage",
    ]
    assert all(re.search(rf"^  {name} ", outcome.stdout, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_is_the_first_sentence_of_its_help(name: str) -> None:
    summaries = {item.value: item.help for item in cli.shell_complete(CONTEXT, name)}
    command = COMMANDS[name]
    assert command is not None
    assert command.help is not None
    assert command.help.partition("\n\n")[0] == summaries[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_sentence_of_help_begins_with_a_verb(name: str) -> None:
    command = COMMANDS[name]
    assert command is not None
    for text in (command.help, *(option.help for option in command.params if isinstance(option, click.Option))):
        assert text is not None
        assert text.split()[0] in VERBS, text
        assert text.rstrip().endswith((".", "]"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_a_command_line_that_the_program_accepts(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Command)
    for line in command.examples:
        words = shlex.split(re.split(r"[|>]", line.removeprefix("source <("))[0].rstrip(") "))
        assert " ".join(words[:2]) == "kubectl spread" or words[0] == "kubectl-spread"
        arguments = words[1:] if words[0] == "kubectl-spread" else words[2:]
        example = cli.get_command(CONTEXT, arguments[0])
        assert example is not None
        example.make_context(arguments[0], arguments[1:], parent=CONTEXT)


CONNECTED = ["check", "explain", "domains", "simulate", "plan", "recommend", "monitor"]


def test_each_command_that_reads_a_cluster_connects_to_it() -> None:
    assert [
        name
        for name, command in COMMANDS.items()
        if command is not None
        and any(commandline.group_of(option) == commandline.CONNECTION for option in command.params)
    ] == CONNECTED
    assert run("options").stdout.startswith("The commands that read a cluster accept these options, as kubectl does.\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_names_no_option_of_other_commands_alone(name: str) -> None:
    command = COMMANDS[name]
    assert command is not None
    own = {option for parameter in command.params for option in parameter.opts}
    described = " ".join(parameter.help or "" for parameter in command.params if isinstance(parameter, click.Option))
    assert "-f" in own or " -f" not in described


@pytest.mark.parametrize("name", CONNECTED)
def test_options_lists_every_connection_option_and_help_names_that_command(name: str) -> None:
    command = COMMANDS[name]
    assert command is not None
    connection = [option for option in command.params if commandline.group_of(option) == commandline.CONNECTION]
    listed = run("options").stdout
    shown = run(name, "--help").stdout
    assert all(option.opts[-1] in listed for option in connection)
    assert [option.opts[-1] for option in connection if f"  {option.opts[-1]} " in shown] == [
        "--kubeconfig",
        "--context",
    ]
    assert 'Use "kubectl spread options" for all options that connect to a cluster.' in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_prints_what_its_help_option_prints(name: str) -> None:
    assert run("help", name).stdout == run(name, "--help").stdout
    assert run("help").stdout == run("--help").stdout


def test_version_prints_the_supported_minors_without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/no/where")
    outcome = run("version")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    known = "1.27 to 1.38 (1.38 as v1.38.0-beta.0)"
    assert outcome.stdout == f"Client Version: v{__version__}\nKubernetes Versions: {known}\n"


def test_version_and_the_error_about_an_unknown_version_name_the_same_versions() -> None:
    outcome = run("check", "-f", "-", "--server-version", "1.99")
    assert outcome.exit_code == 2
    (known,) = re.findall(r"\((1\.\d+ to 1\.\d+) are known\)", outcome.stderr)
    assert f"Kubernetes Versions: {known} " in run("version").stdout


def test_version_has_the_fields_of_kubectl() -> None:
    document = json.loads(run("version", "-o", "json").stdout)
    assert document == yaml.safe_load(run("version", "-o", "yaml").stdout)
    assert document["clientVersion"].keys() == {"major", "minor", "gitVersion", "platform"}
    assert document["clientVersion"]["gitVersion"] == f"v{__version__}"
    assert document["kubernetesVersions"] == [f"1.{minor}" for minor in range(27, 39)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("chekc",), "No such command 'chekc'. Did you mean 'check'? (see kubectl spread --help)"),
        (("help", "chekc"), "No such command 'chekc'. Did you mean 'check'? (see kubectl spread --help)"),
        (("xyz",), "No such command 'xyz' (see kubectl spread --help)"),
        (
            ("check", "--selct", "SPR301"),
            "'--select', '--selector', '--user'?) (see kubectl spread check --help)",
        ),
        (("check", "-o", "jsn"), '; did you mean "json"? (see kubectl spread check --help)'),
        (
            ("merge", "-o", "jsn"),
            "'jsn' is not one of 'json', 'yaml' (see kubectl spread merge --help)",
        ),
        (("schema", "SpredReport"), '; did you mean "SpreadReport"?'),
        (
            ("check", "deplyo/api", "-f", "examples/cluster.json"),
            'own the pods that were read); did you mean "deploy/api"?',
        ),
        (
            ("check", "--select", "stale-lable"),
            'no rule has the code or name "stale-lable"; did you mean "stale-label"?',
        ),
        (("check", "--ignore", "SPR999"), 'no rule has the code or name "SPR999" (kubectl spread rules lists them)'),
    ],
    ids=" ".join,
)
def test_a_misspelt_word_is_one_line_that_suggests_the_nearest(arguments: tuple[str, ...], message: str) -> None:
    outcome = run(*arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    (line,) = outcome.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.endswith(message)

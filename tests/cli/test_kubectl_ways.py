"""What users of kubectl expect of every command: Go's booleans, ``-v=6``, all rows in a pipe, suggestions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli, ending
from tests.builders import constraint, pod_json
from tests.cli.test_check import healthy
from tests.commands import SPREAD
from tests.terminals import printed

TRUE = ("1", "t", "T", "TRUE", "true", "True")
FALSE = ("0", "f", "F", "FALSE", "false", "False")
CONTEXT = click.Context(cli, info_name="kubectl spread")
COMMANDS = {name: command for name in cli.list_commands(CONTEXT) if (command := cli.get_command(CONTEXT, name))}
FLAGS = [
    (name, option)
    for name, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, click.Option) and option.is_flag
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), prog_name="kubectl spread")


def parsed(name: str, *arguments: str) -> dict[str, Any]:
    """Return the values of a command's options."""
    return COMMANDS[name].make_context(name, list(arguments), parent=CONTEXT).params


@pytest.mark.parametrize(("name", "option"), FLAGS, ids=lambda value: value if isinstance(value, str) else value.name)
def test_every_flag_takes_the_booleans_of_go(name: str, option: click.Option) -> None:
    required = ["bash" for parameter in COMMANDS[name].params if parameter.required]
    if option.expose_value:
        for opt in option.opts:
            assert all(parsed(name, f"{opt}={text}", *required)[option.name or ""] is True for text in TRUE)
            assert all(parsed(name, f"{opt}={text}", *required)[option.name or ""] is False for text in FALSE)
    for opt in option.opts:
        outcome = run(name, f"{opt}=maybe", *required)
        assert (outcome.exit_code, outcome.stdout) == (2, "")
        problem = f'error: {opt}: "maybe" is not a boolean (write {opt}=true or {opt}=false)'
        assert outcome.stderr == f"{problem} (see kubectl spread {name} --help)\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-AR"], {"all_namespaces": True, "recursive": True}),
        (["-AR=false"], {"all_namespaces": True, "recursive": False}),
        (["-A=false"], {"all_namespaces": False}),
        (["-A", "--all-namespaces=false"], {"all_namespaces": False}),
        (["--all-namespaces=false", "-A"], {"all_namespaces": True}),
        (["-An", "shop"], {"all_namespaces": True, "namespace": "shop"}),
        (["-n=shop", "-l=app=web"], {"namespace": "shop", "selector": "app=web"}),
        (["-nshop"], {"namespace": "shop"}),
        (["-n", "-A=false"], {"namespace": "-A=false", "all_namespaces": False}),
        (["--selector", "--recursive=x"], {"selector": "--recursive=x", "recursive": False}),
        (["web", "--", "-A=true"], {"arguments": ("web", "-A=true"), "all_namespaces": False}),
        (["-f", "-", "-R=t"], {"filename": ("-",), "recursive": True}),
        (["web", "-R", "true"], {"arguments": ("web", "true"), "recursive": True}),
    ],
    ids=" ".join,
)
def test_flags_are_read_as_pflag_reads_them(arguments: list[str], expected: dict[str, Any]) -> None:
    parameters = parsed("check", *arguments)
    assert {name: parameters[name] for name in expected} == expected


@pytest.mark.parametrize("words", [["-v=6"], ["--v=6"], ["-v6"], ["-v", "6"], ["--v", "6"], ["-v"], ["--verbose=true"]])
def test_a_level_of_kubectl_prints_the_traceback_and_is_no_name(words: list[str]) -> None:
    assert parsed("check", *words, "web")["arguments"] == ("web",)
    assert ending._Verbosity.traceback


@pytest.mark.parametrize("words", [["-v=0"], ["--v=0"], ["-v0"], ["-v", "0"], ["--verbose=false"], ["--v", "0"], []])
def test_level_0_prints_no_traceback(words: list[str]) -> None:
    assert parsed("check", *words, "web")["arguments"] == ("web",)
    assert not ending._Verbosity.traceback


def test_events_keep_their_order_next_to_booleans() -> None:
    arguments = ("--drain=zone=a", "-A=true", "--lose", "zone=b", "-R=false", "--drain", "n1")
    context = COMMANDS["simulate"].make_context("simulate", list(arguments), parent=CONTEXT)
    assert context.meta["kubectl_spread.events"] == ["drain", "lose", "drain"]
    assert context.params["all_namespaces"]


def test_the_plugin_alone_prints_its_help() -> None:
    completed = subprocess.run([SPREAD], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout == subprocess.run([SPREAD, "--help"], capture_output=True, text=True, check=True).stdout
    assert "Examples:" in completed.stdout


def test_version_and_its_option_agree() -> None:
    assert run("--version").stdout == run("version").stdout


def test_a_pipe_gets_every_row_and_a_terminal_those_that_fit(tmp_path: Path) -> None:
    path = tmp_path / "pods.json"
    path.write_text("\n".join(json.dumps(healthy(f"web-{index}")) for index in range(60)))
    command = ("check", "-f", str(path), "--server-version", "1.37")
    piped = subprocess.run([SPREAD, *command], capture_output=True, text=True, check=False).stdout
    assert piped.count("\npo/web-") == 60
    assert "Hidden" not in piped
    run(*command, "-o", f"table={tmp_path / 'table.txt'}")
    assert (tmp_path / "table.txt").read_text() == piped
    on_screen = printed(120, *command, lines=24)
    assert 0 < on_screen.count("\npo/web-") < 24
    assert "rows without findings (--show all)" in on_screen


@pytest.mark.parametrize(
    ("word", "question"),
    [
        ("SPR31", "did you mean one of SPR310, SPR311, SPR312, SPR313, SPR314, SPR315, SPR316, SPR317?"),
        ("spr31", "did you mean one of SPR310, SPR311, SPR312, SPR313, SPR314, SPR315, SPR316, SPR317?"),
        ("SPR3011", 'did you mean "SPR301"?'),
        ("SRP301", 'did you mean "SPR301"?'),
        ("hrad-skew", 'did you mean "hard-skew"?'),
    ],
)
def test_a_part_of_a_code_suggests_codes_and_contacts_no_cluster(
    word: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/no/where")
    outcome = run("explain", word)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert (
        outcome.stderr == f'error: no rule has the code or name "{word}"; {question} (a pod of that name: pod/{word})\n'
    )


@pytest.mark.parametrize(
    ("word", "question"),
    [("wbe", "; did you mean po/web?"), ("ewb", "; did you mean po/web?"), ("bd", "; did you mean po/db?"), ("x", "")],
)
def test_a_transposed_name_suggests_the_name(word: str, question: str, tmp_path: Path) -> None:
    path = tmp_path / "pods.json"
    path.write_text("\n".join(json.dumps(pod_json(name, constraints=[constraint()])) for name in ("web", "db")))
    outcome = run("explain", word, "-f", str(path))
    assert outcome.stderr.splitlines()[-1] == f'error: pod or workload "{word}" not found in the files{question}'


@pytest.mark.parametrize("key", ["zone", "topology.kubernetes.io/zone", "node"])
def test_domains_takes_a_key_and_value_in_one_word(key: str) -> None:
    value = "a1" if key == "node" else "a"
    files = ("-f", "examples/cluster.json")
    apart, joined = run("domains", key, value, *files), run("domains", f"{key}={value}", *files)
    assert (joined.exit_code, joined.stdout) == (0, apart.stdout)
    missing = run("domains", f"{key}=aa", *files)
    assert missing.exit_code == 2
    assert missing.stderr == run("domains", key, "aa", *files).stderr

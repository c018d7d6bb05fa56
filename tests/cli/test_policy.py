"""``kubectl spread policy`` on the command line."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["policy", *arguments], prog_name="kubectl spread")


def carried(text: str) -> set[str]:
    """Return the codes of the rules in policies."""
    return {
        validation["message"].partition(" ")[0]
        for document in yaml.safe_load_all(text)
        for validation in document["spec"].get("validations", ())
    }


def bindings(text: str) -> list[tuple[list[str], list[str]]]:
    """Return the actions and the excluded namespaces of each binding."""
    specs = [each["spec"] for each in yaml.safe_load_all(text) if each["kind"].endswith("Binding")]
    return [
        (spec["validationActions"], spec["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"])
        for spec in specs
    ]


def test_the_policies_have_the_warnings_and_errors() -> None:
    outcome = run()
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert carried(outcome.stdout) == {
        *("SPR101", "SPR102", "SPR107", "SPR110", "SPR202", "SPR203", "SPR204", "SPR205", "SPR206", "SPR209", "SPR213"),
    }
    assert bindings(outcome.stdout) == [(["Warn"], ["kube-system"])] * 2


def test_the_action_and_the_namespaces_are_filled_in() -> None:
    outcome = run("--action", "deny", "--exclude-namespace", "kube-system,mesh", "--exclude-namespace", "42")
    assert bindings(outcome.stdout) == [(["Deny"], ["kube-system", "mesh", "42"])] * 2


def test_the_minor_is_filled_in() -> None:
    newest = run().stdout
    older = run("--for", "1.33").stdout
    assert older.replace("Kubernetes 1.33", "Kubernetes 1.37").replace('"33"', '"37"') == newest


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--for", "1.29"), "--for: Kubernetes 1.29 has no ValidatingAdmissionPolicy (1.30 and newer have it)"),
        (("--for", "1.26"), "--for: Kubernetes 1.26 is not known (1.27 to 1.38 are known)"),
        (("--for", "new"), '--for: "new" is not a Kubernetes version (write 1.37)'),
        (("--exclude-namespace", "a_b"), '--exclude-namespace: "a_b" is not the name of a namespace'),
        (("--exclude-namespace", ""), "--exclude-namespace: the value is empty"),
    ],
)
def test_wrong_options_are_one_line_of_error(arguments: tuple[str, ...], error: str) -> None:
    outcome = run(*arguments)
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (2, "", f"error: {error}\n")


def test_an_action_that_does_not_exist_is_an_error_that_lists_those_that_do() -> None:
    outcome = run("--action", "wran")
    assert outcome.exit_code == 2
    assert "'wran' is not one of 'deny', 'warn', 'audit'" in outcome.stderr


def test_a_minor_that_is_known_by_a_pre_release_has_a_note() -> None:
    outcome = run("--for", "1.38")
    assert outcome.exit_code == 0
    assert outcome.stderr.startswith("Kubernetes 1.38 is evaluated as its pre-release ")

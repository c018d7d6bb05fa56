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


def test_warnings_and_errors_are_the_default() -> None:
    outcome = run()
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert carried(outcome.stdout) == {
        *("SPR101", "SPR102", "SPR107", "SPR110", "SPR202", "SPR203", "SPR204", "SPR205", "SPR206", "SPR209", "SPR213"),
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--select", "SPR208,absent-key"), {"SPR107", "SPR208"}),
        (("--select", "SPR1", "--ignore", "SPR10"), {"SPR110"}),
        (("--select", "SPR1", "--severity", "warning"), {"SPR101", "SPR102", "SPR107", "SPR110"}),
        (("--severity", "error"), {"SPR202"}),
    ],
)
def test_rules_are_chosen_as_in_check(arguments: tuple[str, ...], expected: set[str]) -> None:
    assert carried(run(*arguments).stdout) == expected


def test_notes_are_carried_on_request() -> None:
    notes = carried(run("--severity", "info").stdout) - carried(run().stdout)
    assert notes == {"SPR105", "SPR109", "SPR208", "SPR210", "SPR211", "SPR212", "SPR504"}


def test_the_policies_begin_with_comments_that_say_what_they_do() -> None:
    lines = run("--action", "deny", "--for", "1.34", "--select", "SPR107").stdout.splitlines()
    assert lines[0].startswith("# Admission policies for Kubernetes 1.34, printed by kubectl-spread ")
    assert lines[1:7] == [
        "# They evaluate new and changed objects by the rule SPR107. kubectl spread explain CODE explains a rule.",
        "# kube-apiserver refuses a request that violates a rule. A request that cannot be evaluated is accepted",
        "# (failurePolicy: Ignore).",
        "# Install: kubectl apply -f FILE. Remove: kubectl delete -f FILE.",
        "# https://github.com/kubectl-spread/kubectl-spread/blob/main/docs/policy.md",
        "---",
    ]


def test_the_policies_are_the_same_each_time() -> None:
    assert run("--severity", "info", "--mutate").stdout == run("--severity", "info", "--mutate").stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--for", "1.29"), "--for: Kubernetes 1.29 has no ValidatingAdmissionPolicy (1.30 and newer have it)"),
        (
            ("--for", "1.33", "--mutate"),
            "--for: Kubernetes 1.33 has no MutatingAdmissionPolicy (1.34 and newer have it)",
        ),
        (("--for", "1.26"), "--for: Kubernetes 1.26 is not known (1.27 to 1.38 are known)"),
        (("--for", "new"), '--for: "new" is not a Kubernetes version (write 1.37)'),
        (("--select", "SPR301"), "--select: no policy can have SPR301, because it sees one object (docs/policy.md)"),
        (
            ("--select", "SPR205", "--for", "1.38"),
            "--for: none of the selected rules finds anything in Kubernetes 1.38",
        ),
        (("--select", "absent-kye"), 'no rule has the code or name "absent-kye"; did you mean "absent-key"?'),
        (("--select", "SPR107", "--ignore", "SPR1"), "no rule is left: change --select, --ignore or --severity"),
        (
            ("--namespace-selector", "a=b=c"),
            '--namespace-selector: unable to parse label selector "a=b=c" at "a=b=c"',
        ),
        (("--exclude-namespace", "a_b"), '--exclude-namespace: "a_b" is not the name of a namespace'),
        (("--exclude-namespace", ""), "--exclude-namespace: the value is empty"),
        (("--exempt-user", ""), "--exempt-user: the value is empty"),
    ],
)
def test_wrong_options_are_one_line_of_error(arguments: tuple[str, ...], error: str) -> None:
    outcome = run(*arguments)
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (2, "", f"error: {error}\n")


def test_an_action_that_does_not_exist_suggests_the_nearest() -> None:
    outcome = run("--action", "wran")
    assert outcome.exit_code == 2
    assert 'did you mean "warn"?' in outcome.stderr


def test_a_minor_that_is_known_by_a_pre_release_has_a_note() -> None:
    outcome = run("--for", "1.38")
    assert outcome.exit_code == 0
    assert outcome.stderr.startswith("Kubernetes 1.38 is evaluated as its pre-release ")
    assert "SPR205" not in outcome.stdout

"""YAML before and after: only the selectors change, and they keep the style of the text around them."""

from __future__ import annotations

import textwrap

import pytest
import yaml

from kubectl_spread.sources.decode import yaml_values
from tests.merge.running import HEAD, constrained, out, pod, run

BOTH_WAYS = [
    pytest.param(
        """\
        matchLabelKeys: [rev]
        labelSelector:
          matchLabels:
            app: web
        """,
        """\
        matchLabelKeys: [rev]
        labelSelector:
          matchLabels:
            app: web
          matchExpressions:
          - key: rev
            operator: In
            values:
            - r1
        """,
        id="a selector with only matchLabels gets a block like the block around it",
    ),
    pytest.param(
        """\
        labelSelector:
          matchExpressions:
          - key: x
            operator: In
            values:
            - 'y'  # quoted
            # the last word on x
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchExpressions:
          - key: x
            operator: In
            values:
            - 'y'  # quoted
            # the last word on x
          - key: rev
            operator: In
            values:
            - r1
        matchLabelKeys: [rev]
        """,
        id="a comment on the last item stays above the new one",
    ),
    pytest.param(
        """\
        labelSelector: {matchExpressions: [{key: x, operator: Exists}], matchLabels: {app: web}}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: {matchExpressions: [{key: x, operator: Exists}, {key: rev, operator: In, values: [r1]}], \
matchLabels: {app: web}}
        matchLabelKeys: [rev]
        """,
        id="brackets on one line",
    ),
    pytest.param(
        """\
        matchLabelKeys: [rev]
        labelSelector:
          "matchLabels":
            'app': "web"
        """,
        """\
        matchLabelKeys: [rev]
        labelSelector:
          "matchLabels":
            'app': "web"
          matchExpressions:
          - key: rev
            operator: In
            values:
            - r1
        """,
        id="quotes stay",
    ),
    pytest.param(
        """\
        matchLabelKeys: [nope]
        labelSelector:
          matchExpressions:
          - {key: x, operator: Exists}
        """,
        """\
        matchLabelKeys: [nope]
        labelSelector:
          matchExpressions:
          - {key: x, operator: Exists}
        """,
        id="a key that is not a label of the pod changes nothing",
    ),
]


@pytest.mark.parametrize(("before", "after"), BOTH_WAYS)
def test_merge(before: str, after: str) -> None:
    assert out("merge", constrained(before)) == constrained(after)


@pytest.mark.parametrize(("before", "after"), BOTH_WAYS)
def test_unmerge(before: str, after: str) -> None:
    assert out("unmerge", constrained(after)) == constrained(before)


@pytest.mark.parametrize(("before", "after"), BOTH_WAYS)
@pytest.mark.parametrize("command", ["merge", "unmerge"])
def test_line_breaks_are_kept_and_the_last_one_may_be_missing(command: str, before: str, after: str) -> None:
    value, expected = (before, after) if command == "merge" else (after, before)
    assert out(command, constrained(value).replace("\n", "\r\n")) == constrained(expected).replace("\n", "\r\n")
    assert out(command, constrained(value).rstrip("\n")) == constrained(expected).rstrip("\n")


MERGE_ONLY = [
    pytest.param(
        """\
        labelSelector:
          matchExpressions:
          - key: x
            operator: NotIn
            values: [b]
          # about the labels
          matchLabels:
            app: web
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchExpressions:
          - key: x
            operator: NotIn
            values: [b]
          - key: rev
            operator: In
            values:
            - r1
          # about the labels
          matchLabels:
            app: web
        matchLabelKeys: [rev]
        """,
        id="a comment above the next key stays there",
    ),
    pytest.param(
        """\
        labelSelector:
          matchLabels: {app: web}  # ours
          # still about the selector
        # about the keys
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchLabels: {app: web}  # ours
          # still about the selector
        # about the keys
          matchExpressions:
          - key: rev
            operator: In
            values:
            - r1
        matchLabelKeys: [rev]
        """,
        id="comments behind a selector are above what is added to it",
    ),
    pytest.param(
        """\
        labelSelector:
          matchExpressions:  # none yet
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchExpressions:  # none yet
          - key: rev
            operator: In
            values:
            - r1
        matchLabelKeys: [rev]
        """,
        id="a key without a value is filled",
    ),
    pytest.param(
        """\
        labelSelector: {matchExpressions: null, matchLabels: {"app": "web"}}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: {matchExpressions: [{key: rev, operator: In, values: [r1]}], matchLabels: {"app": "web"}}
        matchLabelKeys: [rev]
        """,
        id="null is replaced in brackets",
    ),
    pytest.param(
        """\
        labelSelector: {}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchExpressions:
          - key: rev
            operator: In
            values:
            - r1
        matchLabelKeys: [rev]
        """,
        id="an empty selector becomes a block",
    ),
    pytest.param(
        """\
        labelSelector: {
          "matchLabels": {"app":"web"}}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: {"matchLabels": {"app": "web"}, matchExpressions: [{key: rev, operator: In, values: [r1]}]}
        matchLabelKeys: [rev]
        """,
        id="brackets over several lines are joined",
    ),
    pytest.param(
        """\
        labelSelector:
          <<: {matchLabels: {app: web}}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          <<: {matchLabels: {app: web}}
          matchExpressions:
          - key: rev
            operator: In
            values:
            - r1
        matchLabelKeys: [rev]
        """,
        id="a merge key stays",
    ),
]


@pytest.mark.parametrize(("before", "after"), MERGE_ONLY)
def test_merge_changes_white_space(before: str, after: str) -> None:
    assert out("merge", constrained(before)) == constrained(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            """\
            labelSelector:
              matchExpressions:
              - key: rev
                operator: In
                values:
                - r1
            matchLabelKeys: [rev]
            """,
            """\
            labelSelector: {}
            matchLabelKeys: [rev]
            """,
            id="a selector without other requirements becomes empty",
        ),
        pytest.param(
            """\
            labelSelector:
              matchExpressions: [
                {key: rev, operator: In, values: [r1]},
                {key: tenant, operator: In, values: [a]}]
              matchLabels: {app: web}  # ours
            matchLabelKeys: [rev, tenant]
            """,
            """\
            labelSelector:
              matchLabels: {app: web}  # ours
            matchLabelKeys: [rev, tenant]
            """,
            id="a key in front of others goes",
        ),
    ],
)
def test_unmerge_removes_keys(before: str, after: str) -> None:
    assert out("unmerge", constrained(before)) == constrained(after)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("r1", "r1"),
        ("5d4f8c7b9", '"5d4f8c7b9"'),
        ("a.b-c_d", "a.b-c_d"),
        ("1.2.3", '"1.2.3"'),
        ("1", '"1"'),
        ("1.0", '"1.0"'),
        ("68e9876", '"68e9876"'),
        ("0x1f", '"0x1f"'),
        ("1_000", '"1_000"'),
        ("2024-01-01", '"2024-01-01"'),
        ("true", '"true"'),
        ("on", '"on"'),
        ("No", '"No"'),
        ("y", '"y"'),
        ("null", '"null"'),
        ("", '""'),
    ],
)
def test_values_are_quoted_where_they_must_be(value: str, written: str) -> None:
    before = constrained("labelSelector: {}\nmatchLabelKeys: [rev]\n").replace("rev: r1", f'rev: "{value}"')
    assert f"        values:\n        - {written}\n" in out("merge", before)


SHARED = """\
x-selectors:
- &web
  matchLabels:
    app: web  # ours
"""
TWO = """\
topologySpreadConstraints:
- {{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [rev], labelSelector: {first}}}
- {{maxSkew: 1, topologyKey: host, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [{key}], labelSelector: {second}}}
"""
PLAIN = "{matchLabels: {app: web}}"
MERGED = "{matchLabels: {app: web}, matchExpressions: [{key: rev, operator: In, values: [r1]}]}"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        pytest.param("rev", ("&s " + PLAIN, "*s"), ("&s " + MERGED, "*s"), id="a copy that changes likewise"),
        pytest.param(
            "",
            ("{<<: *web}", "*web"),
            (MERGED.replace("{matchLabels: {app: web}", "{<<: *web", 1), "*web"),
            id="a merge key",
        ),
        pytest.param(
            "",
            ("{matchLabels: &l {app: web}}", "{matchLabels: *l}"),
            (MERGED.replace("{app", "&l {app"), "{matchLabels: *l}"),
            id="an alias inside",
        ),
    ],
)
def test_aliases_stay_where_their_values_stay_equal(
    key: str, value: tuple[str, str], expected: tuple[str, str]
) -> None:
    before, after = (
        SHARED + pod(TWO.format(key=key, first=first, second=second)) for first, second in (value, expected)
    )
    assert out("merge", before) == (after if "*web" in after else after.replace("- &web\n  ", "- "))


ANOTHER = "cannot be edited: it would get another value (write an alias out, or quote a date)"
FIRST, SECOND = (f"spec.topologySpreadConstraints[{index}].labelSelector: {ANOTHER}" for index in (0, 1))
BASE = "x: &base {whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [rev], labelSelector: {matchLabels: {app: web}}}\n"
MADE = "{key: rev, operator: In, values: [r1]}"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        pytest.param(
            pod(TWO.format(key="", first="&s " + PLAIN, second="*s")),
            f"9: {SECOND}",
            id="an alias that must not change",
        ),
        pytest.param(
            pod(TWO.format(key="nope", first="&s " + PLAIN, second="*s")),
            f"9: {SECOND}",
            id="an alias without the label",
        ),
        pytest.param(
            SHARED + pod(TWO.format(key="rev", first="*web", second="*web")),
            f"2: [x-selectors][0]: {ANOTHER}",
            id="an alias of what is no part of the pod",
        ),
        pytest.param(
            BASE + pod("topologySpreadConstraints:\n- <<: *base\n  maxSkew: 1\n  topologyKey: zone\n"),
            f"1: x.labelSelector: {ANOTHER}",
            id="a constraint that is merged from elsewhere",
        ),
        *(
            pytest.param(
                f"x: {date}\n" + constrained("labelSelector: {}\nmatchLabelKeys: [rev]\n"), f"1: {refusal}", id=date
            )
            for date, refusal in (
                ("2024-01-01T00:00:00.120Z", f"x: {ANOTHER}"),
                ("2024-02-30", "cannot be edited: ruamel.yaml says: day is out of range for month"),
            )
        ),
        pytest.param(
            constrained("labelSelector: {\n  matchLabels: {app: web},  # ours\n}\nmatchLabelKeys: [rev]\n"),
            "1: cannot be edited: 1 comment would be lost",
            id="a comment in brackets over several lines",
        ),
        pytest.param(
            constrained("labelSelector:\n  ? matchLabels  # these\n  : app: web\nmatchLabelKeys: [rev]\n"),
            f"1: {ANOTHER}",
            id="a key that is marked as such, with a comment",
        ),
        pytest.param(
            constrained("labelSelector:\n  matchLabels:\tnull\nmatchLabelKeys: [rev]\n"),
            "1: cannot be edited: ruamel.yaml says: found character '\\t' that cannot start any token",
            id="a tab",
        ),
        pytest.param(
            "%TAG !e! tag:example.com,2026:\n---\n"
            + constrained("labelSelector: {}\nmatchLabelKeys: [rev]\nx: !e!y z\n"),
            "3: cannot be edited: ruamel.yaml says: found undefined tag handle '!e!'",
            id="a tag with a handle",
        ),
    ],
)
def test_what_would_not_be_kept_is_refused_with_its_line(text: str, refusal: str) -> None:
    result = run("merge", text)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: STDIN:{refusal}\n")


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        pytest.param(
            pod(TWO.format(key="", first=f"{{matchExpressions: &m [{MADE}]}}", second="{matchExpressions: *m}")),
            None,
            id="the anchor of an alias that stays",
        ),
        pytest.param(
            constrained(
                f"matchLabelKeys: [rev]\nlabelSelector: {{<<: {{matchExpressions: [{MADE}]}}, matchLabels: {{}}}}\n"
            ),
            f"12: {FIRST}",
            id="a key that is merged from elsewhere",
        ),
        pytest.param(
            constrained(
                "labelSelector:\n  matchExpressions:\n  - key: rev\n    operator: In\n    values:\n    - r1\n"
                "# about the keys\nmatchLabelKeys: [rev]\n"
            ),
            "1: cannot be edited: 1 comment would be lost",
            id="a comment behind what is removed",
        ),
    ],
)
def test_unmerge_refuses_what_would_not_be_kept(text: str, refusal: str | None) -> None:
    result = run("unmerge", text)
    assert result.stderr == (f"error: STDIN:{refusal}\n" if refusal else "")
    assert (result.exit_code, bool(result.stdout)) == ((2, False) if refusal else (0, True))


def test_required_and_preferred_terms_are_merged() -> None:
    before = """\
    affinity:
      podAntiAffinity:
        preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 1
            podAffinityTerm:
              topologyKey: zone
              mismatchLabelKeys: [tenant]
              labelSelector:
                matchLabels:
                  app: web
        requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: host
            matchLabelKeys: [rev]
            mismatchLabelKeys: [tenant]
            labelSelector:
              matchExpressions:
                - key: tenant
                  operator: Exists
    """
    merged = (
        pod(before)
        .replace(
            "                app: web\n",
            """\
                app: web
              matchExpressions:
                - key: tenant
                  operator: NotIn
                  values:
                    - a
""",
        )
        .replace(
            "                operator: Exists\n",
            """\
                operator: Exists
              - key: rev
                operator: In
                values:
                  - r1
              - key: tenant
                operator: NotIn
                values:
                  - a
""",
        )
    )
    assert out("merge", pod(before)) == merged
    assert out("unmerge", merged) == pod(before)


def test_fields_of_disabled_gates_are_removed() -> None:
    before = constrained("minDomains: 2\nmatchLabelKeys: [rev]\nlabelSelector: {}\nnodeTaintsPolicy: Honor\n")
    result = run("merge", before, "--server-version=1.32", "--feature-gates=MatchLabelKeysInPodTopologySpread=false")
    assert result.exit_code == 0
    assert result.stdout == constrained("minDomains: 2\nlabelSelector: {}\nnodeTaintsPolicy: Honor\n")
    path = "spec.topologySpreadConstraints[0].matchLabelKeys"
    assert result.stderr == f"STDIN:1: Pod default/web: {path}: dropped, as its feature gate is off\n"


def test_the_dash_stays_when_the_first_field_of_an_item_is_removed() -> None:
    before = pod(
        "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["
        "{matchLabelKeys: [rev], topologyKey: zone, labelSelector: {}}]}}\n"
    )
    result = run("merge", before, "--server-version=1.30")
    assert result.stdout == before.replace("matchLabelKeys: [rev], ", "")
    block = pod(
        "affinity:\n  podAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n"
        "    - matchLabelKeys: [rev]\n      topologyKey: zone\n      labelSelector: {}\n"
    )
    result = run("merge", block, "--server-version=1.30")
    assert result.stdout == block.replace("matchLabelKeys: [rev]\n        ", "")


def test_the_indentation_is_that_of_the_document() -> None:
    before = """\
topologySpreadConstraints:
    -   maxSkew: 1
        topologyKey: zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector:
            matchLabels:
                app: web
        matchLabelKeys:
            -   rev
"""
    head = HEAD.replace("  ", "    ")
    text = head + textwrap.indent(before, "    ")
    requirement = """\
matchExpressions:
    -   key: rev
        operator: In
        values:
            -   r1
"""
    added = textwrap.indent(requirement, " " * 16)
    merged = text.replace("app: web\n" + " " * 12, f"app: web\n{added}" + " " * 12)
    assert out("merge", text) == merged
    assert out("unmerge", merged) == text


VALUES = (
    """\
x-values:
  yaml-1.1: [yes, no, on, off, y, n, ~, 010, 0o10, 0x1F, 0b1, 1_000, 1e3, 1., .5, 1:30, 190:20:30, 2024-01-01]
  quoted: ['yes', "no", '010', "1e3", "\\tz", '', "é"]
  long: """
    + "word " * 60
    + """end
  longer: "%s"
  literal: |+
    first

      # not a comment
    last

  folded: >-
    one
    two

    three
      four
    five
  stripped: |-
    x
  indented: |2
      two more
    none more
  ? long key
  : value
  tagged: !!str 1
  custom: !Ref x
  empty:
  'quoted key': 1
  "10": 10
"""
    % ("w" * 200)
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_other_values_stay_the_same_for_every_reader(newline: str) -> None:
    text = VALUES + constrained("labelSelector: {}\nmatchLabelKeys: [rev]\n")
    written = out("merge", text.replace("\n", newline))
    assert written.count(newline) == written.count("\n")
    selector = "labelSelector: {matchExpressions: [{key: rev, operator: In, values: [r1]}]}"
    expected = text.replace("labelSelector: {}", selector).replace("~, 010", "null, 010")
    for read in (yaml_values.read_all, _scalars):
        assert read(written.encode(), "") == read(expected.encode(), "")


def _scalars(body: bytes, _: str) -> list[tuple[object, ...]]:
    """Return the text of each scalar, and whether it is quoted."""
    events = yaml.parse(body.decode(), Loader=yaml.SafeLoader)
    return [(event.value, event.implicit) for event in events if isinstance(event, yaml.ScalarEvent)]

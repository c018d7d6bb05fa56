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
          matchLabels: {app: web}  # ours
          # still about the selector
        # about the keys
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchLabels: {app: web}  # ours
          # still about the selector
          matchExpressions:
          - key: rev
            operator: In
            values:
            - r1
        # about the keys
        matchLabelKeys: [rev]
        """,
        id="comments stay with their fields",
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
            values: [r1]
          # about the labels
          matchLabels:
            app: web
        matchLabelKeys: [rev]
        """,
        id="a comment above the next key stays there, and lists in brackets stay lists in brackets",
    ),
    pytest.param(
        """\
        labelSelector:
          matchExpressions:
          - {key: x, operator: Exists}
        matchLabelKeys: [rev, tenant]
        """,
        """\
        labelSelector:
          matchExpressions:
          - {key: x, operator: Exists}
          - {key: rev, operator: In, values: [r1]}
          - {key: tenant, operator: In, values: [a]}
        matchLabelKeys: [rev, tenant]
        """,
        id="an item behind items in brackets is in brackets",
    ),
    pytest.param(
        """\
        labelSelector: {} # everything
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: {matchExpressions: [{key: rev, operator: In, values: [r1]}]} # everything
        matchLabelKeys: [rev]
        """,
        id="an empty selector is written in brackets",
    ),
    pytest.param(
        """\
        labelSelector: {"matchLabels": {"app": "web"}}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "rev", "operator": "In", \
"values": ["r1"]}]}
        matchLabelKeys: [rev]
        """,
        id="JSON inside YAML stays JSON",
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
          matchLabels:
            app: web
          matchExpressions: [] # none yet
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchLabels:
            app: web
          matchExpressions: [{key: rev, operator: In, values: [r1]}] # none yet
        matchLabelKeys: [rev]
        """,
        id="an empty list is filled",
    ),
    pytest.param(
        """\
        labelSelector:
          matchExpressions:  # none yet
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchExpressions: [{key: rev, operator: In, values: [r1]}] # none yet
        matchLabelKeys: [rev]
        """,
        id="a key without a value is filled",
    ),
    pytest.param(
        """\
        labelSelector: {matchExpressions: null}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: {matchExpressions: [{key: rev, operator: In, values: [r1]}]}
        matchLabelKeys: [rev]
        """,
        id="null is replaced",
    ),
    pytest.param(
        """\
        labelSelector: &empty {}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: &empty {matchExpressions: [{key: rev, operator: In, values: [r1]}]}
        matchLabelKeys: [rev]
        """,
        id="an anchor stays",
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
    pytest.param(
        """\
        labelSelector:
          ? matchExpressions
          : - {key: x, operator: Exists}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchExpressions:
          - {key: x, operator: Exists}
          - {key: rev, operator: In, values: [r1]}
        matchLabelKeys: [rev]
        """,
        id="a key that is marked as such is written without the mark",
    ),
]


@pytest.mark.parametrize(("before", "after"), MERGE_ONLY)
def test_merge_fills_selectors_that_unmerge_leaves_empty(before: str, after: str) -> None:
    assert out("merge", constrained(before)) == constrained(after)


UNMERGE_ONLY = [
    pytest.param(
        """\
        labelSelector:  # ours
          # the apiserver wrote this
          matchExpressions:
            - key: rev
              operator: In
              values: [r1]
              # was r0
          # the end
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: {} # ours
          # the apiserver wrote this
          # the end
        matchLabelKeys: [rev]
        """,
        id="a selector without other requirements becomes empty",
    ),
    pytest.param(
        """\
        labelSelector: &web
          matchExpressions:
          - key: rev
            operator: In
            values: [r1]
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: &web {}
        matchLabelKeys: [rev]
        """,
        id="the anchor of an empty selector stay",
    ),
    pytest.param(
        """\
        labelSelector:
          matchExpressions:
          - {key: rev, operator: In, values: [r1]}
          matchLabels: {app: web}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector:
          matchLabels: {app: web}
        matchLabelKeys: [rev]
        """,
        id="a key in front of others goes",
    ),
    pytest.param(
        """\
        labelSelector: {matchExpressions: [{key: rev, operator: In, values: [r1]}], matchLabels: {app: web}}
        matchLabelKeys: [rev]
        """,
        """\
        labelSelector: {matchLabels: {app: web}}
        matchLabelKeys: [rev]
        """,
        id="a key in front of others goes, in brackets",
    ),
    pytest.param(
        """\
        labelSelector:
          matchExpressions: [
            {key: x, operator: Exists}, # ours
            {key: rev, operator: In, values: [r1]}, # merged
            {key: tenant, operator: In, values: [a]}
          ]
        matchLabelKeys: [rev, tenant]
        """,
        """\
        labelSelector:
          matchExpressions: [{key: x, operator: Exists}]
        matchLabelKeys: [rev, tenant]
        """,
        id="several items in brackets over several lines",
    ),
]


@pytest.mark.parametrize(("before", "after"), UNMERGE_ONLY)
def test_unmerge_removes_text_that_merge_would_write_differently(before: str, after: str) -> None:
    assert out("unmerge", constrained(before)) == constrained(after)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("r1", "r1"),
        ("5d4f8c7b9", "5d4f8c7b9"),
        ("a.b-c_d", "a.b-c_d"),
        ("1.2.3", "1.2.3"),
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
    selector = f"labelSelector: {{matchExpressions: [{{key: rev, operator: In, values: [{written}]}}]}}"
    assert out("merge", before) == before.replace("labelSelector: {}", selector)


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
        pytest.param("", ("&s " + PLAIN, "*s"), ("&s " + MERGED, PLAIN), id="a copy that does not change"),
        pytest.param("rev", ("&s " + PLAIN, "*s"), ("&s " + MERGED, "*s"), id="a copy that changes likewise"),
        pytest.param("nope", ("&s " + PLAIN, "*s"), ("&s " + MERGED, PLAIN), id="a copy whose key is absent"),
        pytest.param("", ("*web", "*web"), (MERGED, "*web"), id="an alias of a selector outside the pod"),
        pytest.param(
            "",
            ("{<<: *web}", "*web"),
            (MERGED.replace("{", "{<<: *web, ", 1).replace("matchLabels: {app: web}, ", ""), "*web"),
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
def test_merge_leaves_copies_alone(key: str, value: tuple[str, str], expected: tuple[str, str]) -> None:
    """An alias is replaced by its value where its anchor no longer has that value."""
    before, after = (
        SHARED + pod(TWO.format(key=key, first=first, second=second)) for first, second in (value, expected)
    )
    assert out("merge", before) == after


def test_unmerge_leaves_copies_alone() -> None:
    """When a node with an anchor is removed, its alias becomes the node."""
    item = "{key: rev, operator: In, values: [r1]}"
    before = TWO.format(key="", first=f"{{matchExpressions: [&r {item}]}}", second="{matchExpressions: [*r]}")
    after = TWO.format(key="", first="{}", second=f"{{matchExpressions: [&r {item}]}}")
    assert out("unmerge", pod(before)) == pod(after)


def test_a_constraint_that_is_merged_from_elsewhere_gets_a_selector_of_its_own() -> None:
    before = """\
x: &base
  maxSkew: 1
  whenUnsatisfiable: DoNotSchedule
  matchLabelKeys: [rev]
  labelSelector: {matchLabels: {app: web}}
""" + pod("topologySpreadConstraints:\n- <<: *base\n  topologyKey: zone\n")
    added = """\
    labelSelector:
      matchLabels:
        app: web
      matchExpressions:
      - key: rev
        operator: In
        values:
        - r1
"""
    assert out("merge", before) == before + added


def test_a_mapping_whose_merged_key_goes_is_written_again() -> None:
    """The key comes from a merge key, so it cannot be removed from this mapping alone."""
    before = """\
x: &base {matchExpressions: [{key: rev, operator: In, values: [r1]}]}
""" + constrained("matchLabelKeys: [rev]\nlabelSelector: {<<: *base, matchLabels: {app: web}}\n")
    after = before.replace("{<<: *base, matchLabels: {app: web}}", "{matchLabels: {app: web}}")
    assert out("unmerge", before) == after


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
                - {key: tenant, operator: Exists}
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
            "              - {key: tenant, operator: Exists}\n",
            """\
              - {key: tenant, operator: Exists}
              - {key: rev, operator: In, values: [r1]}
              - {key: tenant, operator: NotIn, values: [a]}
""",
        )
    )
    assert out("merge", pod(before)) == merged
    assert out("unmerge", merged) == pod(before)


def test_fields_of_disabled_gates_are_removed() -> None:
    before = constrained("minDomains: 2\nmatchLabelKeys: [rev]  # keys\nlabelSelector: {}\nnodeTaintsPolicy: Honor\n")
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


def test_comments_within_brackets_over_several_lines_are_left_out() -> None:
    """ruamel.yaml writes brackets on one line."""
    text = constrained("labelSelector: {\n  matchLabels: {app: web},  # ours\n}\nmatchLabelKeys: [rev]\n")
    result = run("merge", text)
    assert result.stdout == constrained(f"labelSelector: {MERGED}\nmatchLabelKeys: [rev]\n")
    assert result.stderr == "STDIN:1: 1 comment in brackets over several lines left out\n"


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
    expected = text.replace("labelSelector: {}", selector).replace("!!str 1", "'1'")
    for read in (yaml_values.read_all, _scalars):
        assert read(written.encode(), "") == read(expected.encode(), "")


def _scalars(body: bytes, _: str) -> list[tuple[object, ...]]:
    """Return the text of each scalar, and whether it is quoted."""
    events = yaml.parse(body.decode(), Loader=yaml.SafeLoader)
    return [(event.value, event.implicit) for event in events if isinstance(event, yaml.ScalarEvent)]

"""Properties of ``merge`` and ``unmerge`` that hold for every pod in every style."""

from __future__ import annotations

import json
import re
from typing import Any

from deepdiff import Delta
from deepdiff.serialization import json_loads
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from kubectl_spread.audit.merge.merging import applied, merge_pod, unmerge_pod
from kubectl_spread.audit.merge.verdicts import ServerFacts, Verdict, judge
from kubectl_spread.audit.snapshot.terms import split, topology_terms
from kubectl_spread.errors import DecodeError
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.kube.apiserver import pod_errors, prepare_for_create
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.report.mergereport import item
from kubectl_spread.sources import edit
from kubectl_spread.sources.decode import json_objects
from tests.builders import HOSTNAME, ZONE, Json, constraint, pod_json, requirement, term
from tests.merge.styles import Style

QUICK = settings(max_examples=150, derandomize=True)
SERVED = {minor: behaviour(minor, gates(minor, {})) for minor in (27, 30, 33, 34, 37)}
WITHOUT_KEYS = behaviour(33, gates(33, {"MatchLabelKeysInPodTopologySpread": False}))
NEWEST = SERVED[37]

VALUES = st.sampled_from(("", "r1", "1", "on", "1e3"))
LABELS = st.fixed_dictionaries({"app": st.just("web")}, optional={"rev": VALUES, "tenant": VALUES})
KEYS = st.lists(st.sampled_from(("rev", "tenant", "nope")), max_size=2, unique=True)
EXPRESSIONS = st.builds(
    lambda key, operator, values: requirement(key, operator, *values),
    st.sampled_from(("x", "app", "rev")),
    st.sampled_from(("In", "NotIn")),
    st.lists(VALUES, min_size=1, max_size=2),
)
SELECTORS: st.SearchStrategy[Json] = st.one_of(
    st.just({}),
    st.just({"matchLabels": {"app": "web"}}),
    st.fixed_dictionaries(
        {},
        optional={
            "matchLabels": st.dictionaries(st.sampled_from(("app", "on")), VALUES, max_size=2),
            "matchExpressions": st.one_of(st.none(), st.lists(EXPRESSIONS, max_size=2)),
        },
    ),
)
CONSTRAINTS = st.builds(
    lambda key, hard, selector, match, fields: constraint(key=key, hard=hard, match=match, **(selector | fields)),
    st.sampled_from((ZONE, HOSTNAME)),
    st.booleans(),
    st.one_of(st.just({"labelSelector": None}), st.builds(lambda selector: {"labelSelector": selector}, SELECTORS)),
    KEYS,
    st.sampled_from(({}, {"nodeTaintsPolicy": "Honor"}, {"minDomains": 2, "whenUnsatisfiable": "DoNotSchedule"})),
)
TERMS = st.builds(
    lambda selector, match, mismatch: term(labelSelector=selector, match=match, mismatch=mismatch),
    SELECTORS,
    KEYS,
    KEYS,
)
STYLES = st.one_of(
    st.builds(
        Style,
        step=st.sampled_from(("", "  ", "    ")),
        gap=st.sampled_from((" ", "   ")),
        quote=st.sampled_from(("", "'", '"')),
        flow=st.sampled_from((99, 0, 2, 3, 4, 5)),
        comments=st.booleans(),
        anchors=st.booleans(),
        newline=st.sampled_from(("\n", "\r\n")),
    ),
    st.sampled_from((None, 2, 4, "\t")),
)


@st.composite
def pods(draw: st.DrawFn) -> Json:
    """Return a manifest of a pod with constraints and terms in any of the lists."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    affinity: Json = {
        field: {
            required: draw(st.lists(TERMS, max_size=2)),
            preferred: [
                {"weight": 1, "podAffinityTerm": preference} for preference in draw(st.lists(TERMS, max_size=1))
            ],
        }
        for field in draw(st.lists(st.sampled_from(("podAffinity", "podAntiAffinity")), max_size=1))
    }
    extra: Json = {"affinity": affinity} if affinity else {}
    pod = pod_json(
        labels=draw(LABELS),
        constraints=draw(st.lists(CONSTRAINTS, max_size=3)),
        stored=draw(st.booleans()),
        **extra,
    )
    return pod if draw(st.booleans()) else dict(reversed(pod.items()))


def decoded(manifest: Json) -> Pod:
    """Return a decoded pod, nulls included."""
    return json_objects.decode(json.dumps(manifest).encode(), Pod)


def written(manifest: Json, style: Style | str | int | None) -> str:
    """Return a manifest in a style of YAML, or in JSON with an indentation."""
    return style.write(manifest) if isinstance(style, Style) else json.dumps(manifest, indent=style)


def read(text: str) -> edit.Chunk:
    (chunk,) = edit.read(text.encode(), "f.yaml")
    assert chunk.fault is None
    return chunk


def edited(chunk: edit.Chunk, expected: Json, style: Style | str | int | None, *, removes: bool) -> str:
    """Return the text with another value, unless the style is one that may be refused."""
    try:
        return chunk.edited({(): expected})
    except DecodeError:
        assert isinstance(style, Style)
        assert style.anchors or (style.comments and removes)
        reject()


def comments(text: str) -> list[str]:
    return re.findall(r"# (?:on|under) \d+", text)


def outside(value: Any) -> Any:
    """Return JSON without its selectors."""
    if isinstance(value, dict):
        return {key: outside(field) for key, field in value.items() if key != "labelSelector"}
    return [outside(item) for item in value] if isinstance(value, list) else value


@QUICK
@given(pods(), STYLES, st.sampled_from([*SERVED.values(), WITHOUT_KEYS]))
def test_the_merged_text_has_the_pod_that_the_api_stores(manifest: Json, style: Any, served: Any) -> None:
    text = written(manifest, style)
    chunk, pod = read(text), decoded(manifest)
    outcome = merge_pod(pod, served)
    stored = prepare_for_create(pod.spec, pod.metadata.labels, served)
    assert outcome.errors == pod_errors(stored, served)
    if outcome.errors:
        assert not outcome.changes
        return
    drops = any(change.dropped for change in outcome.changes)
    after = edited(chunk, applied(chunk.value, outcome.changes), style, removes=drops)
    assert decoded(read(after).value).spec == stored
    if not drops:
        assert outside(read(after).value) == outside(manifest)
        assert comments(after) == comments(text)


@QUICK
@given(pods(), STYLES)
def test_an_unmerged_pod_is_the_same_after_a_merge(manifest: Json, style: Any) -> None:
    """The pod is the same again where each of its keys was merged or absent."""
    pod = decoded(manifest)
    merging = merge_pod(pod, NEWEST)
    assume(not merging.errors)
    stored = applied(manifest, merging.changes)
    pod = decoded(stored)
    parts = topology_terms(pod.spec)
    splits = split(parts)
    context = ServerFacts(NEWEST, gates_known=False)
    verdicts = {
        key.verdict for keys in judge(parts, splits, pod.metadata.labels, bound=False, context=context) for key in keys
    }
    outcome = unmerge_pod(pod, NEWEST)
    chunk = read(written(stored, style))
    unmerged = edited(chunk, applied(chunk.value, outcome.changes), style, removes=True)
    if verdicts <= {Verdict.MERGED, Verdict.ABSENT_KEY}:
        assert not outcome.notes
        assert not outcome.errors
        bare = decoded(read(unmerged).value)
        changes = merge_pod(bare, NEWEST).changes
        again = edited(read(unmerged), applied(read(unmerged).value, changes), style, removes=False)
        assert decoded(read(again).value).spec == pod.spec
        assert unmerge_pod(bare, NEWEST).changes == ()


@QUICK
@given(pods(), st.sampled_from((merge_pod, unmerge_pod)))
def test_the_delta_of_the_report_turns_the_manifest_into_the_object(manifest: Json, treat: Any) -> None:
    if treat is unmerge_pod:
        manifest = applied(manifest, merge_pod(decoded(manifest), NEWEST).changes)
    # Delta copies the manifest, and shared objects would stay shared in the copy. Here no object is shared.
    manifest = json.loads(json.dumps(manifest))
    reported = item("Pod", "default", "web", manifest, treat(decoded(manifest), NEWEST))
    delta = Delta(json.dumps(reported.delta), deserializer=json_loads, raise_errors=True)
    assert manifest + delta == reported.object
    assert bool(reported.delta) == (reported.object != manifest)

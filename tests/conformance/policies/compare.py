"""Comparison: do the policies on a real API server refuse what ``check -f`` finds, by the same codes?"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from tests.builders import Json
from tests.conformance.policies import objects, relabelling
from tests.conformance.policies.ours import Found, found
from tests.conformance.policies.relabelling import Relabelling
from tests.conformance.policies.servers import Outcome, Server
from tests.controlplane.client import parallel

KINDS: Final = ("objects", "updates", "relabelling")
REFUSED: Final = "SPR201"
"""The code of what the API server refuses without any policy."""

_CODES: Final = {
    "stale-label": "SPR101",
    "removed-label": "SPR102",
}
"""The code in a policy of each verdict on a key."""
_OTHER_WORDS: Final = frozenset({"SPR202", "SPR206"})
"""Rules whose policies quote neither the errors of kube-apiserver nor requirements as ``check`` does."""
_IMMUTABLE: Final = frozenset({"Pod", "Job"})
"""Kinds whose objects keep their constraints and affinity."""
_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A request on which a policy and ``check`` differ.

    ``request`` has the ``object`` that is created, or the ``stored`` one before it, or the ``labels`` that change.
    """

    request: Json
    server: Json
    check: list[str]


@dataclass(slots=True)
class Tally:
    """The numbers of one API server; ``hits`` counts the requests with each code."""

    compared: int = 0
    refused: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    clean: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)

    def add(self, request: Json, outcome: Outcome, codes: frozenset[str], findings: Found | None = None) -> None:
        """Compare one answer with the codes that ``check`` finds, and with its messages if there are ``findings``."""
        if REFUSED in codes and outcome.invalid:
            self.refused += 1
            return
        self.compared += 1
        self.hits.update(codes)
        self.kinds[request["object"]["kind"]] += 1
        self.clean += not codes
        differs = outcome.invalid or outcome.codes != codes or outcome.denied != bool(codes)
        if differs or (findings is not None and not _says(outcome, findings)):
            server: Any = {"denied": outcome.denied, "invalid": outcome.invalid, "messages": outcome.messages}
            self.disagreements.append(Disagreement(request, server, sorted(codes)))


def _says(outcome: Outcome, findings: Found) -> bool:
    """Tell whether each violation says what a finding of its code says, before it says what to do."""
    return all(
        any(_begins(text, message) for message in findings.messages[code])
        for code, texts in outcome.messages.items()
        if code not in _OTHER_WORDS
        for text in texts
    )


def _begins(text: str, message: str) -> bool:
    """Tell whether a text begins with a message, whose keys may be in another order; a long answer is truncated."""
    text, message = text.replace('""', ""), message.replace('""', "")
    return message.startswith(text) or sorted(text[: len(message)]) == sorted(message)


def compare(server: Server, minor: int, kind: str, seed: int, indices: range) -> Tally:
    """Send the cases of ``indices`` to a server, and compare its answers."""
    tally = Tally()
    for start in range(indices.start, indices.stop, _BATCH):
        batch = range(start, min(start + _BATCH, indices.stop))
        match kind:
            case "objects":
                _create(server, minor, [objects.case(seed, index) for index in batch], tally)
            case "updates":
                _update(server, minor, [_named(objects.case(seed, index), seed, index) for index in batch], tally)
            case "relabelling":
                _relabel(server, minor, [relabelling.case(seed, index) for index in batch], tally)
    return tally


def differs(server: Server, minor: int, manifest: Json) -> list[Disagreement]:
    """Return the disagreement on the creation of an object."""
    tally = Tally()
    _create(server, minor, [manifest], tally)
    return tally.disagreements


def _create(server: Server, minor: int, manifests: Sequence[Json], tally: Tally) -> None:
    findings = found(manifests, minor)
    for manifest, outcome, of_object in zip(manifests, parallel(server.creation, manifests), findings, strict=True):
        codes = of_object.codes & {REFUSED, *server.carried}
        if _is_controlled(manifest):
            codes = frozenset({REFUSED} if outcome.invalid else ())
        tally.add({"object": manifest}, outcome, codes, of_object)


def _named(manifest: Json, seed: int, index: int) -> Json:
    return {**manifest, "metadata": {**manifest["metadata"], "name": f"updated-{seed}-{index}"}}


def _update(server: Server, minor: int, manifests: Iterable[Json], tally: Tally) -> None:
    """Store objects without constraints and affinity, and ask for the update that adds them, and for another one.

    The other update changes nothing that the rules read, so that no policy refuses it.
    """
    workloads = [manifest for manifest in manifests if manifest["kind"] not in _IMMUTABLE]
    findings = found(workloads, minor)
    for manifest, outcomes, of_object in zip(
        workloads, parallel(lambda manifest: _updated(server, manifest), workloads), findings, strict=True
    ):
        if outcomes is None:
            tally.refused += 1
            continue
        stored, annotated, updated = outcomes
        tally.add({"object": stored, "change": "annotated"}, annotated, frozenset())
        codes = of_object.codes & {REFUSED, *server.carried}
        if _is_controlled(manifest):
            codes = frozenset({REFUSED} if updated.invalid else ())
        tally.add({"object": manifest, "stored": stored}, updated, codes)


def _updated(server: Server, manifest: Json) -> tuple[Json, Outcome, Outcome] | None:
    """Return an object as it was stored, and the answers to an update of its annotations and to its whole update."""
    stored = copy.deepcopy(manifest)
    template = objects.template_of(stored)
    template["metadata"]["labels"]["example.com/stored"] = "before"
    for name in ("topologySpreadConstraints", "affinity"):
        template["spec"].pop(name, None)
    if server.api.answer("POST", server.api.collection(stored), stored).refused:
        return None
    annotations = {**stored["metadata"].get("annotations", {}), "example.com/changed": "yes"}
    annotated = {**stored, "metadata": {**stored["metadata"], "annotations": annotations}}
    return stored, server.update(annotated), server.update(manifest)


def _is_controlled(manifest: Json) -> bool:
    """Tell whether an object has a controller, in whose template the policies and ``check`` look instead."""
    return any(owner.get("controller") for owner in manifest["metadata"].get("ownerReferences", ()))


@dataclass(frozen=True, slots=True)
class _History:
    """The states of a stored pod, and the answer to each change from one to the next."""

    states: list[Json]
    changes: list[Json]
    outcomes: list[Outcome]


def _relabel(server: Server, minor: int, cases: Iterable[Relabelling], tally: Tally) -> None:
    answers = parallel(lambda case: _changed(server, case), cases)
    histories = [history for history in answers if history is not None]
    tally.refused += len(answers) - len(histories)
    findings = iter(found([state for history in histories for state in history.states], minor))
    for history in histories:
        of_states = [next(findings) for _ in history.states]
        steps = zip(history.states, history.changes, history.outcomes, pairwise(of_states), strict=False)
        for state, change, outcome, (before, after) in steps:
            tally.add({"object": state, "labels": change}, outcome, _new(before, after) & server.carried)


def _changed(server: Server, case: Relabelling) -> _History | None:
    """Create a pod, ask whether each change is refused, and make it; None for a pod that the API server refuses."""
    created = server.api.answer("POST", server.api.collection(case.pod), case.pod)
    if created.refused:
        return None
    history = _History([_typed(created.body)], [], [])
    for change in case.changes:
        outcome = server.relabelling(case.pod, change)
        history.changes.append(change)
        history.outcomes.append(outcome)
        if outcome.invalid:
            break
        history.states.append(_typed(server.relabel(case.pod, change)))
    return history


def _typed(stored: Json) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", **stored}


def _new(before: Found, after: Found) -> frozenset[str]:
    """Return the codes of the verdicts that keys have after a change and did not have before."""
    return frozenset(
        _CODES[verdict]
        for key, verdict in after.verdicts.items()
        if verdict in _CODES and before.verdicts.get(key) != verdict
    )

"""Hints: what was asked for, on the command line or in an annotation, and nothing in scope heeds."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_spread.app.options import CheckOptions
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.podclasses import IGNORE_ANNOTATION
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.rules import RULES, engine


def hints(question: CheckOptions, audit: Audit) -> list[str]:
    """Return a note on each expected key that no constraint has, and on each word to ignore that names no rule."""
    return [*_unused_keys(question, audit), *_unknown_words(audit)]


def _unused_keys(question: CheckOptions, audit: Audit) -> list[str]:
    """Return the expected keys that are misspelt, it seems; where nothing is judged, no key is wrong."""
    if not (audit.pods or audit.templates):
        return []
    used = {clause.topology_key for clause in _clauses(audit) if clause.spread}
    unused = [key for key in question.expected_domains if key not in used]
    return [f'--expect-domains: no constraint has the key "{key}"' for key in unused]


def _clauses(audit: Audit) -> Iterator[TopologyTerm]:
    for pod in _one_of_each_shape(audit):
        yield from pod.shape.clauses
    for template in audit.templates:
        yield from template.clauses


def _unknown_words(audit: Audit) -> list[str]:
    words = sorted({word for annotation in set(_annotations(audit)) for word in engine.codes(annotation)})
    unknown = [word for word in words if not any(engine.named(rule, [word]) for rule in RULES)]
    return [f'{IGNORE_ANNOTATION}: no rule has the code "{word}" (kubectl spread rules lists them)' for word in unknown]


def _annotations(audit: Audit) -> Iterator[str]:
    """Yield the values of the annotation on pods, templates' workloads and owners."""
    for pod in _one_of_each_shape(audit):
        yield pod.shape.ignored
        yield from (owner.ignored for owner in audit.snapshot.owner_chain(pod))
    for template in audit.templates:
        yield template.ignored
        yield from (owner.ignored for owner in audit.snapshot.template_owners(template))


def _one_of_each_shape(audit: Audit) -> list[PodRecord]:
    return list({id(pod.shape): pod for pod in audit.pods}.values())

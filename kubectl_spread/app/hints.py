"""Hints: words on the command line or in an annotation that have no effect on anything in scope."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_spread.app.options import CheckOptions
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.podclasses import IGNORE_ANNOTATION
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.rules import RULES, engine


def hints(options: CheckOptions, audit: Audit) -> list[str]:
    """Return a note on each expected key that no constraint has, and on each word to ignore that names no rule."""
    return [*_unused_keys(options, audit), *_unknown_words(audit)]


def _unused_keys(options: CheckOptions, audit: Audit) -> list[str]:
    """Return a note on each expected key that no constraint has; nothing where no pod or template is in scope."""
    if not (audit.pods or audit.templates):
        return []
    used = {term.topology_key for term in _terms(audit) if term.spread}
    unused = [key for key in options.expected_domains if key not in used]
    return [f'--expect-domains: no constraint has the key "{key}"' for key in unused]


def _terms(audit: Audit) -> Iterator[TopologyTerm]:
    for pod in _pod_of_each_class(audit):
        yield from pod.pod_class.terms
    for template in audit.templates:
        yield from template.terms


def _unknown_words(audit: Audit) -> list[str]:
    words = sorted({word for annotation in set(_annotations(audit)) for word in engine.codes(annotation)})
    unknown = [word for word in words if not any(engine.named(rule, [word]) for rule in RULES)]
    return [f'{IGNORE_ANNOTATION}: no rule has the code "{word}" (kubectl spread rules lists them)' for word in unknown]


def _annotations(audit: Audit) -> Iterator[str]:
    """Yield the values of the annotation on pods, templates' workloads and owners."""
    for pod in _pod_of_each_class(audit):
        yield pod.pod_class.ignored
        yield from (owner.ignored for owner in audit.snapshot.owner_chain(pod))
    for template in audit.templates:
        yield template.ignored
        yield from (owner.ignored for owner in audit.snapshot.template_owners(template))


def _pod_of_each_class(audit: Audit) -> list[PodRecord]:
    pods: dict[PodClass, PodRecord] = {pod.pod_class: pod for pod in audit.pods}
    return list(pods.values())

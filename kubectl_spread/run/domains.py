"""The report of ``domains``: count the pods of each domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from kubectl_spread.audit.evaluation import domains as evaluation
from kubectl_spread.audit.evaluation.domains import CountedDomains
from kubectl_spread.errors import NotFoundError
from kubectl_spread.kube.api.labels import TOPOLOGY_KEYS
from kubectl_spread.kube.api.objects import ALL_NAMESPACES
from kubectl_spread.kube.api.types import Node
from kubectl_spread.phrases import did_you_mean, some, value
from kubectl_spread.report import domains
from kubectl_spread.report.domains import ReadCluster, SpreadDomains
from kubectl_spread.report.model import CORDONED
from kubectl_spread.rules.remedy import flagged, uncordon
from kubectl_spread.run.hints import key_names
from kubectl_spread.run.run import Run

NONE: Final = "<none>"
"""The word for the nodes without the topology key; no label can have it as its value."""
_EMPTY: Final = '""'
"""How an empty value is printed; it is not the value of any label."""
_NAMED: Final = 12
"""The number of keys or values that an error names."""


def counted(run: Run, key: str, wanted_value: str | None) -> SpreadDomains:
    """Return the report on all domains of a topology key, or on the one with a value.

    Raises:
        NotFoundError: No node has the key, or no node has the value.
    """
    topology_key, options, scope = TOPOLOGY_KEYS.get(key, key), run.options, run.scope
    _confirm_key(topology_key, run.snapshot.nodes)
    counts = evaluation.count(run.snapshot, topology_key, options.scope(ALL_NAMESPACES).labels)
    cluster = ReadCluster(
        **run.identity.fields(options.cluster_name, scope.namespace), resource_versions=run.resource_versions
    )
    # Files have the pods of all namespaces, of which the scope may be one.
    everywhere = options.reads_files or scope.all_namespaces
    report = domains.domains(cluster, topology_key, counts, run.skipped, with_requests=everywhere)
    rows = [
        replace(row, commands=[str(flagged(each, options.command_flags)) for each in uncordon(count.nodes)] or UNSET)
        if row.closed == CORDONED
        else row
        for row, count in zip(report.domains, counts.domains, strict=True)
    ]
    report = replace(report, domains=rows)
    if wanted_value is None:
        return report
    place = _place(counts, topology_key, wanted_value)
    return domains.domain(report, place, evaluation.losses(counts, place, run.snapshot))


def _confirm_key(key: str, nodes: Sequence[Node]) -> None:
    """Raise where no node has a label with this key.

    Raises:
        NotFoundError: No node has it; the message names the keys that nodes have.
    """
    keys = {label for node in nodes for label in node.metadata.labels}
    if key in keys:
        return
    labels = some(_topology_first(nodes, keys), _NAMED)
    known_keys = f"nodes have {labels}" if labels else "nodes have no labels"
    raise NotFoundError(f'no node has the label "{key}" ({known_keys}){did_you_mean(key, key_names(keys))}')


def _topology_first(nodes: Sequence[Node], keys: set[str]) -> list[str]:
    """Return label keys, first those that are well-known as topology keys, then those that most nodes have."""
    numbers = Counter(label for node in nodes for label in node.metadata.labels)
    well_known = list(TOPOLOGY_KEYS.values())
    return sorted(keys, key=lambda key: (key not in well_known, -numbers[key], key))


def _place(counts: CountedDomains, key: str, wanted_value: str) -> int:
    """Return the index of the domain with a value.

    Raises:
        NotFoundError: No node has the value; the message suggests the nearest, or names some.
    """
    values = [domain.value for domain in counts.domains]
    domain_value = None if wanted_value == NONE else "" if wanted_value == _EMPTY else wanted_value
    if domain_value in values:
        return values.index(domain_value)
    texts = [NONE if each is None else value(each) for each in values]
    suggestion = did_you_mean(wanted_value, texts)
    names = "" if suggestion else f" (nodes have {some(texts, _NAMED)})"
    raise NotFoundError(f'no node has the label {key}="{wanted_value}"{names}{suggestion}')

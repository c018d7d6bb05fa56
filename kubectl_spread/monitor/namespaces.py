"""Namespaces: the pods and templates of one namespace, by the workload that they belong to.

A workload is the root owner of pods and templates, or a pod without owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_spread.audit.snapshot.ownership import Ownership
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.monitor.defaults import ClusterDefaults
from kubectl_spread.monitor.retained import RetainedPod


class NamespaceContent:
    """The pods and templates of one namespace.

    Attributes:
        pods: The pods, by name.
        classes: The pods of each class that are not finished, by name.
        templates: The templates, by the object that holds them.
        stale: Whether a workload, class or template has appeared or gone since ``assign``.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.pods: dict[str, RetainedPod] = {}
        self.classes: dict[PodClass, dict[str, RetainedPod]] = {}
        self.templates: dict[ObjectRef, Template] = {}
        self.stale = True
        self._derived: dict[PodClass, PodClass] = {}
        self._roots: dict[PodClass | ObjectRef, ObjectRef] = {}
        self._classes_of: dict[ObjectRef, list[PodClass]] = {}
        self._templates_of: dict[ObjectRef, list[Template]] = {}

    @property
    def empty(self) -> bool:
        """Whether there is nothing in the namespace."""
        return not (self.pods or self.templates)

    def replace(self, name: str, pod: RetainedPod | None) -> None:
        """Store a pod in place of the one with the same name, or remove that."""
        before = self.pods.pop(name, None)
        if before is not None and before.counts:
            self._remove(name, before.record.pod_class, after=pod)
        if pod is not None:
            self.pods[name] = pod
            if pod.counts:
                self._add(name, pod, before)

    def _remove(self, name: str, pod_class: PodClass, after: RetainedPod | None) -> None:
        same_class = after is not None and after.counts and after.record.pod_class is pod_class
        members = self.classes[pod_class]
        del members[name]
        if not members and not same_class:
            del self.classes[pod_class]
        if not same_class and (pod_class.owner is None or not members):
            self.stale = True

    def _add(self, name: str, pod: RetainedPod, before: RetainedPod | None) -> None:
        pod_class = pod.record.pod_class
        same_class = before is not None and before.counts and before.record.pod_class is pod_class
        if pod_class not in self.classes or (pod_class.owner is None and not same_class):
            self.stale = True
        self.classes.setdefault(pod_class, {})[name] = pod

    def workload_of(self, pod: RetainedPod) -> ObjectRef | None:
        """Return the workload of a pod as of the last ``assign``; None if its class was not there."""
        pod_class = pod.record.pod_class
        return pod.record.ref if pod_class.owner is None else self._roots.get(pod_class)

    def assign(self, ownership: Ownership, defaults: ClusterDefaults) -> set[ObjectRef]:
        """Assign classes and templates to workloads, and default constraints to classes.

        Returns:
            The workloads to which something else belongs now, or whose pods have other default constraints.
        """
        roots, derived = self._roots, self._derived
        self._derived = {each: defaults.of(each) for each in self.classes} if defaults.enabled else {}
        self._roots, self._classes_of, self._templates_of = {}, {}, {}
        self.stale = False
        for pod_class in self.classes:
            if pod_class.owner is not None:
                root = ownership.chain(pod_class.namespace, pod_class.owner)[-1].ref
                self._roots[pod_class] = root
                self._classes_of.setdefault(root, []).append(pod_class)
        for holder, template in self.templates.items():
            chain = ownership.chain(template.namespace, template.owner)
            root = self._roots[holder] = chain[-1].ref if chain else template.workload
            self._templates_of.setdefault(root, []).append(template)
        moved = {root for _, root in roots.items() ^ self._roots.items()}
        for pod_class, with_defaults in self._derived.items():
            if derived.get(pod_class) is not with_defaults:
                moved.update(self.of_class(pod_class))
        return moved

    def with_defaults(self, pod_class: PodClass) -> PodClass:
        """Return a class with its default constraints, if it has any."""
        return self._derived.get(pod_class, pod_class)

    def workloads(self) -> Iterator[ObjectRef]:
        """Yield the workloads, each at least once."""
        yield from self._classes_of
        yield from self._templates_of
        for pod_class, pods in self.classes.items():
            if pod_class.owner is None:
                yield from (pod.record.ref for pod in pods.values())

    def of_class(self, pod_class: PodClass) -> Iterable[ObjectRef]:
        """Return the workloads that pods of a class belong to."""
        if pod_class.owner is None:
            return [pod.record.ref for pod in self.classes[pod_class].values()]
        return (self._roots[pod_class],)

    def of_template(self, holder: ObjectRef) -> ObjectRef:
        """Return the workload that a template belongs to."""
        return self._roots[holder]

    def pods_of(self, workload: ObjectRef) -> Iterator[RetainedPod]:
        """Yield the pods of a workload that are not finished."""
        for pod_class in self._classes_of.get(workload, ()):
            yield from self.classes[pod_class].values()
        pod = self.pods.get(workload.name) if workload.kind == "Pod" else None
        if pod is not None and pod.counts and pod.record.pod_class.owner is None:
            yield pod

    def templates_of(self, workload: ObjectRef) -> Iterable[Template]:
        """Return the templates of a workload."""
        return self._templates_of.get(workload, ())

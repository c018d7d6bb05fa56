"""The engine: run the selected rules on an audit, and complete the report."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from string import Formatter
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.engine.engine import Engine
from kubectl_spread.errors import Fault, Faults
from kubectl_spread.kube.api.content import is_object_name
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import named, sentence
from kubectl_spread.report import model, projections
from kubectl_spread.report.model import FAILED, Severity
from kubectl_spread.report.recommendation import WORKLOADS
from kubectl_spread.rules.inputs import (
    PodsInput,
    RuleInput,
    TemplateInput,
    TermInput,
    WaitingInput,
    WorkloadInput,
    rule_inputs,
)
from kubectl_spread.rules.model import Evidence, Remedy, Rule, SelectedRules, Selection
from kubectl_spread.rules.placement.skews import HARD_SKEW
from kubectl_spread.rules.remedy import (
    NO_FLAGS,
    CommandFlags,
    changed,
    flagged,
    in_file,
    patched,
    replacement,
    uncordon,
)

_UNREAD: Final = ("conflicting", FAILED, "malformed", "unevaluated", "unreadable")
"""Reasons for skipping objects that may have findings."""


class FindingKey(NamedTuple):
    """The code, object and path by which a finding of one report is recognized in another."""

    code: str
    object: ObjectRef
    path: str


def key_of(finding: model.Finding) -> FindingKey:
    """Return the key of a finding."""
    return FindingKey(finding.code, finding.ref, finding.path)


class Baseline(msgspec.Struct, frozen=True):
    """The findings of an earlier report.

    Attributes:
        findings: The severities of the findings by their key, which several findings may share.
    """

    findings: Mapping[FindingKey, tuple[Severity, ...]]

    def knows(self, finding: model.Finding) -> bool:
        """Tell whether the earlier report has a finding, at its severity or a higher one."""
        return any(severity >= finding.severity for severity in self.findings.get(key_of(finding), ()))

    def gone(self, occurring: Container[FindingKey], codes: Container[str], scope: Scope) -> int:
        """Count the earlier findings that no longer occur, as far as this run could repeat them.

        Args:
            occurring: The keys of the present findings, with silenced ones.
            codes: The codes of the rules that ran on everything they need.
            scope: The scope of the run; a finding in another namespace is not gone.
        """
        return sum(
            len(severities)
            for key, severities in self.findings.items()
            if key not in occurring and key.code in codes and scope.covers(key.object.namespace)
        )


def complete(
    audit: Audit,
    cluster: model.Cluster,
    selected: SelectedRules,
    skipped: Mapping[str, int],
    *,
    engine: Engine | None = None,
    baseline: Baseline | None = None,
    flags: CommandFlags = NO_FLAGS,
    faults: Faults | None = None,
) -> model.Report:
    """Return the report of an audit, with the findings of the selected rules that the baseline does not have.

    Args:
        audit: The audit.
        cluster: The cluster of the report.
        selected: The rules.
        skipped: The numbers of objects that were left out, by reason.
        engine: The model of its cluster, where another part of the program asks it too.
        baseline: The findings of an earlier report.
        flags: The flags of commands for what was read, where it is not the current cluster.
        faults: Gets the unexpected errors of rules, which are not raised then.
    """
    unchecked: list[model.Unchecked] = []
    findings = list(_findings(audit, engine, selected, flags, faults=faults, unchecked=unchecked))
    skipped = {**skipped, FAILED: len(unchecked)}
    loud = [finding for finding, silenced in findings if not silenced]
    new = [finding for finding in loud if baseline is None or not baseline.knows(finding)]
    gone = None
    if baseline is not None and _everything_is_evaluated(audit.snapshot.scope, skipped):
        complete_codes = {rule.code for rule in selected.rules if cluster.nodes == "listed" or not rule.needs_nodes}
        gone = baseline.gone({key_of(finding) for finding, _ in findings}, complete_codes, audit.snapshot.scope)
    rows = [projections.constraint_row(row) for row in audit.rows]
    counts = Counter(finding.severity for finding in new)
    return model.Report(
        cluster=cluster,
        constraints=rows,
        groups=[projections.group(group) for group in audit.groups],
        pods=projections.pods(audit),
        findings=sorted(new, key=_finding_order),
        unchecked=unchecked or UNSET,
        summary=model.Summary(
            pods=len(audit.pods),
            pending=sum(not pod.node for pod in audit.pods) or UNSET,
            workloads=audit.workloads,
            without_pods=audit.without_pods or UNSET,
            templates=len(audit.templates) or UNSET,
            template_constraints=sum(len(template.terms) for template in audit.templates) if audit.templates else UNSET,
            constraints=len(rows),
            findings=model.FindingCounts(**{severity.value: counts[severity] for severity in Severity}),
            selected=list(selected.selection.select) or UNSET,
            silenced=len(findings) - len(loud),
            known=UNSET if baseline is None else len(loud) - len(new),
            gone=model.unset_none(gone),
            upgrade=upgrade(audit.context, selected, findings),
            plan=_plan(new, flags) or UNSET,
            skipped={reason: number for reason, number in sorted(skipped.items()) if number},
        ),
    )


def _plan(findings: Iterable[model.Finding], flags: CommandFlags) -> str:
    """Return the command that orders the evictions which hard skews need, as far as these can end; "" for one or none.

    Workloads that are uneven together have the same commands.
    """
    skews = [finding for finding in findings if finding.code == HARD_SKEW.code and finding.own_commands]
    commands = {command for finding in skews for command in finding.own_commands}
    if len(commands) <= 1 and all(int(finding.values["must_go"]) <= 1 for finding in skews):
        return ""
    namespaces = {finding.namespace for finding in skews}
    scope = ("-n", *namespaces) if len(namespaces) == 1 else ("-A",)
    return str(flagged(model.CommandLine(("kubectl", "spread", "plan", *scope)), flags))


def upgrade(
    context: ServerFacts, selected: SelectedRules, findings: Iterable[tuple[model.Finding, bool]]
) -> model.Upgrade | UnsetType:
    """Return the changes that another Kubernetes makes, if all rules about them ran.

    ``findings`` are those of these rules, each with whether it is silenced.
    """
    minors = [behaviour.minor for behaviour in context.extra_checks.upgrade]
    if minors in ([], [context.behaviour.minor]) or not selected.compare:
        return UNSET
    comparing = {rule.code for rule in selected.rules if rule.compares}
    of_upgrade = [
        (finding, silenced)
        for finding, silenced in findings
        if finding.code in comparing and "compared" in finding.values
    ]
    loud = [finding for finding, silenced in of_upgrade if not silenced]
    return model.Upgrade(
        minors=[f"1.{minor}" for minor in minors],
        workloads=len({finding.ref for finding in loud}),
        codes=sorted({finding.code for finding in loud}),
        silenced=len(of_upgrade) - len(loud),
    )


def _everything_is_evaluated(scope: Scope, skipped: Mapping[str, int]) -> bool:
    """Tell whether all pods and templates of the namespaces in scope were read and evaluated."""
    return not (scope.labels or scope.fields or scope.targets or any(skipped.get(reason) for reason in _UNREAD))


def findings_of(audit: Audit, rules: Iterable[Rule], least: Severity) -> list[model.Finding]:
    """Return the findings of some rules at a severity or a higher one, without those that are silenced."""
    selected = SelectedRules(rules, Selection(least=least))
    return [finding for finding, silenced in _findings(audit, None, selected, unchecked=[]) if not silenced]


def _findings(
    audit: Audit,
    engine: Engine | None,
    selected: SelectedRules,
    flags: CommandFlags = NO_FLAGS,
    *,
    faults: Faults | None = None,
    unchecked: list[model.Unchecked],
) -> Iterator[tuple[model.Finding, bool]]:
    """Yield the findings, and whether each is silenced; ``unchecked`` gets the inputs on which a rule failed."""
    reported: dict[tuple[object, ...], ObjectRef | None] = {}
    earlier = _Earlier({}, {}, set())
    engine = engine or Engine(audit.snapshot, audit.context.behaviour)
    uncovered: list[_Result] = []
    for rule_input in rule_inputs(audit, engine, earlier.failing):
        results: list[_Result] = []
        for rule in selected.rules:
            check = rule.check(rule_input)
            if check is None:
                continue
            results_of = partial(_results, rule, check, rule_input, flags, reported)
            if faults is None:
                results += results_of()
            else:
                before = len(faults)
                results += faults.guard(partial(_unanswered, rule, rule_input), results_of, [])
                unchecked += (_failed(fault, rule_input) for fault in faults[before:])
        if results:
            uncovered += _uncovered(results, selected.selection, earlier)
    for result in _patched_once(uncovered, flags):
        yield result.finding, result.silenced


class _Result(NamedTuple):
    """One evidence of a rule on an input, as a finding with its remedy."""

    rule: Rule
    rule_input: RuleInput
    evidence: Evidence
    remedy: Remedy
    finding: model.Finding
    silenced: bool = False


def _patched_once(results: Sequence[_Result], flags: CommandFlags) -> list[_Result]:
    """Return the results, with one patch for all findings of a cause that make the same change in one workload.

    A patch of each constraint would restart the workload as often. They keep their own patches where all together
    would leave pods pending.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    for index, (_, _, _, remedy, finding, silenced) in enumerate(results):
        if remedy.change and finding.commands is not UNSET and not silenced:
            alike.setdefault((finding.group, finding.ref, remedy.change), []).append(index)
    combined = list(results)
    for indices in alike.values():
        # The later constraints come first, because an operation may remove one.
        in_order = sorted((results[index] for index in indices), key=lambda result: result.rule_input.path.order)
        patches = [*{msgspec.json.encode(each.remedy.patch): each.remedy.patch for each in reversed(in_order)}.values()]
        writes = [operation.path for patch in patches for operation in patch if operation.op != "test"]
        if len(patches) == 1 or len(set(writes)) < len(writes):
            continue
        operations = [operation for patch in patches for operation in patch]
        fix = changed(in_order[0].remedy.change, operations, in_order[0].rule_input)
        for index in indices if fix.patch else ():
            rule, rule_input, evidence, _, _, _ = results[index]
            remedy = _remedy(rule, rule_input, msgspec.structs.replace(evidence, fix=fix))
            finding = _finding(rule, rule_input, evidence, remedy, flags)
            combined[index] = results[index]._replace(remedy=remedy, finding=finding)
    return combined


def _results(
    rule: Rule,
    check: Callable[[], Iterator[Evidence]],
    rule_input: RuleInput,
    flags: CommandFlags,
    reported: dict[tuple[object, ...], ObjectRef | None],
) -> list[_Result]:
    """Run the check of a rule on an input."""
    evidences = list(check())
    if not evidences or _is_reported(rule, rule_input, reported):
        return []
    remedies = [_remedy(rule, rule_input, evidence) for evidence in evidences]
    return [
        _Result(rule, rule_input, evidence, remedy, _finding(rule, rule_input, evidence, remedy, flags))
        for evidence, remedy in zip(evidences, remedies, strict=True)
    ]


def _unanswered(rule: Rule, rule_input: RuleInput) -> str:
    """Return the beginning of the message about an error of a rule: which findings are missing."""
    workload = rule_input.workload
    name = f"{named(workload.kind, workload.name)} in namespace {workload.namespace}"
    return f"{rule.code} could not check {rule_input.path} of {name}, so its findings there are missing"


def _failed(fault: Fault, rule_input: RuleInput) -> model.Unchecked:
    workload = rule_input.workload
    return model.Unchecked(
        reason=FAILED,
        namespace=workload.namespace,
        object=projections.workload(workload),
        path=str(rule_input.path),
        message=str(fault),
    )


class _Earlier(NamedTuple):
    """What the findings of earlier inputs say.

    Attributes:
        exposed: The workloads that are lost with a domain of a topology key, with the severities.
        removed: The pods of each workload that a command removes, by name, each with the finding in words.
        failing: The pods of errors.
    """

    exposed: dict[tuple[ObjectRef, str], Severity]
    removed: dict[ObjectRef, dict[str, str]]
    failing: set[ObjectRef]


def _uncovered(results: Sequence[_Result], selection: Selection, earlier: _Earlier) -> Iterator[_Result]:
    """Yield the results of one input that no other finding covers, each with whether it is silenced.

    ``earlier`` gets what these findings say.
    """
    exposed, rule_input = earlier.exposed, results[0].rule_input
    ignored = (*selection.ignore, *_annotated(rule_input))
    silenced = [each.rule.is_named(ignored) or each.finding.severity < selection.least for each in results]
    loud = (result.evidence for result, silent in zip(results, silenced, strict=True) if not silent)
    covered = {code for evidence in loud for code in evidence.covers}
    for result, silent in zip(results, silenced, strict=True):
        rule, _, evidence, remedy, finding, _ = result
        exposure = (rule_input.workload, evidence.exposes)
        is_told = exposure in exposed and exposed[exposure] >= finding.severity
        if rule.code in covered or (isinstance(rule_input, WorkloadInput) and is_told):
            continue
        for key in () if silent else _exposed_keys(rule, rule_input, evidence):
            exposure = (rule_input.workload, key)
            exposed[exposure] = max(exposed.get(exposure, finding.severity), finding.severity)
        if finding.severity is Severity.ERROR:
            earlier.failing.update(ObjectRef(rule_input.namespace, "Pod", pod) for pod in finding.pods)
        if not silent:
            finding = _without_overlap(finding, remedy, rule_input, earlier)
        yield result._replace(finding=finding, silenced=silent)


def _without_overlap(finding: model.Finding, remedy: Remedy, rule_input: RuleInput, earlier: _Earlier) -> model.Finding:
    """Return a finding without commands if one of them removes a pod that an earlier finding removes."""
    removed = () if finding.commands is UNSET else [pod for command in remedy.commands for pod in command.pods]
    findings_by_pod = earlier.removed.setdefault(rule_input.workload, {})
    other = next((findings_by_pod[pod] for pod in removed if pod in findings_by_pod), "")
    if other:
        fix = f"First do what {other} says, which removes some of the same pods, and look again."
        return msgspec.structs.replace(finding, fix=fix, commands=UNSET)
    findings_by_pod.update(dict.fromkeys(removed, f"{finding.code} ({finding.path})"))
    return finding


def _exposed_keys(rule: Rule, rule_input: RuleInput, evidence: Evidence) -> Iterator[str]:
    """Yield the topology keys of the domains with which a finding says that, or why, the workload is lost."""
    if evidence.exposes:
        yield evidence.exposes
    yield from evidence.explains
    for term in rule_input.terms if rule.explains_exposure and isinstance(rule_input, TermInput) else ():
        yield term.topology_key
        if (term.spread or term.anti) and term.topology_key == ZONE:
            # Pods that are spread over zones are not on one node.
            yield HOSTNAME


def _is_reported(rule: Rule, rule_input: RuleInput, reported: dict[tuple[object, ...], ObjectRef | None]) -> bool:
    """Tell whether a rule has reported the pods of this template already, or the template of their direct owner.

    Templates in one object are for different pods. ``reported`` has the holder of the first template, or None for pods.
    """
    if not isinstance(rule_input, TermInput):
        return False
    key = (rule.code, rule_input.workload, rule_input.pod_path)
    holder = rule_input.template.holder if isinstance(rule_input, TemplateInput) else None
    if holder is not None and reported.get(key, holder) != holder:
        return True
    reported.setdefault(key, holder)
    return False


def _annotated(rule_input: RuleInput) -> Iterator[str]:
    """Yield the codes to ignore by annotations on all pods of an input, on its templates, and on their owners."""
    snapshot, (pod_classes, templates) = rule_input.audit.snapshot, _annotated_holders(rule_input)
    if pod_classes:
        yield from sorted(frozenset.intersection(*(frozenset(codes(each.ignored)) for each in pod_classes)))
    chains = [snapshot.ownership.chain(each.namespace, each.owner) for each in pod_classes[:1]]
    chains += map(snapshot.template_owners, templates)
    owners = (annotation for chain in chains for annotation in snapshot.ownership.ignored(chain))
    for annotation in (*(template.ignored for template in templates), *owners):
        yield from codes(annotation)


def _annotated_holders(rule_input: RuleInput) -> tuple[Sequence[PodClass], Sequence[Template]]:
    """Return the classes of the pods of an input, and its templates."""
    match rule_input:
        case WorkloadInput(replicas=replicas):
            return list(dict.fromkeys(pod.pod_class for pod in replicas.pods)), replicas.templates
        case TemplateInput(template=template):
            return (), (template,)
        case WaitingInput(waiting=waiting):
            return list(dict.fromkeys(pod.pod_class for pod in waiting)), ()
        case PodsInput():
            of_rows = [evaluation.pod_class for row in rule_input.rows for evaluation, _ in row.evaluations]
            return of_rows or _classes_by_name(rule_input), ()


def _classes_by_name(rule_input: PodsInput) -> list[PodClass]:
    pod_names = {name for _, pods in (*rule_input.refusals, *rule_input.unknown_fields) for name in pods}
    return [
        pod.pod_class
        for pod in rule_input.audit.pods
        if pod.namespace == rule_input.namespace and pod.name in pod_names
    ]


def codes(annotation: str) -> tuple[str, ...]:
    """Return the codes to ignore in the value of an annotation."""
    return tuple(code.strip() for code in annotation.split(",") if code.strip())


def _finding(
    rule: Rule, rule_input: RuleInput, evidence: Evidence, remedy: Remedy, flags: CommandFlags
) -> model.Finding:
    values = {name: evidence.values[name] for name in sorted(evidence.values)}
    severity = rule.severity if evidence.severity is None else evidence.severity
    message = rule.message.format_map(values)
    return model.Finding(
        code=rule.code,
        name=rule.name,
        severity=severity,
        namespace=rule_input.namespace,
        object=projections.workload(rule_input.workload),
        path=str(rule_input.path),
        pods=list(evidence.pods),
        pod_count=len(evidence.pods),
        pending=len(rule_input.pending.intersection(evidence.pods)) or UNSET,
        message=message,
        values=values,
        fix=sentence(remedy.text + _default_hint(rule_input) + _pointer(rule, severity, remedy, evidence, rule_input)),
        commands=_commands(remedy, rule_input, evidence, flags) or UNSET,
        patch=model.Patch(operations=list(remedy.patch)) if remedy.patch else UNSET,
        group=_group(rule, severity, message, evidence.closed),
        closed=_closed(evidence.closed, flags),
        source=_source(rule_input),
        rows=_rows_of(rule_input, evidence) or UNSET,
    )


def _group(rule: Rule, severity: Severity, message: str, closed: model.ClosedDomains | None) -> str:
    """Return the group of a finding: that of all that wait for the same domains, or of one rule's with its message."""
    name, text = (rule.code, f"{severity} {message}") if closed is None else ("closed", repr(closed))
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _closed(closed: model.ClosedDomains | None, flags: CommandFlags) -> model.ClosedDomains | UnsetType:
    """Return closed domains with the command that opens them, where a cordon is all that closes them."""
    if closed is None:
        return UNSET
    opening = uncordon(closed.nodes) if closed.state == model.CORDONED else ()
    commands = [str(flagged(command, flags)) for command in opening]
    return msgspec.structs.replace(closed, commands=commands or UNSET)


def _remedy(rule: Rule, rule_input: RuleInput, evidence: Evidence) -> Remedy:
    """Return the remedy of a finding, with the commands that replace its pods where the text names ``restart``."""
    fix = evidence.fix or rule.fix
    remedy = fix if isinstance(fix, Remedy) else Remedy(fix)
    number, commands = len(evidence.pods), remedy.commands
    values = {**evidence.values, "these": "this pod" if number == 1 else f"these {number} pods"}
    restarts = any(name == "restart" for _, name, _, _ in Formatter().parse(remedy.text))
    if restarts and isinstance(rule_input, PodsInput):
        replaced = replacement(evidence.pods, rule_input)
        values["restart"], commands = replaced.text, (*commands, *replaced.commands)
    return msgspec.structs.replace(remedy, text=remedy.text.format_map(values), commands=commands)


def _commands(
    remedy: Remedy, rule_input: RuleInput, evidence: Evidence, flags: CommandFlags
) -> list[model.CommandLine]:
    """Return the commands, with the one that applies the patch unless the object is in a file.

    There are none for names that no API server accepts: a file may call a pod ``--all`` or ``../config``.
    """
    commands = list(remedy.commands)
    if remedy.patch and not in_file(rule_input):
        commands.append(patched(rule_input.workload, remedy.patch))
    commands += remedy.after
    names = [rule_input.namespace, rule_input.workload.name, *evidence.pods]
    names += (pod for command in commands for pod in command.pods)
    return [flagged(command, flags) for command in commands] if all(map(is_object_name, names)) else []


def _rows_of(rule_input: RuleInput, evidence: Evidence) -> list[int]:
    """Return the indices of the rows in the report that have any of the pods, in order."""
    if not isinstance(rule_input, PodsInput):
        return []
    if len(rule_input.indices) == 1:
        return list(rule_input.indices)
    pod_names = frozenset(evidence.pods)
    rows_of_report = zip(rule_input.indices, rule_input.rows, strict=False)
    return sorted(index for index, row in rows_of_report if not pod_names.isdisjoint(pod.name for pod in row.pods))


def _source(rule_input: RuleInput) -> model.Source | UnsetType:
    """Return the position of the manifest."""
    if rule_input.manifest is None:
        return UNSET
    position = rule_input.manifest.position
    return model.Source(file=position.source, line=position.line or 1)


def _default_hint(rule_input: RuleInput) -> str:
    """Return a further fix for a default constraint of the scheduler, which is in no pod template."""
    if not (isinstance(rule_input, PodsInput) and rule_input.has_defaults):
        return ""
    return ". This is a default of the scheduler, which topologySpreadConstraints in the pod template replace"


def _pointer(rule: Rule, severity: Severity, remedy: Remedy, evidence: Evidence, rule_input: RuleInput) -> str:
    """Return the command that tries changes, as a sentence that is the same for all workloads.

    There is none where a rule reports what has no effect yet, that nothing can be done, that it is done, or that closed
    domains are to be opened.
    """
    if evidence.closed is not None and remedy.text == evidence.closed.fix:
        return ""
    if remedy.begun or (severity is Severity.INFO and rule.severity is not Severity.INFO):
        return ""
    if not rule.recommends or rule_input.workload.kind not in WORKLOADS or in_file(rule_input):
        return ""
    return ". kubectl spread recommend TYPE/NAME -n NAMESPACE tries changes in simulations"


def _finding_order(finding: model.Finding) -> tuple[object, ...]:
    workload = (finding.namespace, finding.object.kind, finding.object.name)
    return (*workload, FieldPath.parse(finding.path).order, finding.code, finding.pods, finding.message)

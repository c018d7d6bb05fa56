"""A plan as a POSIX shell script, which carries it out with the user's kubectl."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.phrases import plural
from kubectl_spread.render import plan, words
from kubectl_spread.report.plan import PlannedEviction, PlannedWave, SpreadPlan

_MOST_VALUES: Final = 20
"""With more domains than this, only the one that the pod left is a surprise."""
_FUNCTIONS: Final = r"""
refused_for=60  # seconds after which an eviction that a disruption budget refuses is given up
complete_in=60  # seconds in which all pods of an owner have to be ready before one of them is evicted
arrives_in=300  # seconds in which a replacement has to be ready

exec 3>&1
say() { printf '%s\n' "$*" >&3; }
stop() { printf 'stopped: %s\n' "$*" >&2; exit 1; }

# pods NAMESPACE KIND OWNER: print UID, name, node and readiness of the owner's pods that are not terminating.
pods() {
    items=$(k get pods -n "$1" -o go-template='
        {{- range .items}}{{if not .metadata.deletionTimestamp}}{{$pod := .}}
        {{- range .metadata.ownerReferences}}
        {{- .kind}}/{{.name}} {{$pod.metadata.uid}} {{$pod.metadata.name}}
        {{- with $pod.spec.nodeName}} {{.}}{{else}} -{{end}}
        {{- range $pod.status.conditions}}{{if eq .type "Ready"}} {{.status}}{{end}}{{end}}{{"\n"}}
        {{- end}}{{end}}{{end}}') || stop "the pods of namespace $1 cannot be listed"
    printf '%s\n' "$items" | awk -v owner="$2/$3" '$1 == owner { print $2, $3, $4, $5 }'
}

# wait_ready NAMESPACE KIND OWNER NUMBER SECONDS: wait until this number of the owner's pods is ready.
wait_ready() {
    left=$5
    while :; do
        list=$(pods "$1" "$2" "$3") || exit 1
        ready=$(printf '%s\n' "$list" | awk '$4 == "True" { number++ } END { print number + 0 }')
        [ "$ready" -ne "$4" ] || return 0
        [ "$left" -gt 0 ] || stop "$2 $3 in namespace $1 has $ready ready pods, and not $4 as planned"
        sleep 2
        left=$((left - 2))
    done
}

# check NAMESPACE POD UID NODE KIND OWNER NUMBER: print the UIDs of the owner's pods, or "gone" if the pod was replaced.
check() {
    found=$(k get pod "$2" -n "$1" --ignore-not-found -o go-template='
        {{- .metadata.uid}} {{.spec.nodeName}}{{with .metadata.deletionTimestamp}} terminating{{end}}')
    if [ "$found" != "$3 $4" ]; then
        echo gone
    else
        wait_ready "$1" "$5" "$6" "$7" "$complete_in"
        list=$(pods "$1" "$5" "$6") || exit 1
        printf '%s\n' "$list" | awk '{ printf "%s ", $1 }'
    fi
}

# evict NAMESPACE POD UID BEFORE: evict the pod with this UID, unless it is gone.
evict() {
    if [ "$4" = gone ]; then
        say "already gone: $2"
        return 0
    fi
    say "evict $2"
    body='{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"},'
    body=$body'"deleteOptions":{"preconditions":{"uid":"%s"}}}'
    left=$refused_for
    # shellcheck disable=SC2059  # the format is the one above
    until answer=$(printf "$body" "$2" "$1" "$3" |
        k create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f - 2>&1); do
        case $answer in
            *'(NotFound)'* | *'(Conflict)'*)
                say "already gone: $2"
                return 0
                ;;
            *'(TooManyRequests)'*) ;;
            *) stop "pod $2 in namespace $1 cannot be evicted: $answer" ;;
        esac
        [ "$left" -gt 0 ] || stop "a disruption budget does not allow to evict $2 in namespace $1: $answer"
        sleep 2
        left=$((left - 2))
    done
}

# arrive NAMESPACE KIND OWNER NUMBER BEFORE KEY DOMAINS: wait for replacements, and compare their domains with the plan.
arrive() {
    wait_ready "$1" "$2" "$3" "$4" "$arrives_in"
    [ "$5" != gone ] || return 0
    list=$(pods "$1" "$2" "$3") || exit 1
    printf '%s\n' "$list" | while read -r uid name node _; do
        case " $5 " in *" $uid "*) continue ;; esac
        labels=$(k get node "$node" -o go-template='
            {{- range $key, $value := .metadata.labels}}{{$key}}={{$value}}{{"\n"}}{{end}}')
        domain=$(printf '%s\n' "$labels" | awk -F = -v key="$6" '$1 == key { print $2 }')
        case $7 in
            '*') expected=yes ;;
            '!'*) [ "!$domain" = "$7" ] && expected=no || expected=yes ;;
            *) case " $7 " in *" $domain "*) expected=yes ;; *) expected=no ;; esac ;;
        esac
        [ "$expected" = yes ] || stop "$name is in $domain, and the plan expects: $7. Plan again"
        say "$name is ready in $domain"
    done
}
"""


def text(report: SpreadPlan, flags: Sequence[str]) -> str:
    """Return the script of a plan; ``flags`` are kubectl's for the cluster, where it is not the current one."""
    return "\n".join(_lines(report, flags)) + "\n"


def _lines(report: SpreadPlan, flags: Sequence[str]) -> Iterator[str]:
    context = report.cluster.context
    pinned = [*flags, *(["--context", context] if isinstance(context, str) and "--context" not in flags else [])]
    number = report.summary.evictions
    yield "#!/bin/sh"
    yield from map(_comment, plan.header(report))
    yield from map(_comment, plan.remaining(report))
    yield "# It evicts only the pods below. It may be run again: pods that are gone are passed over."
    yield "# shellcheck disable=SC2016  # the text in single quotes is for kubectl and awk"
    yield "set -eu"
    if not number:
        yield "echo 'nothing to evict'"
        return
    yield f'\nk() {{ {shlex.join(["kubectl", *pinned])} "$@"; }}'
    yield _FUNCTIONS
    for index, wave in enumerate(report.waves, 1):
        yield from _wave(index, wave)
    yield _say(f"done: {plural(number, 'eviction')}")


def _say(text: str) -> str:
    return shlex.join(["say", text])


def _comment(text: str) -> str:
    return f"# {' '.join(words.safe(text).split())}"


def _wave(number: int, wave: PlannedWave) -> Iterator[str]:
    """Yield the lines of a wave: all checks, all evictions, and then all waits."""
    yield _say(f"wave {number}: {plural(len(wave.evictions), 'eviction')}")
    steps = list(enumerate(wave.evictions, 1))
    for index, step in steps:
        owner = (step.owner.kind, step.owner.name, str(step.replicas))
        yield f"before{index}=$({shlex.join(['check', step.namespace, step.pod, step.uid, step.node, *owner])})"
    for index, step in steps:
        yield _comment(f"from {step.domain.value} to {plan.destination(step)}: {step.why}")
        yield f'{shlex.join(["evict", step.namespace, step.pod, step.uid])} "$before{index}"'
    for index, step in steps:
        owner = (step.owner.kind, step.owner.name, str(step.replicas))
        arguments = shlex.join(["arrive", step.namespace, *owner])
        yield f'{arguments} "$before{index}" {shlex.join([step.domain.topology_key, _domains(step)])}'
    yield ""


def _domains(step: PlannedEviction) -> str:
    """Return the domains that the plan expects: their values, all but one (``!a``), or any (``*``)."""
    if len(step.to) <= _MOST_VALUES:
        return " ".join(step.to)
    return "*" if step.domain.value in step.to else f"!{step.domain.value}"

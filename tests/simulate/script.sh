#!/bin/sh
# evaluated as Kubernetes 1.37 (newest known; --server-version changes it)
# lose zone c: 2 of 6 nodes, 12 of 36 pods, as of 6 minutes later
# 12 pods of 6 workloads would wait.
# It patches the workloads that main names, waits until their rollouts have ended, and stops at the first that does not,
# with exit status 1. It may be run again: a workload that is patched already has no new rollout.
set -eu

ends_in=600  # seconds in which a rollout has to end
rolled_out=0 # workloads whose rollouts have ended

progress() { printf 'rolled out: %s of %s workloads\n' "$rolled_out" "$planned"; }

# change NAMESPACE NAME TYPE PATCH: patch a workload.
change() {
    answer=$(k patch "$2" -n "$1" --type="$3" -p "$4" 2>&1) || stop "$2 in namespace $1 cannot be patched: $answer"
    say "namespace $1: $answer"
}

# wait_rolled_out NAMESPACE NAME: wait until a rollout has ended.
wait_rolled_out() {
    answer=$(k rollout status "$2" -n "$1" --timeout="${ends_in}s" 2>&1) ||
        stop "the rollout of $2 in namespace $1 has not ended: $answer"
    rolled_out=$((rolled_out + 1))
}
k() { kubectl "$@"; }
planned=6

say() { printf '%s\n' "$*"; }
stop() { printf 'stopped: %s\n%s\n' "$*" "$(progress)" >&2; exit 1; }

# same_cluster UID WHAT: stop unless this is the UID of the namespace kube-system, which no two clusters share.
same_cluster() {
    uid=$(k get namespace kube-system -o go-template='{{.metadata.uid}}') ||
        stop "the namespace kube-system cannot be read, so this may be another cluster than that of the $2"
    [ -n "$1" ] || stop "the files of the $2 do not say which cluster they are from. kubectl uses the cluster whose" \
        "namespace kube-system has the UID $uid. If the $2 is for it, set CLUSTER_UID=$uid and run this again"
    [ "$1" = "$uid" ] || stop "this is not the cluster of the $2: namespace kube-system has the UID $uid, and not $1"
}

# main does all of it; it is called in the last line, so that a part of this script does nothing.
main() {
    same_cluster "${CLUSTER_UID:-}" simulation

    say 'wave 1: 5 workloads'
    change shop deploy/web0 json '[{"op":"test","path":"/spec/template/spec/topologySpreadConstraints/0/topologyKey","value":"topology.kubernetes.io/zone"},{"op":"add","path":"/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy","value":"Honor"}]'
    change shop deploy/web1 json '[{"op":"test","path":"/spec/template/spec/topologySpreadConstraints/0/topologyKey","value":"topology.kubernetes.io/zone"},{"op":"add","path":"/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy","value":"Honor"}]'
    change shop deploy/web2 json '[{"op":"test","path":"/spec/template/spec/topologySpreadConstraints/0/topologyKey","value":"topology.kubernetes.io/zone"},{"op":"add","path":"/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy","value":"Honor"}]'
    change shop deploy/web3 json '[{"op":"test","path":"/spec/template/spec/topologySpreadConstraints/0/topologyKey","value":"topology.kubernetes.io/zone"},{"op":"add","path":"/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy","value":"Honor"}]'
    change shop deploy/web4 json '[{"op":"test","path":"/spec/template/spec/topologySpreadConstraints/0/topologyKey","value":"topology.kubernetes.io/zone"},{"op":"add","path":"/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy","value":"Honor"}]'
    wait_rolled_out shop deploy/web0
    wait_rolled_out shop deploy/web1
    wait_rolled_out shop deploy/web2
    wait_rolled_out shop deploy/web3
    wait_rolled_out shop deploy/web4

    say 'wave 2: 1 workload'
    change shop deploy/web5 json '[{"op":"test","path":"/spec/template/spec/topologySpreadConstraints/0/topologyKey","value":"topology.kubernetes.io/zone"},{"op":"add","path":"/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy","value":"Honor"}]'
    wait_rolled_out shop deploy/web5

    say "done: $rolled_out of $planned workloads rolled out"
} </dev/null  # kubectl does not read a script that comes from a pipe

main

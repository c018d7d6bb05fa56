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

"""A run has room for the frames of its calls, at any depth of the stack."""

from __future__ import annotations

import resource
from collections.abc import Callable

from kubectl_spread.cli import main
from kubectl_spread.frames import in_one_chunk
from kubectl_spread.sources.apiserver import paging

DEPTHS = range(200)
CALLS = 2_000


def deeper(depth: int, work: Callable[[], int]) -> int:
    return deeper(depth - 1, work) if depth else work()


def faults_of_calls() -> int:
    """Return the page faults of calls in a loop: each chunk of frames that is taken from the system is one."""

    def called() -> None:
        pass

    # Its frame is longer than that of one more step of depth, so that it is at the end of a chunk at some depth.
    called.__code__ = called.__code__.replace(co_stacksize=100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        called()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_without_room_a_call_takes_memory_each_time_at_some_depth() -> None:
    assert max(deeper(depth, faults_of_calls) for depth in DEPTHS) >= CALLS


def test_with_room_no_call_does_at_any_depth() -> None:
    most = max(deeper(depth, in_one_chunk(faults_of_calls)) for depth in DEPTHS)
    assert most < CALLS // 10


def test_a_function_keeps_its_name_arguments_and_result() -> None:
    assert in_one_chunk(divmod)(7, 2) == (3, 1)
    assert in_one_chunk(faults_of_calls).__name__ == "faults_of_calls"


def test_a_run_and_its_requests_have_room() -> None:
    """The frame of the command line, and that of the work of each thread that receives a response."""
    plain = faults_of_calls.__code__.co_stacksize
    assert min(main.__code__.co_stacksize, paging._result.__code__.co_stacksize) > 1000 * plain

"""Large buffers are mapped apart from the heap, and the memory of pages is used again."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import Final

import pytest

from kubectl_spread.sources.apiserver.buffers import Bodies

_MAPPED: Final = """
import ctypes
from kubectl_spread.sources.apiserver import buffers

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Info
{before}
first = bytes(8 << 20)
del first
mapped = mallinfo().hblkhd
second = bytes(4 << 20)
print(mallinfo().hblkhd - mapped >= 4 << 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc changes its habit")
@pytest.mark.parametrize(("before", "apart"), [("buffers.keep_apart()", "True"), ("", "False")])
def test_a_second_buffer_is_mapped_too(before: str, apart: str) -> None:
    command = [sys.executable, "-c", _MAPPED.format(before=before)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == apart


def test_the_memory_of_a_page_is_used_again() -> None:
    bodies, body = Bodies(), bytearray(b"page")
    bodies.give(body)
    assert bodies.take() is body
    assert bodies.take() == b""


def test_the_memory_of_a_page_is_not_used_again_while_there_is_a_view_of_it() -> None:
    bodies, body = Bodies(), bytearray(b"page")
    view = memoryview(body)
    bodies.give(body)
    assert bodies.take() is not body
    assert bytes(view) == b"page"

"""Common beginnings and ends of values are written once."""

from __future__ import annotations

import pytest

from kubectl_spread.render.figures import folded


@pytest.mark.parametrize(
    ("values", "text"),
    [
        pytest.param(["a", "b"], "a=0 b=1", id="nothing in common"),
        pytest.param(["eu-central-1a", "eu-central-1b"], "eu-central-1{a=0 b=1}", id="zones"),
        pytest.param(["us-east1-b", "us-east1-c"], "us-east1-{b=0 c=1}", id="zones after a dash"),
        pytest.param(["eu-1", "eu-2"], "eu-1=0 eu-2=1", id="only three characters"),
        pytest.param(["zone-10", "zone-11"], "zone-{10=0 11=1}", id="a number stays whole"),
        pytest.param(["rack-alpha", "rack-alpine"], "rack-{alpha=0 alpine=1}", id="a word stays whole"),
        pytest.param(["zone-1", "zone-1a"], "zone-{1=0 1a=1}", id="one begins with the other"),
        pytest.param(["eu-central-1a"], "eu-central-1a=0", id="only one"),
        pytest.param(["zone-a", '""'], 'zone-a=0 ""=1', id="an empty value"),
        pytest.param(
            ["ip-10-0-1-17.internal", "ip-10-0-2-3.internal"], "ip-10-0-{1-17=0 2-3=1}.internal", id="hosts, both ends"
        ),
        pytest.param(["a.example", "b.example"], "{a=0 b=1}.example", id="hosts, the end"),
    ],
)
def test_common_beginnings_and_ends_are_written_once(values: list[str], text: str) -> None:
    assert folded(values, range(len(values))) == text

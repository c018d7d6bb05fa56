"""Comments that end in a space, which a pattern that is not possessive tries in exponentially many ways."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

from tests.builders import constraint, pod_json

_COMMENTS: Final = "# note \n" * 60
_POD, _OTHER = (json.dumps(pod_json(name, constraints=[constraint()], stored=False)) for name in "pq")
_ANCHORED: Final = """apiVersion: v1
kind: Pod
metadata:
  name: q
  labels: &labels
    app: web
spec:
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: zone
    whenUnsatisfiable: DoNotSchedule
    matchLabelKeys: [rev]
    labelSelector:
      matchLabels:
{comments}        *labels
"""
_TEXTS: Final = {
    "before a document": f"{_COMMENTS}---\n{_POD}\n",
    "between documents": f"---\n{_POD}\n---\n{_COMMENTS}{_OTHER}\n",
    "after the end of one": f"---\n{_POD}\n... \n{_COMMENTS}---\n{_OTHER}\n",
    "after a directive": f"%YAML 1.2\n{_COMMENTS}---\n{_POD}\n",
    "before an alias": _ANCHORED.replace("{comments}", _COMMENTS),
    "before text that is not YAML": f"---\n{_POD}\n---\n{_COMMENTS}]\n",
}


@pytest.mark.parametrize("command", ["check", "merge", "unmerge"])
@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
def test_comments_that_end_in_a_space_take_no_time(command: str, text: str) -> None:
    """The command ends within its time."""
    arguments = [sys.executable, "-m", "kubectl_spread", command, "-f", "-"]
    process = subprocess.run(arguments, input=text, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in process.stderr
    assert process.returncode == (2 if text.endswith("]\n") else 0), process.stderr

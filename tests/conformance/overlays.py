"""Changes to Kubernetes source, for a minor whose own source is not published as a Go module yet.

Each change is the part of a pull request that changes an answer of the oracle. It is applied to the files of an older
version when the oracle is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple


class Change(NamedTuple):
    """Text that a file of k8s.io/kubernetes has exactly once, and the text that a pull request replaces it with."""

    file: str
    before: str
    after: str


_AFFINITY_GATE: Final = "MatchLabelKeysInPodAffinity"
_AFFINITY_ENABLED: Final = f"utilfeature.DefaultFeatureGate.Enabled(features.{_AFFINITY_GATE})"
_GATES: Final = "pkg/features/kube_features.go"
_AFFINITY_STAGES: Final = "".join(
    f"""
		{{Version: version.MustParse("1.{minor}"), Default: {default}, PreRelease: featuregate.{stage}}},"""
    for minor, default, stage in (
        (29, "false", "Alpha"),
        (31, "true", "Beta"),
        (33, "true", "GA, LockToDefault: true"),
    )
)

# https://github.com/kubernetes/kubernetes/pull/141340
_COUNT_EMPTY_SELECTORS: Final = (
    Change(
        "pkg/scheduler/framework/plugins/podtopologyspread/common.go",
        "	if selector.Empty() {\n		return 0\n",
        "	if _, selects := selector.Requirements(); !selects {\n		return 0\n",
    ),
)

# https://github.com/kubernetes/kubernetes/pull/141744
_REMOVE_AFFINITY_GATE: Final = (
    Change(_GATES, f'	{_AFFINITY_GATE} featuregate.Feature = "{_AFFINITY_GATE}"\n', ""),
    Change(_GATES, f"	{_AFFINITY_GATE}: {{{_AFFINITY_STAGES}\n	}},\n", ""),
    Change(_GATES, f"	{_AFFINITY_GATE}: {{}},\n", ""),
    Change("pkg/registry/core/pod/strategy.go", f"!{_AFFINITY_ENABLED} || ", ""),
    Change("pkg/api/pod/util.go", _AFFINITY_ENABLED, "true"),
)

CHANGES: Final[Mapping[int, Sequence[Change]]] = {38: (*_COUNT_EMPTY_SELECTORS, *_REMOVE_AFFINITY_GATE)}
"""Maps a minor to its changes to the version that its oracle is built from."""


def write(changes: Sequence[Change], module: Path, directory: Path) -> dict[str, str]:
    """Write the changed files of ``module`` to ``directory``; map each path to the path of the changed copy.

    Raises:
        ValueError: A file does not have the text of a change exactly once.
    """
    texts: dict[str, str] = {}
    for change in changes:
        text = texts.get(change.file) or (module / change.file).read_text(encoding="utf-8")
        if (number := text.count(change.before)) != 1:
            raise ValueError(f"{change.file} has {number} places, not one, to change: {change.before.strip()}")
        texts[change.file] = text.replace(change.before, change.after)
    replaced = {}
    for file, text in texts.items():
        changed = directory / file
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(text, encoding="utf-8")
        replaced[str(module / file)] = str(changed)
    return replaced

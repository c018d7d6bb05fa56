"""Field paths: the steps from an object to one of its fields.

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/util/validation/field/path.go.
"""

from __future__ import annotations

import re
from typing import Final

_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\]]*)\]|([^.\[\]]+)")


class MapKey(str):
    """A step to the value of a key of a map, which the API writes in brackets."""

    __slots__ = ()


class FieldPath(tuple[str | int, ...]):
    """A path whose text is the API's, such as ``spec.topologySpreadConstraints[0].matchLabelKeys``.

    Its steps are the names of fields, the indices of lists and the keys of maps.
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> FieldPath:
        """Parse the text of a path; the key of a map may not be a number or have a closing bracket."""
        return cls(int(index) if index else MapKey(key) if key else name for index, key, name in _STEP.findall(text))

    def __truediv__(self, step: str | int) -> FieldPath:
        return FieldPath((*self, step))

    def __str__(self) -> str:
        return "".join(f"[{step}]" if isinstance(step, MapKey | int) else f".{step}" for step in self).removeprefix(".")

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer (RFC 6901)."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self)

    @property
    def order(self) -> tuple[tuple[bool, str | int], ...]:
        """A sort key: indices compare as numbers and precede names."""
        return tuple((isinstance(step, str), step) for step in self)

    def is_inside(self, root: FieldPath) -> bool:
        """Tell whether the path is of a field below ``root``."""
        return len(self) > len(root) and self[: len(root)] == root

    def moved(self, root: FieldPath, to: FieldPath) -> FieldPath:
        """Replace the beginning ``root`` with ``to``; other paths are unchanged."""
        return FieldPath((*to, *self[len(root) :])) if self[: len(root)] == root else self


POD_SPEC: Final = FieldPath(("spec",))
"""The path of a pod's spec in the pod."""

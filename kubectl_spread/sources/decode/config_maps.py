"""The status of cluster-autoscaler, which is YAML in a ConfigMap."""

from __future__ import annotations

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.nodeautoscaling import AutoscalerStatus, ConfigMap
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError


def with_status(config_map: ConfigMap) -> ConfigMap:
    """Return the ConfigMap of cluster-autoscaler with its decoded status.

    Raises:
        MalformedFieldError: The status is not YAML, or a field has another type.
    """
    from kubectl_spread.sources.decode import yaml_values  # noqa: PLC0415 - JSON does not wait for it

    path = ("data", "status")
    try:
        documents = yaml_values.read_all(config_map.data.get("status", "").encode(), "status")
        content = msgspec.json.encode(documents[0] if documents else {})
        return msgspec.structs.replace(config_map, status=json_objects.decode(content, AutoscalerStatus))
    except MalformedFieldError as error:
        raise MalformedFieldError((*path, *error.path), error.problem) from error
    except SourceError as error:
        raise MalformedFieldError(path, f"is not YAML ({error})") from error

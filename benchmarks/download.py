"""The bare download: the lists that ``check -A`` reads, page by page, by one curl that throws them away."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.decode.protobuf.decoder import Decoder
from kubectl_spread.sources.decode.resources import NODES, PODS, WORKLOADS, Resource
from tests.controlplane.client import ApiClient

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
JSON: Final = "application/json"
_UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Download:
    """A curl command for all pages of all lists; the tokens are read before, so that curl reads no response."""

    def __init__(self, api: ApiClient, kubeconfig: Path, directory: Path) -> None:
        """Write the credentials of ``kubeconfig`` to ``directory``, where curl finds them."""
        self._api = api
        self._directory = directory
        self._directory.mkdir(exist_ok=True)
        content = json.loads(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        self._options = {
            "cacert": self._write("authority.crt", cluster["certificate-authority-data"]),
            "cert": self._write("client.crt", user["client-certificate-data"]),
            "key": self._write("client.key", user["client-key-data"]),
        }

    def command(
        self,
        accept: str,
        page: int,
        resources: Sequence[Resource[Message]] = (PODS, NODES, *WORKLOADS),
        namespace: str = "",
    ) -> list[str]:
        """Return the command that downloads lists in pages of ``page`` objects, one page after the other."""
        config = self._directory / f"{accept.rpartition('/')[2]}.curl"
        lines = [f'{name} = "{path}"' for name, path in self._options.items()]
        lines += [f'header = "Accept: {accept}"', "silent", "fail"]
        for resource in resources:
            for url in self._urls(resource, page, namespace):
                lines += [f'url = "{url}"', 'output = "/dev/null"']
        config.write_text("\n".join(lines), encoding="utf-8")
        return ["curl", "--config", str(config)]

    def _urls(self, resource: Resource[Message], page: int, namespace: str) -> Iterator[str]:
        query: dict[str, str | int] = {"limit": page}
        if resource is PODS:
            query["fieldSelector"] = _UNFINISHED
        decoder, token = Decoder(resource.type), ""
        while True:
            path = f"{resource.path(namespace)}?{urlencode(query | ({'continue': token} if token else {}))}"
            yield f"{self._api.server}{path}"
            token = decoder.page(self._api.raw(path, PROTOBUF)).metadata.continue_
            if not token:
                return

    def _write(self, name: str, encoded: str) -> Path:
        path = self._directory / name
        path.write_bytes(base64.b64decode(encoded))
        return path

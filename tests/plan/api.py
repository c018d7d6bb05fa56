"""An API server on loopback that has some pods and nodes, and answers evictions as a test says; kubectl talks to it."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests import loopback
from tests.builders import Json

_RESOURCES: Final = {"namespaces": ("Namespace", False), "nodes": ("Node", False), "pods": ("Pod", True)}
_CREATED: Final = 201


class Answer(NamedTuple):
    """An answer to an eviction; the pod is evicted only where ``evicts``, and ``meanwhile`` happens before it."""

    status: int = _CREATED
    body: str = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Success"})
    evicts: bool = False
    meanwhile: Callable[[Api], object] = lambda _: None


EVICTED: Final = Answer(evicts=True)


def refusal(code: int, reason: str, message: str) -> Answer:
    """Return an answer with a Status, as API servers refuse an eviction."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return Answer(code, json.dumps({**status, "message": message, "reason": reason, "code": code}))


class Api:
    """The objects of a cluster, and its answers.

    Attributes:
        evictions: The UIDs of the pods that were really evicted.
        answers: The answers to the next evictions; afterwards pods are evicted.
        places: The nodes of the next replacements; "" for a pod that stays pending, None for no replacement.
        always: An answer to all requests; None for the objects.
    """

    def __init__(self, objects: Sequence[Json], places: Sequence[str | None], uid: str) -> None:
        """Have the pods and nodes of some objects, and a namespace kube-system with a UID."""
        self.lock = threading.Lock()
        self.objects: dict[tuple[str, str], Json] = {
            (each["kind"], each["metadata"]["name"]): deepcopy(each)
            for each in objects
            if each["kind"] in {"Pod", "Node"}
        }
        self.objects["Namespace", "kube-system"] = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "kube-system", "uid": uid},
        }
        self.evictions: list[str] = []
        self.requests: list[str] = []
        self.answers: deque[Answer] = deque()
        self.places = deque(places)
        self.always: Answer | None = None

    def replace(self, name: str) -> None:
        """Delete a pod, and make another one in its place, as its owner does."""
        old = self.objects.pop(("Pod", name))
        place = self.places.popleft() if self.places else None
        if place is None:
            return
        new = deepcopy(old)
        # A StatefulSet's pod has the name of the one before it.
        stable = old["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"
        name = name if stable else f"{name}-new"
        new["metadata"] |= {"name": name, "uid": f"{old['metadata']['uid']}-new"}
        new["spec"].pop("nodeName")
        if place:
            new["spec"]["nodeName"] = place
        new["status"] = {"conditions": [{"type": "Ready", "status": "True" if place else "False"}]}
        self.objects["Pod", name] = new

    def answer(self, method: str, target: str, body: str) -> tuple[int, str]:
        """Return the status and the body of the answer to a request."""
        url = urlsplit(target)
        self.requests.append(f"{method} {url.path}")
        if self.always:
            return self.always.status, self.always.body
        parts = url.path.strip("/").split("/")
        match parts:
            case ["api"]:
                return 200, json.dumps({"kind": "APIVersions", "versions": ["v1"]})
            case ["apis"]:
                return 200, json.dumps({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
            case ["api", "v1"]:
                return 200, json.dumps(_discovery())
            case ["api", "v1", "namespaces", _, "pods", name, "eviction"] if method == "POST":
                return self._evict(name, json.loads(body))
            case ["api", "v1", "namespaces", _, "pods", *rest] | ["api", "v1", *rest]:
                kind = "Pod" if "pods" in parts else _RESOURCES[parts[2]][0]
                name = rest[-1] if rest and rest[-1] not in _RESOURCES else ""
                return self._get(kind, name, parse_qs(url.query).get("labelSelector", [""])[0])
        return 404, json.dumps({"kind": "Status", "reason": "NotFound", "code": 404, "message": "not found"})

    def _get(self, kind: str, name: str, selector: str) -> tuple[int, str]:
        if name:
            if found := self.objects.get((kind, name)):
                return 200, json.dumps(found)
            return 404, refusal(404, "NotFound", f'{kind.lower()}s "{name}" not found').body
        items = [each for (of, _), each in self.objects.items() if of == kind and _selected(each, selector)]
        return 200, json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "metadata": {}, "items": items})

    def _evict(self, name: str, eviction: Json) -> tuple[int, str]:
        answer = self.answers.popleft() if self.answers else EVICTED
        answer.meanwhile(self)
        pod = self.objects.get(("Pod", name))
        if answer.evicts and pod is None:
            return 404, refusal(404, "NotFound", f'pods "{name}" not found').body
        if answer.evicts and pod is not None:
            uid = pod["metadata"]["uid"]
            if uid != eviction["deleteOptions"]["preconditions"]["uid"]:
                conflict = f'Operation cannot be fulfilled on Pod "{name}": the UID in the precondition does not match'
                return 409, refusal(409, "Conflict", conflict).body
            self.evictions.append(uid)
            self.replace(name)
        return answer.status, answer.body


def _selected(item: Json, selector: str) -> bool:
    labels = item["metadata"].get("labels", {})
    for requirement in filter(None, selector.split(",")):
        key, separator, value = requirement.partition("=")
        if separator and key.endswith("!"):
            if labels.get(key[:-1]) == value:
                return False
        elif key not in labels or (separator and labels[key] != value):
            return False
    return True


def _discovery() -> dict[str, Any]:
    verbs = ["get", "list"]
    resources = [
        {"name": name, "singularName": name[:-1], "namespaced": namespaced, "kind": kind, "verbs": verbs}
        for name, (kind, namespaced) in _RESOURCES.items()
    ]
    return {"kind": "APIResourceList", "groupVersion": "v1", "resources": resources}


@contextmanager
def serving(api: Api) -> Iterator[str]:
    """Serve on loopback for as long as the ``with`` block lasts, and yield the URL."""

    class Handler(loopback.QuietRequests, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply("GET")

        def do_POST(self) -> None:
            self._reply("POST")

        def _chunks(self) -> Iterator[bytes]:
            """Yield the parts of a body whose length kubectl does not know, because it comes from a pipe."""
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

        def _reply(self, method: str) -> None:
            body = b"".join(self._chunks()).decode() if method == "POST" else ""
            with api.lock:
                status, text = api.answer(method, self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if text.startswith("<") else "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    with loopback.serving(loopback.QuietServer(Handler)) as port:
        yield f"http://127.0.0.1:{port}"

"""Whatever happens between the plugin and the apiserver, there is a complete report, or none and exit status 2."""

from __future__ import annotations

import time

import pytest

from kubectl_spread.kube.features import NEWEST_MINOR
from tests.e2e.faulty import INCOMPLETE, NAMESPACE, UNEXPECTED, Faulty, assert_complete, assert_refused
from tests.faults import steps
from tests.faults.proxy import Exchange, Step, passed

pytestmark = pytest.mark.e2e


def test_the_proxy_alone_changes_nothing(behind: Faulty) -> None:
    """The proxy itself changes nothing."""
    answer = behind.check()
    assert_complete(answer)
    assert answer.stderr == ""
    assert len(behind.proxy.requests_for("pods")) == 5


PASSING = {
    "429 with Retry-After": steps.answer(429, b"Too many requests, please try again later.", Retry_After="1"),
    "429 without": steps.answer(429, b"Too many requests, please try again later."),
    "500": steps.status(500, "InternalError", "etcdserver: leader changed"),
    "502 with a page of HTML": steps.answer(502, b"<html><body>Bad Gateway</body></html>", "text/html"),
    "503": steps.status(503, "ServiceUnavailable", "apiserver not ready"),
    "503 with a date": steps.answer(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    "504": steps.status(504, "Timeout", "Timeout: request did not complete within the allotted timeout"),
    "reset in the middle of a page": steps.reset,
    "cut off in the middle of a page": steps.cut_off,
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("before", [0, 2], ids=["first page", "third page"])
def test_a_page_is_requested_again_after_a_fault_that_passes(behind: Faulty, fault: Step, before: int) -> None:
    """Its pods are counted once."""
    behind.proxy.script("pods", *[passed] * before, fault, fault)
    assert_complete(behind.check("--request-timeout=30s"))
    tokens = [request.token for request in behind.proxy.requests_for("pods")]
    revisions = [steps.revision(token) for token in tokens if token]
    # Other pages follow a repeated first page only if an object was written in the meantime.
    assert len(tokens) == 7 or (not before and len(set(revisions)) > 1)
    assert len({token for token in tokens if token and steps.revision(token) == max(revisions)}) == 4


def test_a_first_page_may_be_repeated_from_a_later_state(behind: Faulty) -> None:
    """The request that followed its first half is not waited for."""

    def later(exchange: Exchange) -> None:
        behind.cluster.api.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "later-", "namespace": NAMESPACE}}
        )
        passed(exchange)

    for _ in range(5):
        behind.proxy.script("pods", steps.reset, *[later] * 3)
        assert_complete(behind.check("--request-timeout=30s"))


@pytest.mark.parametrize("resource", ["version", "nodes", "replicasets"])
def test_every_request_is_repeated_after_a_fault(behind: Faulty, resource: str) -> None:
    """The requests for pods have tests of their own."""
    behind.proxy.script(resource, steps.reset, PASSING["503"])
    assert_complete(behind.check())
    assert len(behind.proxy.requests_for(resource)) == 3


def test_a_server_newer_than_every_known_minor(behind: Faulty) -> None:
    """The pods are evaluated as the newest known minor does, and stderr, the report and the exit status say so.

    Of that minor only a pre-release is known, which they warn of as well.
    """
    behind.proxy.script("version", steps.edited(lambda version: version.update(minor="99", emulationMinor="99")))
    answer = behind.check()
    cluster = assert_complete(answer, status=2)["cluster"]
    newer, pre_release = cluster["warnings"]
    assert newer.startswith("Kubernetes 1.99 is newer than 1.")
    assert pre_release.startswith(f"Kubernetes 1.{NEWEST_MINOR} is evaluated as its pre-release ")
    assert answer.stderr.splitlines() == [pre_release, f"error: {newer}"]
    assert (cluster["versionSource"], cluster["evaluatedAs"]) == ("live", f"1.{NEWEST_MINOR}")


LASTING = {
    "429": (PASSING["429 with Retry-After"], "Error from server (TooManyRequests): Too many requests, please try"),
    "500": (PASSING["500"], "Error from server (InternalError): etcdserver: leader changed"),
    "502": (PASSING["502 with a page of HTML"], "Error from server: HTTP status 502"),
    "504": (PASSING["504"], "Error from server (Timeout): Timeout: request did not complete"),
    "reset": (steps.reset, "Unable to connect to the server: unexpected EOF"),
    "cut off": (steps.cut_off, "Unable to connect to the server: unexpected EOF"),
}


@pytest.mark.parametrize(("fault", "words"), LASTING.values(), ids=LASTING)
def test_a_fault_that_lasts_ends_the_check_within_the_timeout(behind: Faulty, fault: Step, words: str) -> None:
    """There is no report on a part of the pods."""
    behind.proxy.script("pods", passed, passed, *[fault] * 100)
    started = time.monotonic()
    answer = behind.check("--request-timeout=4s")
    assert time.monotonic() - started < 15
    assert_refused(answer, words, INCOMPLETE)


def test_retries_are_bounded_without_a_timeout(behind: Faulty) -> None:
    """The delay is reported."""
    behind.proxy.script("pods", passed, *[PASSING["503"]] * 100)
    answer = behind.check()
    assert_refused(answer, "Error from server (ServiceUnavailable): apiserver not ready", INCOMPLETE)
    assert len(behind.proxy.requests_for("pods")) == 12
    assert answer.stderr.startswith("The server answers with HTTP status 503; trying again\n")


def test_a_retry_after_of_an_hour_ends_the_check(behind: Faulty) -> None:
    """An hour is too long even without a limit of time."""
    behind.proxy.script("pods", steps.answer(429, b"Come back later.", Retry_After="3600"))
    assert_refused(behind.check(), "Error from server (TooManyRequests): Come back later.", INCOMPLETE)


@pytest.mark.parametrize("step", [steps.silent(4), steps.slow(4)], ids=["silent", "slow"])
def test_slow_answers_are_waited_for_within_the_timeout(behind: Faulty, step: Step) -> None:
    """After the timeout there is no report."""
    behind.proxy.script("pods", passed, step)
    assert_complete(behind.check("--request-timeout=20s"))
    behind.proxy.script("pods", passed, step)
    started = time.monotonic()
    answer = behind.check("--request-timeout=3s")
    assert_refused(answer, "Unable to connect to the server: no answer within 3s", INCOMPLETE)
    assert time.monotonic() - started < 10


FINAL = {
    "a page of HTML with status 200": (
        steps.answer(200, b"<html>Log in</html>", "text/html"),
        f"{UNEXPECTED}not a Kubernetes object (text/html)",
    ),
    "half of a body that says it is all": (
        steps.shortened(),
        f"{UNEXPECTED}not a Kubernetes object (application/vnd.kubernetes.protobuf",
    ),
    "nothing but the first four bytes": (steps.shortened(4), f"{UNEXPECTED}not a Kubernetes object"),
    "an empty body": (steps.shortened(0), f"{UNEXPECTED}not a Kubernetes object"),
    "JSON that is not a list": (steps.answer(200, b"{}", "application/json"), f"{UNEXPECTED}items: is missing"),
    "a redirect": (
        steps.answer(302, Location="https://bob:word@login.example/?token=secret"),
        f"{UNEXPECTED}HTTP status 302, a redirect to https://login.example/ ",
    ),
    "not found": (steps.answer(404, b"404 page not found"), 'the server doesn\'t have a resource type "pods"'),
}


@pytest.mark.parametrize(("fault", "words"), FINAL.values(), ids=FINAL)
@pytest.mark.parametrize("before", [0, 2], ids=["first page", "third page"])
def test_an_answer_that_is_not_a_list_is_refused(behind: Faulty, fault: Step, words: str, before: int) -> None:
    """It is not taken for an empty list, and not requested again."""
    behind.proxy.script("pods", *[passed] * before, fault)
    answer = behind.check()
    assert_refused(answer, words, INCOMPLETE)
    assert "secret" not in answer.stderr
    assert "word" not in answer.stderr

"""An evaluation waits while answers are being sent, but only for a limited time."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from kubectl_spread.app.monitoring.answers import Answers
from kubectl_spread.sources.apiserver.paging import background

LONG = 60.0


def test_an_evaluation_waits_for_the_last_answer() -> None:
    answers = Answers()
    waits = threading.Event()

    def evaluate() -> None:
        let_pass = answers.let_pass(LONG)
        waits.set()
        let_pass()

    with answers.sending():
        with answers.sending():
            evaluating: Future[None] = background(evaluate)
            waits.wait(LONG)
        with pytest.raises(TimeoutError):
            evaluating.result(0.2)
    evaluating.result(LONG)


def test_all_waits_for_slow_readers_take_no_longer_than_they_may() -> None:
    answers = Answers()
    let_pass = answers.let_pass(0.1)

    def evaluate() -> None:
        for _ in range(10_000):
            let_pass()

    with answers.sending():
        background(evaluate).result(LONG)


def test_an_evaluation_without_answers_does_not_wait() -> None:
    answers = Answers()
    with answers.sending():
        pass
    let_pass = answers.let_pass(LONG)
    for _ in range(100):
        let_pass()

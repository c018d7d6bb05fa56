"""The page breaks no rule of axe-core, in either theme, folded and unfolded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.report.model import Report
from tests.audits import reported
from tests.browser.conftest import Open
from tests.browser.test_documents import document_page
from tests.render.test_documents import COMMANDS
from tests.render.test_render import hostile, nothing, several

pytestmark = pytest.mark.browser
_RUN = """
async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.map(
    ({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html).join(" ")}`)
"""


def violations(open_page: Open, axe: str, report: Report | str, **settings: object) -> list[str]:
    """Return the violations that axe-core finds in the page of a report."""
    with open_page(report, **settings) as view:
        view.page.evaluate(axe)
        broken: list[str] = view.page.evaluate(_RUN)
    return broken


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("make", [several, hostile, nothing])
def test_the_page_has_no_violations(open_page: Open, axe: str, make: Callable[[], Audit], theme: str) -> None:
    assert violations(open_page, axe, reported(make()), color_scheme=theme) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", COMMANDS)
def test_the_pages_of_documents_have_no_violations(open_page: Open, axe: str, name: str, theme: str) -> None:
    page = document_page(name)
    for width, height in ((1280, 800), (390, 844)):
        viewport = {"width": width, "height": height}
        assert violations(open_page, axe, page, color_scheme=theme, viewport=viewport) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_folded_page_has_no_violations(open_page: Open, axe: str, large: Report, theme: str) -> None:
    assert violations(open_page, axe, large, color_scheme=theme, viewport={"width": 400, "height": 800}) == []


def test_the_checker_finds_a_seeded_violation(open_page: Open, axe: str) -> None:
    with open_page(reported(several())) as view:
        view.page.evaluate("document.body.append(document.createElement('input'))")
        view.page.evaluate(axe)
        assert any(text.startswith("label:") for text in view.page.evaluate(_RUN))

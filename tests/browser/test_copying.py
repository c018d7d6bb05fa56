"""The buttons that copy commands and lines of manifests."""

from __future__ import annotations

import msgspec
import pytest
from playwright.sync_api import Page, expect

from kubectl_spread.report.model import ManifestLines, Report
from tests.browser import synthetic
from tests.browser.conftest import Open

pytestmark = pytest.mark.browser
COMMAND = "kubectl rollout restart deploy/checkout-service-00000 -n team-00"
HOSTILE = "kubectl delete pod -n 'a\\u202e' '</code><img src=x onerror=alert(1)>' \"$(reboot)\""
WITHOUT_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"
WITHOUT_COPY = "document.execCommand = () => false"


def one(commands: list[str] | None = None, lines: ManifestLines | None = None) -> Report:
    """Return a report with one error."""
    report = synthetic.report(1, pods_each=6, hosts=300, finding_each=1)
    (finding,) = report.findings
    changed = {
        "commands": finding.commands if commands is None else commands,
        "lines": [lines] if lines else msgspec.UNSET,
    }
    return msgspec.structs.replace(report, findings=[msgspec.structs.replace(finding, **changed)])


def pasted(page: Page) -> str:
    """Return the text in the clipboard, pasted into the filter."""
    page.fill("#text", "")
    page.press("#text", "Control+v")
    return page.input_value("#text")


@pytest.mark.parametrize("before", ["", WITHOUT_CLIPBOARD], ids=["clipboard", "without-clipboard"])
def test_a_button_copies_a_command_and_says_so(open_page: Open, before: str) -> None:
    with open_page(one()) as view:
        page = view.page
        page.evaluate(before)
        button = page.get_by_role("button", name="Copy the command").first
        button.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Copied the command")).to_be_focused()
        expect(page.locator("#copied")).to_have_text("Copied the command.")
        expect(page.get_by_role("button", name="Copy the command")).to_be_visible()
        expect(page.locator("#copied")).to_have_text("")
        assert pasted(page) == COMMAND
        assert view.complaints == []


def test_a_command_that_cannot_be_copied_is_selected(open_page: Open) -> None:
    with open_page(one()) as view:
        page = view.page
        page.evaluate(f"{WITHOUT_CLIPBOARD}; {WITHOUT_COPY}")
        page.get_by_role("button", name="Copy the command").first.click()
        expect(page.locator("#copied")).to_contain_text("selected")
        assert page.evaluate("getSelection().toString()") == COMMAND


def test_the_text_of_a_command_is_data(open_page: Open) -> None:
    with open_page(one([HOSTILE])) as view:
        page = view.page
        assert page.locator(".box code").inner_text() == HOSTILE
        assert page.locator("#finding-list img").count() == 0
        page.get_by_role("button", name="Copy the command").click()
        expect(page.get_by_role("button", name="Copied the command")).to_be_visible()
        assert pasted(page) == HOSTILE
        assert (view.requests, view.complaints) == ([], [])


def test_lines_of_a_manifest_are_copied(open_page: Open) -> None:
    lines = ManifestLines(
        file="web.yaml", line=7, action="write here", yaml="minDomains: 3  # </script>\u202e\nmaxSkew: 1"
    )
    with open_page(one([], lines)) as view:
        page = view.page
        text = page.locator(".box.lines code").inner_text()
        assert text.rstrip() == "minDomains: 3  # </script>\\u202e\nmaxSkew: 1"
        page.get_by_role("button", name="Copy the lines").click()
        expect(page.get_by_role("button", name="Copied the lines")).to_be_visible()

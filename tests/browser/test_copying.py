"""The buttons that copy commands and patches."""

from __future__ import annotations

import msgspec
import pytest
from playwright.sync_api import Page, expect

from kubectl_spread.report.model import Operation, Patch, Report
from tests.browser import synthetic
from tests.browser.conftest import Open

pytestmark = pytest.mark.browser
COMMAND = "kubectl rollout restart deploy/checkout-service-00000 -n team-00"
HOSTILE = "kubectl delete pod -n 'a\\u202e' '</code><img src=x onerror=alert(1)>' \"$(reboot)\""
WITHOUT_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"
WITHOUT_COPY = "document.execCommand = () => false"


def one(commands: list[str] | None = None, patch: Patch | None = None) -> Report:
    """Return a report with one error."""
    report = synthetic.report(1, pods_each=6, hosts=300, finding_each=1)
    (finding,) = report.findings
    changed = {"commands": finding.commands if commands is None else commands, "patch": patch or msgspec.UNSET}
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


def test_a_patch_is_copied_in_lines(open_page: Open) -> None:
    operation = Operation(op="add", path="/spec/template", value="</script>\u202e")
    with open_page(one([], Patch(operations=[operation]))) as view:
        page = view.page
        text = page.locator(".box.patch code").inner_text()
        assert msgspec.json.decode(text, type=list[Operation]) == [operation]
        assert "\u202e" not in text
        page.get_by_role("button", name="Copy the patch").click()
        expect(page.get_by_role("button", name="Copied the patch")).to_be_visible()


def test_a_patch_is_folded_where_a_command_applies_it(open_page: Open) -> None:
    with open_page(one(patch=Patch(operations=[Operation(op="remove", path="/spec/a")]))) as view:
        expect(view.page.locator(".box.patch")).to_be_hidden()
        view.page.get_by_text("The patch in lines").click()
        expect(view.page.locator(".box.patch")).to_be_visible()

"""The pages of documents: their width, their buttons, and what they are without scripts."""

from __future__ import annotations

from contextlib import chdir
from functools import cache

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.generated import ROOT, run
from tests.render.test_documents import COMMANDS

pytestmark = pytest.mark.browser
_SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
_COMMAND = "kubectl delete node a1 a2"


@cache
def document_page(name: str) -> str:
    """Return the page of a command of ``tests/render/test_documents.py``."""
    with chdir(ROOT):
        return run(*COMMANDS[name], "-o", "html")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_page_is_wider_than_its_window(open_page: Open, name: str, width: int) -> None:
    with open_page(document_page(name), viewport={"width": width, "height": 844}) as view:
        assert view.page.evaluate(_SIDEWAYS) is False
        assert (view.requests, view.complaints) == ([], [])


@pytest.mark.parametrize("name", COMMANDS)
def test_no_table_scrolls_sideways_on_a_phone(open_page: Open, name: str) -> None:
    with open_page(document_page(name), viewport={"width": 390, "height": 844}) as view:
        wide = "[...document.querySelectorAll('.scrolled')].filter((each) => each.scrollWidth > each.clientWidth)"
        assert view.page.evaluate(f"{wide}.length") == 0
        cells = view.page.locator(".numbers tbody td")
        titles = view.page.locator(".numbers thead th").all_text_contents()
        assert {cell.get_attribute("data-column") for cell in cells.all()} <= {*titles}


def test_a_button_copies_a_command(open_page: Open) -> None:
    with open_page(document_page("simulate")) as view:
        button = view.page.get_by_role("button", name="Copy the command").first
        button.click()
        expect(view.page.locator("#copied")).to_have_text("Copied the command.")
        assert view.complaints == []


def test_without_scripts_a_page_has_everything_but_buttons(open_page: Open) -> None:
    with open_page(document_page("simulate"), java_script_enabled=False) as view:
        expect(view.page.get_by_role("heading", level=1)).to_have_text("5 pods of 4 workloads would wait.")
        expect(view.page.get_by_text(_COMMAND, exact=True)).to_be_visible()
        expect(view.page.get_by_role("button")).to_have_count(0)


def test_the_first_screen_of_a_phone_has_the_worst_cause(open_page: Open) -> None:
    with open_page(document_page("simulate"), viewport={"width": 390, "height": 844}) as view:
        place = view.page.locator(".block .message").first.bounding_box()
        assert place is not None
        assert place["y"] + place["height"] < 844

"""The page in a browser: filters, sorting and navigation, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from playwright.sync_api import Page, expect

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.render import figures
from kubectl_spread.report.model import FindingCounts, Report, Severity
from tests.audits import reported
from tests.browser import synthetic
from tests.browser.conftest import Open
from tests.render.test_render import hostile, nothing, several, without_nodes

pytestmark = pytest.mark.browser
BLOCK = "#finding-list > .block"
FINDING = f"{BLOCK} .objects > li:visible"
WORKLOAD = "#workload-list > .workload"
_FOCUSED = "(({ innerText, id, value }) => innerText || id || value)(document.activeElement)"


def texts(page: Page, selector: str) -> list[str]:
    """Return the texts of the visible elements."""
    return [text.strip() for text in page.locator(f"{selector} >> visible=true").all_inner_texts()]


def alike(number: int, severity: Severity = Severity.WARNING) -> Report:
    """Return a report of workloads with the same finding."""
    report = synthetic.report(number, pods_each=6, hosts=300, finding_each=1)
    cause = {"code": "SPR301", "name": "hard-skew", "severity": severity, "group": "SPR301-0"}
    message = "Zone a has 2 pods and zone c has none (skew 2, maxSkew 1)."
    findings = [msgspec.structs.replace(finding, message=message, **cause) for finding in report.findings]
    counts = FindingCounts(**{severity.value: number})
    summary = msgspec.structs.replace(report.summary, findings=counts)
    return msgspec.structs.replace(report, findings=findings, summary=summary)


def command(index: int) -> str:
    """Return the command of a finding in a synthetic report."""
    return f"kubectl rollout restart deploy/checkout-service-{index:05} -n team-{index % 50:02}"


@pytest.mark.parametrize("make", [several, nothing, without_nodes, hostile])
def test_the_page_requests_nothing_and_violates_no_policy(open_page: Open, make: Callable[[], Audit]) -> None:
    with open_page(reported(make())) as view:
        view.page.pdf()
        assert (view.requests, view.complaints) == ([], [])


def test_the_policy_refuses_scripts_styles_and_requests(open_page: Open) -> None:
    with open_page(reported(several())) as view:
        view.page.evaluate(
            """async () => {
                const script = document.createElement("script");
                try { script.textContent = "window.ran = true"; } catch {}
                document.body.append(script, document.createElement("style"));
                document.querySelector("style:last-of-type").append("body { color: red }");
                document.body.setAttribute("style", "color: red");
                await fetch("http://127.0.0.1:9/").catch(() => {});
            }"""
        )
        assert view.page.evaluate("window.ran") is None
        assert view.page.evaluate("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
        assert view.requests == []
        assert len([text for text in view.complaints if "Content Security Policy" in text]) >= 3


def causes(report: Report, *severities: Severity) -> int:
    """Return the number of causes of these severities, which the totals have."""
    return sum(figures.causes(report.findings)[severity] for severity in severities)


def test_findings_are_filtered(open_page: Open, large: Report) -> None:
    with open_page(large) as view:
        page = view.page
        counts = large.summary.findings
        loud = f"{causes(large, Severity.ERROR, Severity.WARNING)} causes, {counts.error + counts.warning}"
        expect(page.locator("#found")).to_have_text(f"{loud} findings, 400 workloads with constraints")
        page.locator("input[value=info]").check()
        expect(page.locator("#found")).to_have_text(
            f"{causes(large, *Severity)} causes, 100 findings, 400 workloads with constraints"
        )
        page.fill("#text", "SERVICE-00004 warning-is-nowhere")
        expect(page.locator("#found")).to_have_text("0 causes, 0 findings, 0 workloads with constraints")
        expect(page.locator("#findings .empty")).to_be_visible()
        page.fill("#text", "service-00004 team-04")
        expect(page.locator("#found")).to_have_text("1 cause, 1 finding, 1 workload with constraints")
        assert texts(page, f"{WORKLOAD} h3") == ["deploy/checkout-service-00004"]
        page.press("#text", "Escape")
        expect(page.locator("#found")).to_have_text(f"{loud} findings, 400 workloads with constraints")
        page.select_option("#namespace", "team-08")
        assert {text.split("/")[0] for text in texts(page, FINDING)} == {"team-08"}
        page.select_option("#namespace", "")
        page.locator("input[value=error]").uncheck()
        assert set(texts(page, f"{BLOCK} .severity")) == {"warning"}


def test_notes_are_shown_on_demand(open_page: Open, large: Report) -> None:
    with open_page(large) as view:
        page = view.page
        assert set(texts(page, f"{BLOCK} .severity")) == {"error", "warning"}
        expect(page.locator("#notes")).to_contain_text(f"{causes(large, Severity.INFO)} notes hidden.")
        page.get_by_role("button", name="Show the notes").click()
        assert set(texts(page, f"{BLOCK} .severity")) == {"error", "warning", "info"}
        expect(page.locator("#notes")).to_be_hidden()
        expect(page.locator("#found")).to_have_text(
            f"{causes(large, *Severity)} causes, 100 findings, 400 workloads with constraints"
        )


def test_an_empty_list_says_why_it_is_empty(open_page: Open) -> None:
    with open_page(alike(5, Severity.INFO)) as view:
        page = view.page
        expect(page.locator("h1")).to_contain_text("No errors or warnings in 5 workloads")
        expect(page.locator("#findings .empty")).to_have_text("No errors or warnings.")
        expect(page.locator("#notes")).to_contain_text("1 note hidden.")
        page.fill("#text", "nowhere")
        expect(page.locator("#findings .empty")).to_have_text("No finding passes the filter.")
    with open_page(reported(nothing())) as view:
        expect(view.page.locator("#findings .empty")).to_have_text("No findings.")


def test_findings_of_one_cause_are_one_paragraph(open_page: Open) -> None:
    with open_page(alike(60)) as view:
        page = view.page
        assert texts(page, f"{BLOCK} h3") == ["warning SPR301 hard-skew: 60 workloads in 50 namespaces"]
        assert page.locator(".message").count() == 1
        assert page.locator(FINDING).count() == 0
        page.get_by_text("All 60 objects").click()
        assert page.locator(FINDING).count() == 60
        assert texts(page, ".box.command code") == [command(0)]
        page.get_by_text("59 more commands").click()
        assert texts(page, ".box.command code") == [command(index) for index in range(60)]


def test_a_filter_unfolds_the_objects_that_pass(open_page: Open) -> None:
    with open_page(alike(60)) as view:
        view.page.fill("#text", "service-00004")
        expect(view.page.locator("#found")).to_have_text("1 cause, 1 finding, 1 workload with constraints")
        expect(view.page.locator(FINDING)).to_contain_text(["team-04/deploy/checkout-service-00004"])


def test_workloads_are_sorted(open_page: Open, large: Report) -> None:
    with open_page(large) as view:
        page = view.page
        words = texts(page, f"{BLOCK} .severity")
        assert words == sorted(words, key=["error", "warning", "info"].index)
        page.select_option("#sort-workloads", "skew")
        skews = texts(page, f"{WORKLOAD} .brief:first-child")
        assert skews == sorted(skews, key=lambda text: -int(text.split()[2].partition("/")[0]))


def test_more_rows_are_drawn_on_demand(open_page: Open) -> None:
    with open_page(alike(60)) as view:
        page = view.page
        assert page.locator(WORKLOAD).count() == 50
        page.click("#workloads > .more")
        assert page.locator(WORKLOAD).count() == 60
        assert page.evaluate("document.activeElement.id") == "workload/team-40/deploy/checkout-service-00040"
        expect(page.locator("#workloads > .more")).to_be_hidden()
        assert page.locator(f"{WORKLOAD} .constraint").count() == 0
        page.click(f"{WORKLOAD}:nth-child(3) > summary")
        expect(page.locator(f"{WORKLOAD} .constraint")).to_have_count(2)


def test_fragments_lead_to_findings_workloads_and_rules(open_page: Open, large: Report) -> None:
    with open_page(large, "cause-20") as view:
        expect(view.page.locator("#cause-20")).to_be_in_viewport()
        expect(view.page.locator("#cause-20")).to_be_focused()
        view.page.fill("#text", "service-00396")
        expect(view.page.locator("#found")).to_contain_text("1 workload")
        view.page.evaluate("location.hash = encodeURIComponent('workload/team-49/deploy/checkout-service-00399')")
        target = view.page.locator("[id='workload/team-49/deploy/checkout-service-00399']")
        expect(target).to_be_in_viewport()
        expect(target).to_have_attribute("open", "")
        expect(view.page.locator("#text")).to_have_value("")
        view.page.evaluate("location.hash = '%'")
        view.page.evaluate("scrollTo(0, 0)")
        view.page.click(f"{BLOCK} h3 a >> nth=0")
        expect(view.page.locator(view.page.evaluate("location.hash"))).to_be_in_viewport()
        assert view.complaints == []


def test_bars_show_counts_and_lines_show_limits(open_page: Open) -> None:
    with open_page(reported(several()), "workload/default/deploy/web") as view:
        bars = view.page.locator(".constraint", has_text="merged 5").filter(has_text="DoNotSchedule").locator(".bars")
        assert [text.split() for text in bars.locator("tbody tr").all_inner_texts()] == [
            ["a", "3", "above", "the", "limit"],
            ["b", "1", "+1"],
        ]
        box = bars.evaluate(
            """table => {
                const bar = table.querySelector(".bar"), width = bar.clientWidth, line = bar.firstChild;
                const at = (side) => Math.round(parseFloat(getComputedStyle(bar, side).left) / width * 100);
                return [at("::before"), at("::after"), Math.round(line.clientWidth / width * 100)];
            }"""
        )
        assert box == [33, 67, 100]


def test_many_domains_are_bars_by_count(open_page: Open) -> None:
    with open_page(synthetic.report(1, pods_each=6, hosts=300, finding_each=1)) as view:
        bars = view.page.locator(".bars").last
        assert [text.split() for text in bars.locator("tbody tr").all_inner_texts()] == [
            ["6", "domains", "1"],
            ["294", "domains", "0"],
        ]
        assert "one more pod may go to 300 domains" in view.page.locator(".legend").last.inner_text()


def test_the_heat_map_shows_workloads_by_domain(open_page: Open) -> None:
    with open_page(reported(several())) as view:
        page = view.page
        assert texts(page, "#heat-head th") == ["Workload", "a", "b"]
        assert page.locator("#heat-list tr", has_text="po/bare").locator("td").all_inner_texts() == ["1", "0"]
        page.select_option("#key", "kubernetes.io/hostname")
        assert texts(page, "#heat-head th") == ["Workload", "a1", "a2", "b1", "x1"]


def test_the_theme_follows_the_system_until_the_user_chooses(open_page: Open) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    with open_page(reported(several()), color_scheme="dark") as view:
        dark = view.page.evaluate(paper)
        view.page.get_by_role("button", name="Light theme").click()
        assert view.page.evaluate(paper) != dark
        view.page.get_by_role("button", name="Dark theme").click()
        assert view.page.evaluate(paper) == dark
        view.page.get_by_role("button", name="Light theme").click()
        view.page.emulate_media(media="print", color_scheme="dark")
        assert view.page.evaluate(paper) == "rgb(255, 255, 255)"


def test_every_control_can_be_used_by_keyboard(open_page: Open, large: Report) -> None:
    with open_page(large) as view:
        page = view.page
        order = []
        for _ in range(10):
            page.keyboard.press("Tab")
            order.append(page.evaluate(_FOCUSED))
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
        assert order[:2] == ["Skip to the findings", "Dark theme"]
        assert order[2:7] == ["Findings", "Workloads", "Heat map", "Rules", "text"]
        assert order[7:] == ["error", "warning", "info"]
        page.keyboard.press("Space")
        expect(page.locator("input[value=info]")).to_be_checked()
        page.locator(f"{WORKLOAD} > summary").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(f"{WORKLOAD} .constraint").first).to_be_visible()


def test_the_skip_link_comes_into_sight_and_skips(open_page: Open) -> None:
    with open_page(reported(several())) as view:
        view.page.keyboard.press("Tab")
        expect(view.page.locator(".skip")).to_be_in_viewport()
        view.page.keyboard.press("Enter")
        expect(view.page.locator("#findings")).to_be_focused()


def test_a_printed_page_is_unfolded(open_page: Open, large: Report) -> None:
    with open_page(large) as view:
        view.page.pdf()
        findings = large.summary.findings
        assert view.page.locator(FINDING).count() == findings.error + findings.warning
        assert view.page.locator(f"{BLOCK} details:not([open])").count() == 0
        assert view.page.locator(f"{WORKLOAD}[open] .constraint").count() == 200


def test_a_phone_shows_the_first_finding_at_once(open_page: Open, large: Report) -> None:
    for report in (large, alike(60), reported(several())):
        with open_page(report, viewport={"width": 390, "height": 844}, has_touch=True) as view:
            page = view.page
            expect(page.locator("h1")).to_be_in_viewport(ratio=1)
            expect(page.locator(f"{BLOCK} h3").first).to_be_in_viewport(ratio=1)
            expect(page.locator(f"{BLOCK} .message").first).to_be_in_viewport(ratio=1)
            expect(page.locator("#text")).to_be_hidden()
            page.get_by_role("button", name="Filter").tap()
            expect(page.locator("#text")).to_be_focused()


def test_narrow_windows_are_not_scrolled_sideways(open_page: Open) -> None:
    for make in (several, hostile):
        with open_page(reported(make()), viewport={"width": 400, "height": 800}) as view:
            assert view.page.evaluate("document.documentElement.scrollWidth") == 400


def test_the_page_can_be_read_without_javascript(open_page: Open, large: Report) -> None:
    with open_page(large, java_script_enabled=False) as view:
        page = view.page
        assert page.locator(f"{BLOCK} .objects > li").count() == 100
        expect(page.locator(".notice")).to_contain_text("no filter")
        expect(page.locator("h1")).to_contain_text("of 400 workloads")
        expect(page.locator(".zones tbody tr")).to_have_count(3)
        expect(page.locator("#filter")).to_be_hidden()
        expect(page.locator("#workloads")).to_be_hidden()
        assert view.requests == []

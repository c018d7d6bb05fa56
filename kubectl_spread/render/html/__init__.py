"""A document or a report as one HTML page, which loads nothing and may run only the script whose hash it has."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kubectl_spread.render import table, words
from kubectl_spread.render.document import Document, Instruction
from kubectl_spread.render.findings import Detail
from kubectl_spread.render.html import records
from kubectl_spread.report.model import Report
from kubectl_spread.rules import RULES

_SHOWN: Final = 8
"""With more objects than this, the list of a cause is folded, and so are further fixes."""
_RULE: Final = re.compile(r"\bSPR\d+\b")
_COPYING: Final = ("element.js", "copying.js", "document.js")
_SCRIPTS: Final = (
    "report.js",
    "element.js",
    "elements.js",
    "copying.js",
    "findings.js",
    "bars.js",
    "workloads.js",
    "heatmap.js",
    "document.js",
    "page.js",
)
_LOADER: Final = PackageLoader("kubectl_spread.render", "html")
_PAGES: Final = Environment(
    loader=_LOADER,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda text: words.safe(text) if isinstance(text, str) and not hasattr(text, "__html__") else text,
)
_PAGES.filters["with_links"] = lambda text: Markup(  # noqa: S704 - the text is escaped before
    _RULE.sub(r'<a href="#\g<0>">\g<0></a>', str(escape(words.safe(text))))
)
_PAGES.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}


def document(answer: Document) -> str:
    """Return a document as an HTML document; its only script, if it has boxes to copy, adds their buttons."""
    script = "\n".join(map(_source, _COPYING)) if _has_boxes(answer) else ""
    return _rendered("document.html", answer, script)


def page(report: Report) -> str:
    """Return a report as an HTML document: its document, and the data from which its script draws the workloads."""
    codes = {finding.code for finding in report.findings}
    namespaces = {row.namespace for row in report.constraints} | {finding.namespace for finding in report.findings}
    return _rendered(
        "page.html",
        table.page(report, Detail.EVERYTHING),
        "\n".join(map(_source, _SCRIPTS)),
        facts=[*records.facts(report.cluster), *records.totals(report)],
        severities=records.severities(report.findings),
        rules=[rule for rule in RULES if rule.code in codes],
        namespaces=sorted(map(words.safe, namespaces - {""})),
        data=records.data(report),
    )


def _has_boxes(answer: Document) -> bool:
    """Tell whether there is anything to copy."""
    of_cards = (each for card in answer.cards for each in card.instructions)
    of_sections = (part for section in answer.sections for part in section.parts if isinstance(part, Instruction))
    steps = (*answer.instructions, *answer.next_steps, *of_cards, *of_sections)
    return any(each.commands or each.lines for each in steps)


def _rendered(template: str, answer: Document, script: str, **values: object) -> str:
    """Return a page from a template, with the policy that allows its style and script."""
    style = _source("page.css") + _source("document.css")
    policy = _policy(style, script)
    page: str = _PAGES.get_template(template).render(
        policy=policy, style=style, script=script, document=answer, shown=_SHOWN, **values
    )
    return page


def _source(name: str) -> str:
    """Return a file of the page."""
    return _LOADER.get_source(_PAGES, name)[0]


def _policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy, which allows only this style, this script and the icon in the page."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

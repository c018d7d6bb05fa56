"""A document or a report as one HTML page, which loads nothing and may run only the script whose hash it has."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kubectl_spread.render import table, words
from kubectl_spread.render.document import Document
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
_POLICY: Final = (
    "default-src 'none'; style-src {style}; script-src {script}; img-src data:; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The Content-Security-Policy, which allows only this style, this script and the icon in the page."""
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
    """Return a document as an HTML document; its only script adds the buttons of boxes to copy."""
    return _rendered("document.html", answer, _COPYING)


def page(report: Report) -> str:
    """Return a report as an HTML document: its document, and the data from which its script draws the workloads."""
    codes = {finding.code for finding in report.findings}
    namespaces = {row.namespace for row in report.constraints} | {finding.namespace for finding in report.findings}
    return _rendered(
        "page.html",
        table.page(report, Detail.EVERYTHING),
        _SCRIPTS,
        facts=[*records.facts(report.cluster), *records.totals(report)],
        severities=records.severities(report.findings),
        rules=[rule for rule in RULES if rule.code in codes],
        namespaces=sorted(namespaces - {""}),
        data=records.data(report),
    )


def _rendered(template: str, answer: Document, scripts: Sequence[str], **values: object) -> str:
    """Return a page from a template, with the policy that allows its style and script."""
    style, script = _source("page.css", "document.css"), _source(*scripts)
    page: str = _PAGES.get_template(template).render(
        policy=_POLICY.format(style=_hash(style), script=_hash(script)),
        style=style,
        script=script,
        document=answer,
        shown=_SHOWN,
        **values,
    )
    return page


def _source(*names: str) -> str:
    """Return files of the page, one after the other."""
    return "\n".join(_LOADER.get_source(_PAGES, name)[0] for name in names)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

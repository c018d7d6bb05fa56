"""A report as one HTML page, which loads nothing and may run only the script whose hash is in its policy."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from kubectl_spread.render import about, table, words
from kubectl_spread.render.html import records
from kubectl_spread.render.html.headline import headline, picture
from kubectl_spread.render.html.records import Texts
from kubectl_spread.report.model import Report
from kubectl_spread.rules import RULES

_FIRST: Final = 50
"""The number of causes that the page shows without JavaScript."""
SHOWN: Final = 8
"""With more objects than this, the list of a cause is folded."""
_SCRIPTS: Final = (
    "report.js",
    "element.js",
    "elements.js",
    "copying.js",
    "findings.js",
    "bars.js",
    "workloads.js",
    "heatmap.js",
    "page.js",
)
LOADER: Final = PackageLoader("kubectl_spread.render", "html")
PAGES: Final = Environment(
    loader=LOADER,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda text: words.safe(text) if isinstance(text, str) and not hasattr(text, "__html__") else text,
)
PAGES.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}


def page(report: Report) -> str:
    """Return a report as an HTML document: its headline, the first findings, and the data for its script."""
    style, script = source("page.css"), "\n".join(map(source, _SCRIPTS))
    findings, cards = records.findings(report), table.page(report).cards
    codes = {finding.code for finding in report.findings}
    return PAGES.get_template("page.html").render(
        policy=policy(style, script),
        style=style,
        script=script,
        cluster=about.label(report.cluster),
        header=about.header(report.cluster, report.summary, report.findings),
        headline=headline(report),
        warnings=words.warnings(report.cluster),
        zones=picture(report),
        facts=[*records.facts(report.cluster), *records.totals(report)],
        severities=records.severities(report.findings),
        cards=cards[:_FIRST],
        number=len(cards),
        shown=SHOWN,
        rules=[rule for rule in RULES if rule.code in codes],
        data=_data(report, findings),
    )


def source(name: str) -> str:
    """Return a file of the page."""
    return LOADER.get_source(PAGES, name)[0]


def policy(style: str, script: str) -> str:
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


def _data(report: Report, findings: list[records.Record]) -> dict[str, object]:
    """Return the data for the script, with each text once."""
    texts = Texts()
    rows = records.rows(report.constraints)
    return {
        "findings": texts.columns(findings),
        "rows": texts.columns(rows.rows),
        "workloads": texts.columns(rows.workloads),
        "domains": texts.columns(rows.domains),
        "texts": texts.texts,
    }

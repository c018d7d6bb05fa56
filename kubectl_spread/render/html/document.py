"""A document as one HTML page, which loads nothing; its only script adds buttons that copy commands."""

from __future__ import annotations

from typing import Final

from kubectl_spread.render.document import Document, Instruction
from kubectl_spread.render.html import PAGES, SHOWN, policy, source

_SCRIPTS: Final = ("element.js", "copying.js", "document.js")


def _has_commands(document: Document) -> bool:
    """Tell whether there is anything to copy."""
    of_cards = (each for card in document.cards for each in card.instructions)
    of_sections = (part for section in document.sections for part in section.parts if isinstance(part, Instruction))
    steps = (*document.instructions, *document.next_steps, *of_cards, *of_sections)
    return any(each.commands or each.lines for each in steps)


def page(document: Document) -> str:
    """Return a document as an HTML document."""
    style = source("page.css") + source("document.css")
    script = "\n".join(map(source, _SCRIPTS)) if _has_commands(document) else ""
    most = max((max(zone.before, zone.after.max) for zone in document.zones), default=0) or 1
    return PAGES.get_template("document.html").render(
        policy=policy(style, script),
        style=style,
        script=script,
        document=document,
        shown=SHOWN,
        shares=[(100 * zone.before // most, 100 * zone.after.max // most) for zone in document.zones],
    )

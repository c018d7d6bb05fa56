"""The sections of ``explain`` about a Deployment during a rollout, with a cordoned zone and pending pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_spread.render import sections
from kubectl_spread.render.sections.domains import domains, placing, waiting
from kubectl_spread.render.sections.terms import rollup
from kubectl_spread.render.terminal import Terminal
from tests.conftest import Golden
from tests.render.uneven import uneven

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(("width", "suffix"), [(None, ""), (80, ".narrow")])
def test_sections_match_their_golden_files(width: int | None, suffix: str, golden: Golden) -> None:
    golden(GOLDEN / f"uneven{suffix}.explain.txt", sections.explain(uneven(), Terminal(width=width)))


@pytest.mark.parametrize("section", [rollup, domains, waiting, placing])
def test_sections_fit_a_narrow_terminal(section: sections.Section) -> None:
    text = section(uneven(), Terminal(width=80))
    titles = [line for line in text.splitlines() if not line.startswith(" ")]
    assert all(len(line) <= 80 for line in text.splitlines() if line not in titles)

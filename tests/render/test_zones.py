"""The picture of the zones on the page."""

from __future__ import annotations

import msgspec

from kubectl_spread.render import html
from kubectl_spread.render.document import Table
from kubectl_spread.render.headline import picture
from kubectl_spread.render.terminal import Cell
from kubectl_spread.report.model import Report, Row, Zone
from tests.render.test_headline import finding, report, row

ZONES = [Zone(zone="a", nodes=2, pods=7), Zone(zone="b", nodes=1, pods=5), Zone(zone="c", nodes=20, pods=0)]


def zoned(rows: list[Row], zones: list[Zone], *, nodes: int = 23, pods: int = 12) -> Report:
    """Return a report of rows, of which the first has a warning."""
    plain = report(rows, [finding("api", rows=[0])] if rows else [], pods=pods)
    return msgspec.structs.replace(
        plain, cluster=msgspec.structs.replace(plain.cluster, node_count=nodes, zone_count=len(zones), zones=zones)
    )


def drawn(of: Report) -> Table:
    made = picture(of)
    assert made is not None
    return made


def test_zones_have_their_nodes_their_pods_and_the_counts_of_the_worst_constraint() -> None:
    made = drawn(zoned([row("web", {"a": 1, "b": 0}), row("api", {"a": 4, "b": 1})], ZONES))
    assert [column.title for column in made.columns] == ["Zone", "Nodes", "Pods", "deploy/api"]
    assert made.rows == [
        [Cell("a"), Cell("2", share=10), Cell("7", share=100), Cell("4", "yellow", share=100)],
        [Cell("b"), Cell("1", share=5), Cell("5", share=71), Cell("1", share=25)],
        [Cell("c"), Cell("20", share=100), Cell("0", share=0), Cell("not eligible")],
    ]
    assert made.note == "The worst constraint is that of shop/deploy/api: skew 3, maxSkew 1."


def test_a_constraint_with_a_finding_is_worse_than_a_larger_skew() -> None:
    made = drawn(zoned([row("api", {"a": 2, "b": 0}), row("web", {"a": 9, "b": 0})], ZONES))
    assert made.columns[-1].title == "deploy/api"


def test_without_a_skew_above_max_skew_no_constraint_is_drawn() -> None:
    made = drawn(zoned([row("api", {"a": 2, "b": 1})], ZONES))
    assert [column.title for column in made.columns] == ["Zone", "Nodes", "Pods"]
    assert [len(row) for row in made.rows] == [3, 3, 3]


def test_the_picture_says_what_it_leaves_out() -> None:
    zones = [Zone(zone=f"z{number}", nodes=1, pods=number) for number in range(8)]
    made = drawn(zoned([], zones, nodes=10, pods=29))
    assert [row[0].text for row in made.rows] == ["z2", "z3", "z4", "z5", "z6", "z7"]
    assert made.note == "Not drawn: 2 more zones, 2 nodes without a zone, 1 pod in no zone."


def test_there_is_no_picture_without_zones() -> None:
    assert picture(report([], [])) is None
    assert picture(zoned([], [])) is None


def test_the_names_of_zones_are_data() -> None:
    zones = [Zone(zone="<b>\u202e", nodes=1, pods=1), Zone(zone="", nodes=1, pods=0)]
    page = html.page(zoned([row("api", {"<b>\u202e": 3, "": 0})], zones))
    assert "<b>" not in page
    assert '<th scope="row">&lt;b&gt;\\u202e</th>' in page
    assert '<th scope="row">&#34;&#34;</th>' in page

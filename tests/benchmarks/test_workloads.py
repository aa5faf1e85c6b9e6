"""The workloads of the comparison: the same bytes every time, and one rule means the same in every language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.peers.answers import Peer
from benchmarks.peers.ours import Ours
from benchmarks.peers.rule_lists import RuleList
from benchmarks.workloads import bridge, dialects, files
from benchmarks.workloads.dialects import Cannot, Condition


def test_a_workload_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    made = [files.folder("bridge-20-10", tmp_path / which) for which in ("one", "two")]
    names = {path.name for path in made[0].iterdir()}
    assert "events.jsonl" in names and "rules-event-ruler.jsonl" in names
    assert all((made[0] / name).read_bytes() == (made[1] / name).read_bytes() for name in names)


def test_a_folder_that_was_not_finished_is_written_again(tmp_path: Path) -> None:
    made = files.folder("stocks-2-5", tmp_path)
    (made / "about.json").unlink()
    (made / "events.jsonl").write_text("half")
    assert files.folder("stocks-2-5", tmp_path) == made
    assert len((made / "events.jsonl").read_text().splitlines()) == 5


def test_nested_events_have_about_nine_hundred_bytes() -> None:
    sizes = [len(json.dumps(e, separators=(",", ":"))) for e in bridge.events(200)]
    assert 800 < sum(sizes) / len(sizes) < 1_000


def test_a_rule_reads_as_each_system_writes_it() -> None:
    rule = (Condition(("detail", "state"), "in", ("on", "off")), Condition(("detail-type",), "prefix", "EC2"))
    assert dialects.headgate(rule) == "detail.state IN ('on', 'off') AND `detail-type` STARTS WITH 'EC2'"
    assert dialects.bridge(rule) == {"detail": {"state": ["on", "off"]}, "detail-type": [{"prefix": "EC2"}]}
    assert dialects.rule_engine(rule) == 'detail&["state"] in ["on", "off"] and detail_type =~ "EC2"'


def test_a_system_that_cannot_say_a_rule_gives_the_reason(tmp_path: Path) -> None:
    with pytest.raises(Cannot, match="flat attributes only"):
        dialects.a_tree((Condition(("a", "b"), "=", 1),))
    about = files.about(files.folder("ranges-5-5", tmp_path))
    assert about["cannot"]["quamina"] == "no ranges of numbers in this version"
    assert not (tmp_path / "ranges-5-5" / "rules-quamina.jsonl").exists()


@pytest.mark.parametrize("name", ["bridge-200-40", "ranges-200-40", "attributes-10-10"])
def test_the_peers_in_python_match_what_we_match(name: str, tmp_path: Path) -> None:
    folder = files.folder(name, tmp_path)
    peers: list[Peer] = [Ours("headgate", folder), Ours("headgate-single", folder)]
    peers += [RuleList("rule-engine", folder), RuleList("json-logic", folder)]
    found = []
    for peer in peers:
        peer.build()
        found.append(peer.matches())
        assert peer.run(2) == 2 * sum(map(len, found[-1]))
    assert any(found[0])
    assert all(other == found[0] for other in found[1:])


def test_a_stock_sequence_is_three_ticks_of_a_name_in_a_row(tmp_path: Path) -> None:
    folder = files.folder("stocks-40-3000", tmp_path)
    ours = Ours("headgate", folder)
    ours.build()
    ticks = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    rises = [json.loads(line) for line in (folder / "rules-esper.jsonl").read_text().splitlines()]
    expected: list[list[int]] = [[] for _ in ticks]
    for number, rise in enumerate(rises):
        mine = [t for t in ticks if t["name"] == rise["name"]]
        for a, b, c in zip(mine, mine[1:], mine[2:], strict=False):
            factor = rise["factor"]
            if a["price"] > rise["above"] and b["price"] > factor * a["price"] and c["price"] > factor * b["price"]:
                expected[c["at"]].append(number)
    assert any(expected)
    assert ours.matches() == expected

"""How shards are spread: even, stable, one owner each, whatever comes and goes."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron.coordination.spread import Moves, deserted, spread
from fleetcron.model.shard import ShardKey

ROUNDS = 3  # after the last change: to give back, to take, and once more for who gave back while others had looked


def keys(*shards: int, region: str = "*") -> tuple[ShardKey, ...]:
    return tuple(ShardKey(region, shard) for shard in shards)


def owned(**shards: list[int]) -> dict[ShardKey, str]:
    return {ShardKey("*", shard): node for node, numbers in shards.items() for shard in numbers}


def sizes(owners: dict[ShardKey, str], region: str = "*") -> list[int]:
    found = [owner for key, owner in owners.items() if key.region == region]
    return sorted((found.count(node) for node in set(found)), reverse=True)


def test_one_node_takes_all() -> None:
    assert spread("a", {"a": "*"}, ["*"], 3, {}) == Moves(take=keys(0, 1, 2))


def test_who_has_its_share_keeps_it() -> None:
    nodes = {"a": "*", "b": "*", "c": "*"}
    owners = owned(a=[0, 1, 2, 3, 4, 15], b=[5, 6, 7, 8, 9], c=[10, 11, 12, 13, 14])
    for node in nodes:
        moves = spread(node, nodes, ["*"], 16, owners)
        assert (moves.take, moves.give_back) == ((), ())
        assert set(moves.keep) == {key for key, owner in owners.items() if owner == node}


def test_a_newcomer_waits_for_what_the_others_give_back() -> None:
    nodes = {"a": "*", "b": "*"}
    owners = owned(a=list(range(16)))
    assert spread("b", nodes, ["*"], 16, owners) == Moves()
    moves = spread("a", nodes, ["*"], 16, owners)
    assert (len(moves.keep), len(moves.give_back)) == (8, 8)


def test_those_who_look_at_the_same_time_do_not_reach_for_the_same_shard() -> None:
    nodes = dict.fromkeys("abcde", "*")
    taken = [key for node in nodes for key in spread(node, nodes, ["*"], 16, {}).take]
    assert sorted(taken) == list(keys(*range(16)))


def test_one_shard_is_a_leader_with_hot_standby() -> None:
    """S0-15: one instance evaluates, the others wait."""
    nodes = dict.fromkeys("abc", "*")
    moves = {node: spread(node, nodes, ["*"], 1, {}) for node in nodes}
    [leader] = [node for node in nodes if moves[node].take]
    owners = {ShardKey("*", 0): leader}
    assert [spread(node, nodes, ["*"], 1, owners) for node in nodes if node != leader] == [Moves(), Moves()]


def test_regions() -> None:
    """A node competes for its region and for jobs without one; a node without a region only for the latter."""
    nodes = {"e1": "eu", "e2": "eu", "u1": "us", "n1": "*"}
    regions = ["*", "eu", "us", "ap"]
    taken = {node: spread(node, nodes, regions, 4, {}).take for node in nodes}
    assert sorted(key for node in nodes for key in taken[node] if key.region == "*") == list(keys(0, 1, 2, 3))
    assert [key for key in taken["u1"] if key.region != "*"] == list(keys(0, 1, 2, 3, region="us"))
    assert {len([key for key in taken[node] if key.region == "eu"]) for node in ("e1", "e2")} == {2}
    assert {key.region for key in taken["n1"]} == {"*"}
    assert deserted(nodes, ["eu", "ap", "*"]) == ["ap"]
    assert deserted({}, ["*"]) == ["*"]


def test_who_leads_one_region_does_not_lead_all() -> None:
    """Among equals another order for every region, or with one shard one node would do all the work."""

    def leads_both(salt: int) -> bool:
        nodes = {f"{name}{salt}": "eu" for name in "ab"}
        return any(len(spread(node, nodes, ["*", "eu"], 1, {}).take) == 2 for node in nodes)

    assert 10 < sum(map(leads_both, range(50))) < 40


def test_who_takes_no_part_gives_everything_back() -> None:
    owners = owned(a=[0, 1], b=[2, 3])
    assert spread("a", {"b": "*"}, ["*"], 4, owners) == Moves(give_back=keys(0, 1))
    assert spread("b", {"b": "*"}, ["*"], 4, owners) == Moves(keep=keys(2, 3))  # it waits until they are free


def test_a_shard_that_stays_free_is_taken_by_whoever_sees_it() -> None:
    nodes = {"a": "*", "sick": "*"}
    owners = owned(a=[0, 1])
    assert spread("a", nodes, ["*"], 4, owners).take == ()
    assert spread("a", nodes, ["*"], 4, owners, frozenset(keys(3))).take == keys(3)


def test_shards_that_no_longer_exist_are_given_back() -> None:
    assert spread("a", {"a": "*"}, ["*"], 2, owned(a=[0, 1, 2])) == Moves(keys(0, 1), (), keys(2))


@dataclass
class World:
    """The leases in the database and the nodes that look at them. Crashed nodes keep their leases for a while."""

    shards: int
    nodes: dict[str, str] = field(default_factory=dict)
    owners: dict[ShardKey, str] = field(default_factory=dict)
    crashed: set[str] = field(default_factory=set)
    moved: int = 0

    @property
    def regions(self) -> list[str]:
        return ["*", *self.nodes.values()]

    def look(self, node: str) -> Moves:
        return spread(node, dict(self.nodes), self.regions, self.shards, dict(self.owners))

    def act(self, node: str, moves: Moves) -> None:
        """As the database does it: only what is free is taken, only what is one's own is given back."""
        for key in moves.give_back:
            assert self.owners[key] == node
            del self.owners[key]
        for key in moves.take:
            assert key.region in ("*", self.nodes[node])
            if key not in self.owners:
                self.owners[key] = node
        self.moved += len(moves.give_back) + len(moves.take)

    def round(self, order: list[str], *, at_once: bool) -> None:
        seen = {node: self.look(node) for node in order} if at_once else {}
        for node in order:
            self.act(node, seen.get(node) or self.look(node))

    def change(self, kind: str, node: str, region: str) -> None:
        if kind == "join" and node not in self.nodes and node not in self.crashed:
            self.nodes[node] = region
        elif kind == "leave" and node in self.nodes:
            del self.nodes[node]
            self.free(node)
        elif kind == "crash" and node in self.nodes:
            del self.nodes[node]
            self.crashed.add(node)

    def free(self, *gone: str) -> None:
        self.owners = {key: owner for key, owner in self.owners.items() if owner not in gone}


NAMES = st.sampled_from([f"n{number}" for number in range(7)])
CHANGES = st.tuples(st.sampled_from(["join", "join", "leave", "crash"]), NAMES, st.sampled_from(["*", "eu", "us"]))


@settings(max_examples=150, deadline=None)
@given(
    shards=st.sampled_from([1, 2, 7, 16]),
    history=st.lists(st.tuples(CHANGES, st.integers(0, 2)), min_size=1, max_size=25),
    at_once=st.booleans(),
    data=st.data(),
)
def test_any_history_ends_in_an_even_spread(
    shards: int, history: list[tuple[tuple[str, str, str], int]], at_once: bool, data: st.DataObject
) -> None:
    world = World(shards)

    def a_round() -> None:
        world.round(data.draw(st.permutations(sorted(world.nodes))), at_once=at_once)

    for change, rounds in history:
        world.change(*change)
        for _ in range(rounds):
            a_round()
    world.free(*world.crashed)  # their leases run out
    for _ in range(ROUNDS):
        a_round()
    for region in set(world.regions) if world.nodes else ():
        counts = {node: 0 for node, home in world.nodes.items() if region in ("*", home)}
        for shard in range(shards):
            counts[world.owners[ShardKey(region, shard)]] += 1  # every shard has an owner who may have it
        assert max(counts.values()) - min(counts.values()) <= 1
    world.moved = 0
    a_round()
    assert world.moved == 0  # nothing moves without a reason


@pytest.mark.parametrize(("before", "after", "moves"), [(2, 3, 5), (3, 4, 4), (4, 3, 4), (1, 2, 8)])
def test_no_more_shards_move_than_must(before: int, after: int, moves: int) -> None:
    world = World(16)
    for number in range(before):
        world.change("join", f"n{number}", "*")
    for _ in range(ROUNDS):
        world.round(sorted(world.nodes), at_once=True)
    assert sizes(world.owners) == {1: [16], 2: [8, 8], 3: [6, 5, 5], 4: [4, 4, 4, 4]}[before]
    owners = dict(world.owners)
    for number in range(min(before, after), max(before, after)):
        world.change("join" if after > before else "leave", f"n{number}", "*")
    for _ in range(ROUNDS):
        world.round(sorted(world.nodes), at_once=True)
    assert sum(world.owners[key] != owner for key, owner in owners.items()) == moves

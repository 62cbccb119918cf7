"""Recovery told as stories: three members, times in milliseconds, nodes that are cut off."""

from __future__ import annotations

from meshlock.algorithms.recovery.node import Pool, RecoveryNode

from meshlock.algorithms.interface import Effect, Message
from meshlock.algorithms.recovery.messages import (
    GRANTS,
    NO_EPOCH,
    Config,
    Epoch,
    Fence,
    Granted,
    Keep,
    Lost,
    Promise,
    Renew,
    Request,
    Still,
    fence_number,
)

LEASE, WAIT = 900, 1000


class Machines:
    """Nodes on a network without delay; who is in ``cut`` neither hears nor is heard."""

    def __init__(self, permits: int = 1, size: int = 3) -> None:
        everybody = tuple(range(size))
        self.pool = Pool(everybody, everybody, permits, LEASE, WAIT)
        self.out: list[Effect] = []
        self.now = 0
        self.cut: set[int] = set()
        self.disk: dict[int, tuple[Epoch, Config | None]] = dict.fromkeys(
            everybody, (NO_EPOCH, None)
        )
        self.boots = dict.fromkeys(everybody, 0)
        self.nodes: dict[int, RecoveryNode] = {}
        self.granted: list[tuple[int, Fence]] = []
        self.lost: list[tuple[int, Fence]] = []
        for me in everybody:
            self.start(me)

    def start(self, me: int) -> None:
        self.boots[me] += 1
        self.nodes[me] = RecoveryNode(me, self.pool, self.out)
        self.nodes[me].start(self.now, self.boots[me], *self.disk[me])

    def crash(self, me: int) -> None:
        del self.nodes[me]

    def carry(self, me: int) -> None:
        """Do what node ``me`` asked for, and what follows from it."""
        work = [(me, effect) for effect in self.out]
        self.out.clear()
        while work:
            node, effect = work.pop(0)
            if isinstance(effect, Keep):
                self.disk[node] = (effect.promised, effect.config)
            elif isinstance(effect, Granted):
                self.granted.append((node, effect.fence))
            elif isinstance(effect, Lost):
                self.lost.append((node, effect.fence))
            elif isinstance(effect, Message) and self.arrives(node, effect.receiver):
                self.nodes[effect.receiver].receive(effect, self.now)
                work += [(effect.receiver, more) for more in self.out]
                self.out.clear()

    def arrives(self, sender: int, receiver: int) -> bool:
        return receiver in self.nodes and not {sender, receiver} & self.cut

    def pass_time(self, ms: int) -> None:
        """In steps of a tenth of a lease; everybody renews and repeats as a runner would."""
        for _ in range(0, ms, 100):
            self.now += 100
            for me in sorted(self.nodes):
                self.nodes[me].wake(self.now)
                self.carry(me)
                self.nodes[me].renew(self.now)
                self.carry(me)
                self.nodes[me].repeat(self.now)
                self.carry(me)

    def ask(self, me: int, want: int = 1) -> None:
        self.nodes[me].request(7, want, 0, self.now)
        self.carry(me)

    def leave(self, me: int) -> None:
        self.nodes[me].release(7, self.now)
        self.carry(me)

    def propose(self, me: int) -> None:
        self.nodes[me].propose(self.now)
        self.carry(me)
        self.nodes[me].close(self.now)
        self.carry(me)

    def holders(self) -> list[int]:
        return [me for me, node in self.nodes.items() if node.usable(self.now)]


def born(permits: int = 1) -> Machines:
    machines = Machines(permits)
    machines.pass_time(WAIT)
    machines.propose(0)
    machines.pass_time(WAIT)
    return machines


def test_birth_is_a_restart_of_everybody_and_nobody_is_the_founder():
    machines = Machines()
    machines.propose(0)
    assert machines.nodes[0].proposal is None  # silent: no word of ours counts yet
    machines.pass_time(WAIT)
    machines.propose(0)
    assert machines.holders() == []  # no token was found: wait
    machines.pass_time(WAIT)
    assert machines.holders() == [0]
    machines.ask(2)
    assert machines.granted == [(2, ((1, 0, 1), 1))]


def test_an_idle_holder_lets_its_client_in_without_a_message():
    machines = born()
    machines.nodes[0].request(7, 1, 0, machines.now)
    assert [type(effect) for effect in machines.out] == [Granted]


def test_a_killed_holder_is_replaced_one_lease_later_and_fences_grow():
    machines = born()
    machines.ask(0)
    machines.crash(0)
    machines.ask(1)
    machines.propose(1)
    machines.pass_time(WAIT - 100)
    assert machines.granted == [(0, ((1, 0, 1), 1))]  # its command may still run
    machines.pass_time(100)
    assert machines.granted[1:] == [(1, ((2, 1, 1), 1))]
    assert machines.granted[1][1] > machines.granted[0][1]


def test_a_living_token_changes_hands_at_once_and_grants_go_on():
    machines = born(permits=2)
    machines.ask(0)
    machines.propose(1)
    assert machines.holders() == [1]
    machines.ask(1)
    assert len(machines.granted) == 2
    machines.pass_time(5 * LEASE)
    assert machines.lost == []


def test_a_holder_that_is_cut_off_stops_before_another_starts():
    machines = born()
    machines.ask(0)
    machines.cut = {0}
    machines.propose(1)
    machines.ask(1)
    machines.pass_time(LEASE)
    assert machines.lost == [(0, ((1, 0, 1), 1))]
    assert len(machines.granted) == 1
    machines.pass_time(WAIT - LEASE)
    assert [node for node, _ in machines.granted] == [0, 1]


def test_the_side_without_a_majority_stands_still_and_heals_by_itself():
    machines = born()
    machines.cut = {1, 2}  # nobody hears anybody
    machines.ask(0)
    machines.pass_time(LEASE)
    assert machines.holders() == []
    machines.cut = set()
    machines.ask(1)
    machines.propose(1)  # the dead token is surrendered, and is as good as new
    assert [node for node, _ in machines.granted] == [0, 1]
    assert machines.lost == [(0, machines.granted[0][1])]


def test_who_left_while_an_epoch_changed_gives_back_in_the_new_one():
    machines = born()
    machines.ask(0)
    machines.nodes[1].propose(machines.now)
    machines.carry(1)  # node 0 has reported its grant ...
    machines.leave(0)  # ... and only then it ends
    machines.nodes[1].close(machines.now)
    machines.carry(1)
    machines.ask(2)
    assert [node for node, _ in machines.granted] == [0, 2]


def test_a_restarted_member_is_silent_and_remembers_its_promise():
    machines = born()
    machines.propose(1)
    machines.crash(2)
    machines.start(2)
    node = machines.nodes[2]
    assert node.promised == (2, 1, 1)
    asked = Renew(2, (2, 1, 1), 1, GRANTS, machines.now)
    node.receive(asked, machines.now)
    assert machines.out == []
    machines.now += WAIT
    node.receive(Renew(2, (1, 0, 1), 1, GRANTS, machines.now), machines.now)
    assert machines.out == []  # lower than what the disk says
    node.receive(asked, machines.now)
    assert [type(effect) for effect in machines.out] == [Still]


def test_a_promise_is_on_disk_before_it_is_given():
    machines = born()
    machines.nodes[1].propose(machines.now)
    to_2 = next(one for one in machines.out if isinstance(one, Message) and one.receiver == 2)
    machines.out.clear()
    machines.nodes[2].receive(to_2, machines.now)
    assert [type(effect) for effect in machines.out] == [Keep, Promise]


def test_a_late_answer_gives_a_lease_from_the_time_of_its_question():
    """Renewals are not numbered: each answer carries the time of what it answers."""
    machines = born()
    node, epoch, then = machines.nodes[0], (1, 0, 1), machines.now
    token = node.token
    assert token is not None
    machines.cut = {1, 2}
    machines.pass_time(LEASE - 100)
    late = Still(0, epoch, 1, then + 300, 1)
    late.sender = 1
    node.receive(late, machines.now)
    assert token.until == then + 300 + LEASE
    older = Still(0, epoch, 1, then + 100, 1)
    older.sender = 2
    node.receive(older, machines.now)
    assert token.until == then + 300 + LEASE


def test_a_node_is_the_same_after_freeze_and_thaw_whatever_the_clock_shows():
    machines = born(permits=2)
    machines.ask(1)
    machines.ask(2)
    machines.nodes[2].propose(machines.now)
    machines.carry(2)
    for me, node in machines.nodes.items():
        state = node.freeze(machines.now)
        twin = RecoveryNode(me, machines.pool, [])
        twin.thaw(state)
        assert twin.freeze(0) == state


def test_a_request_that_comes_back_to_its_sender_asks_for_nothing_more():
    """It was sent when the token was elsewhere, and was handed on to where the token is now:
    here, where another client waits meanwhile, for more than is free."""
    machines = born(permits=3)
    machines.ask(0)
    machines.ask(2)
    node = machines.nodes[2]
    node.request(8, 3, 0, machines.now)
    machines.carry(2)
    assert len(machines.granted) == 2 and node.token is not None and node.token.free == 1
    late = Request(2, node.adopted, (2, node.boot, 1, 9, 0, 9), 0)
    late.sender = 1
    node.receive(late, machines.now)
    machines.carry(2)
    assert len(machines.granted) == 2 and node.token.free == 1
    machines.leave(0)
    machines.leave(2)
    assert [who for who, _ in machines.granted] == [0, 2, 2]


def test_what_others_say_is_handed_on_to_one_node_or_to_nobody():
    """To several, it would come back from each of them, and again, ever more often."""
    out: list[Effect] = []
    stranger = RecoveryNode(3, Pool((0, 1, 2, 3), (0, 1, 2), 1, LEASE, WAIT), out)
    stranger.start(0, 1, NO_EPOCH)
    asked = Request(3, NO_EPOCH, (0, 1, 1, 0, 0, 1), GRANTS)
    asked.sender = 0
    stranger.receive(asked, 0)
    assert out == []
    stranger.request(7, 1, 0, 0)
    assert [effect.receiver for effect in out if isinstance(effect, Message)] == [0, 1, 2]


def test_the_number_of_a_fence_grows_as_the_fence_does() -> None:
    fences = [
        ((4, 9, 1), 0),
        ((4, 9, 1), 7),
        ((5, 2, 1), 1),
        ((5, 2, 1), 2**23 - 1),
        ((2**30 - 1, 0, 3), 1),
    ]
    numbers = [fence_number(fence) for fence in fences]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] < 2**53

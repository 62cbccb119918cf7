"""Recovery at its pace: who proposes when, who is told what, and how soon all is well again."""

from __future__ import annotations

from meshlock.algorithms.recovery.node import Pool, RecoveryNode

from meshlock.algorithms.interface import Effect, Message
from meshlock.algorithms.recovery.messages import (
    NO_EPOCH,
    Config,
    Epoch,
    Fence,
    Granted,
    Keep,
    Lost,
    Misfit,
    Token,
)
from meshlock.algorithms.recovery.pace import Pace

LEASE, WAIT, POLL, NOTICE = 3000, 3060, 100, 500
LITTLE = LEASE // 3


class Machines:
    """Nodes on a network without delay, in milliseconds, and what each knows of who is gone."""

    def __init__(self, permits: int = 1, size: int = 3, others: int = 0) -> None:
        everybody = tuple(range(size + others))
        self.pool = Pool(everybody, everybody[:size], permits, LEASE, WAIT)
        self.out: list[Effect] = []
        self.now = 0
        self.parts: dict[int, int] = dict.fromkeys(everybody, 0)
        self.down_since: dict[int, int] = {}
        self.drop = ""  # kinds of messages that get lost
        self.disk: dict[int, tuple[Epoch, Config | None]] = dict.fromkeys(
            everybody, (NO_EPOCH, None)
        )
        self.boots = dict.fromkeys(everybody, 0)
        self.nodes: dict[int, RecoveryNode] = {}
        self.paces: dict[int, Pace] = {}
        self.granted: list[tuple[int, int, Fence]] = []
        self.lost: list[int] = []
        self.misfits: list[tuple[int, int]] = []
        for me in everybody:
            self.start(me)

    def start(self, me: int, pool: Pool | None = None) -> None:
        self.boots[me] += 1
        self.down_since.pop(me, None)
        self.nodes[me] = RecoveryNode(me, pool or self.pool, self.out)
        self.nodes[me].start(self.now, self.boots[me], *self.disk[me])
        self.paces[me] = Pace(self.nodes[me], 1000)

    def kill(self, me: int) -> None:
        del self.nodes[me], self.paces[me]
        self.down_since[me] = self.now

    def cut(self, *nodes: int) -> None:
        for me in nodes:
            self.parts[me] = 1

    def heal(self) -> None:
        self.parts = dict.fromkeys(self.parts, 0)

    def gone(self, me: int) -> set[int]:
        away = {other for other in self.parts if self.parts[other] != self.parts[me]}
        return away | {other for other, since in self.down_since.items() if self.late(since)}

    def late(self, since: int) -> bool:
        return self.now - since >= NOTICE

    def carry(self, me: int) -> None:
        work = [(me, effect) for effect in self.out]
        self.out.clear()
        while work:
            node, effect = work.pop(0)
            if isinstance(effect, Keep):
                self.disk[node] = (effect.promised, effect.config)
            elif isinstance(effect, Granted):
                self.granted.append((node, effect.client, effect.fence))
            elif isinstance(effect, Lost):
                self.lost.append(node)
            elif isinstance(effect, Misfit):
                self.misfits.append((node, effect.node))
            elif isinstance(effect, Message) and self.arrives(node, effect):
                self.nodes[effect.receiver].receive(effect, self.now)
                work += [(effect.receiver, more) for more in self.out]
                self.out.clear()

    def arrives(self, sender: int, message: Message) -> bool:
        to = message.receiver
        return (
            to in self.nodes and self.parts[to] == self.parts[sender] and message.kind != self.drop
        )

    def run(self, ms: int) -> None:
        for _ in range(0, ms, POLL):
            self.now += POLL
            for me in sorted(self.nodes):
                self.nodes[me].gone = self.gone(me)
                self.paces[me].poll(self.now, (7 * me + self.now // POLL) % 10 / 10)
                self.carry(me)

    def run_until_usable(self) -> int:
        """How long it took."""
        began = self.now
        while not self.holders() and self.now - began < 20 * LEASE:
            self.run(POLL)
        return self.now - began

    def ask(self, me: int, want: int = 1, priority: int = 0, client: int = 7) -> None:
        self.nodes[me].request(client, want, priority, self.now)
        self.carry(me)

    def leave(self, me: int, client: int = 7) -> None:
        self.nodes[me].release(client, self.now)
        self.carry(me)

    def holders(self) -> list[int]:
        return [me for me, node in self.nodes.items() if node.usable(self.now)]

    def free(self) -> int:
        token = self.nodes[self.holders()[0]].token
        assert token is not None
        return token.free

    def epochs(self) -> set[Epoch]:
        return {node.adopted for node in self.nodes.values()}

    def clients(self) -> list[tuple[int, int]]:
        return [(node, client) for node, client, _ in self.granted]


def born(permits: int = 1, size: int = 3, others: int = 0) -> Machines:
    machines = Machines(permits, size, others)
    machines.run_until_usable()
    return machines


# -- how soon --------------------------------------------------------------------------------


def test_a_pool_is_born_after_the_silence_and_one_wait_by_one_proposal():
    machines = Machines(size=5)
    assert machines.run_until_usable() <= 2 * WAIT + LITTLE
    assert machines.epochs() == {(1, 0, 1)}


def test_a_killed_holder_is_replaced_within_two_leases_by_one_proposal():
    machines = born(permits=2, size=5)
    machines.ask(3)
    assert machines.holders() == [3]
    machines.kill(3)
    assert machines.run_until_usable() <= NOTICE + WAIT + LITTLE < 2 * LEASE
    assert {epoch[0] for epoch in machines.epochs()} == {2}


def test_a_killed_holder_that_is_back_at_once_is_missed_all_the_same():
    machines = born(permits=2, size=5)
    machines.ask(3)
    machines.kill(3)
    machines.start(3)
    assert machines.run_until_usable() <= LEASE // 2 + WAIT + LITTLE < 2 * LEASE


def test_the_permits_of_a_killed_client_come_back_and_others_notice_nothing():
    machines = born(permits=3, size=5)
    machines.ask(3)
    machines.ask(2)
    machines.ask(1)
    machines.run(LEASE)  # everybody has heard by now who has the token
    assert machines.holders() == [1] and machines.free() == 0
    machines.kill(3)
    without = 0
    for _ in range(0, NOTICE + WAIT + LITTLE, POLL):
        machines.run(POLL)
        without += machines.holders() != [1]
    assert without == 1  # from the proposal to the poll after it
    assert machines.free() == 1
    assert machines.lost == []


def test_a_token_lost_on_its_way_is_sent_again():
    machines = born(permits=2)
    machines.drop = "TOKEN"
    machines.ask(2)
    machines.drop = ""
    assert machines.holders() == []
    machines.run(LEASE // 3 + POLL)
    assert machines.clients() == [(2, 7)]
    assert machines.epochs() == {(1, 0, 1)}


def test_a_got_that_was_lost_is_given_again_and_the_token_taken_once():
    machines = born(permits=2)
    machines.drop = "GOT"
    machines.ask(2)
    machines.drop = ""
    assert machines.nodes[0].doubt is not None
    machines.run(LEASE // 3 + POLL)
    assert machines.nodes[0].doubt is None
    assert machines.free() == 1


def test_a_holder_whose_proposal_came_to_nothing_hands_its_token_over_all_the_same():
    machines = born(size=5)
    holder, other = machines.nodes[0], machines.nodes[3]
    holder.propose(machines.now)
    machines.out.clear()  # nobody heard it
    other.highest = holder.promised
    other.propose(machines.now)
    machines.carry(3)
    machines.run(POLL)
    assert machines.holders() == [3]


def test_a_holder_that_proposes_twice_loses_nothing():
    machines = born(size=5)
    machines.nodes[0].propose(machines.now)
    machines.out.clear()
    machines.nodes[0].propose(machines.now)
    machines.carry(0)
    machines.run(POLL)
    assert machines.holders() == [0]


# -- no reason -------------------------------------------------------------------------------


def test_waiting_for_ones_turn_is_no_reason_to_propose():
    machines = born()
    machines.ask(0)
    machines.ask(1)
    machines.run(10 * LEASE)
    assert machines.epochs() == {(1, 0, 1)}
    assert machines.clients() == [(0, 7)] and machines.lost == []


def test_a_restarted_member_asks_for_the_ledger_and_needs_no_epoch():
    machines = born(permits=2)
    machines.ask(2)
    machines.ask(0)
    machines.kill(2)
    machines.start(2)
    machines.run(WAIT - POLL)
    assert machines.free() == 0  # a command of its former life may still run
    machines.run(LEASE)
    assert machines.free() == 1
    assert machines.epochs() == {(1, 0, 1)}


def test_who_was_cut_off_comes_back_without_a_new_epoch():
    machines = born(size=5)
    machines.ask(0)
    machines.cut(0, 1)
    machines.run(3 * LEASE)
    assert machines.lost == [0]
    assert machines.nodes[1].promised == (1, 0, 1)  # no majority, no proposal
    (holder,) = machines.holders()
    assert holder not in (0, 1)
    epoch = machines.nodes[holder].adopted
    machines.heal()
    machines.run(2 * LEASE)
    assert machines.epochs() == {epoch}
    machines.ask(1)
    assert machines.clients() == [(0, 7), (1, 7)]


def test_a_paused_member_listens_before_it_proposes():
    machines = born()
    asleep, pace = machines.nodes.pop(0), machines.paces.pop(0)
    machines.down_since[0] = machines.now  # its links time out
    machines.run(4 * LEASE)
    assert machines.epochs() == {(2, 1, 1)}
    del machines.down_since[0]
    machines.nodes[0], machines.paces[0] = asleep, pace
    machines.run(2 * LEASE)
    assert machines.epochs() == {(2, 1, 1)}


# -- those who may not propose ---------------------------------------------------------------


def test_a_client_that_is_no_member_gets_members_to_propose():
    machines = born(permits=2, others=2)
    machines.ask(4)
    machines.ask(3)
    assert machines.holders() == [3]
    machines.kill(4)
    machines.run(NOTICE + WAIT + LITTLE)
    assert machines.free() == 1
    assert machines.lost == []


# -- order -----------------------------------------------------------------------------------


def test_the_most_urgent_is_served_first_whichever_node_it_is_on():
    machines = born()
    machines.ask(0)
    machines.ask(1, client=1)
    machines.ask(2, priority=5, client=2)
    machines.ask(1, priority=9, client=3)
    machines.leave(0)
    machines.leave(1, client=3)
    machines.leave(2, client=2)
    assert machines.clients() == [(0, 7), (1, 3), (2, 2), (1, 1)]


def test_who_wants_less_does_not_overtake():
    machines = born(permits=2)
    machines.ask(0)
    machines.ask(1, want=2)
    machines.ask(2)
    assert machines.clients() == [(0, 7)]
    machines.leave(0)
    machines.leave(1)
    assert machines.clients() == [(0, 7), (1, 7), (2, 7)]


def test_nobody_starves_behind_higher_priorities():
    machines = born()
    machines.ask(0)
    machines.ask(1, client=1)
    for _ in range(101):
        holder = machines.granted[-1][0]
        machines.ask(2 if holder == 0 else 0, priority=1)
        machines.leave(holder)
        if machines.clients()[-1] == (1, 1):
            break
    assert (1, 1) in machines.clients()
    assert len(machines.granted) > 90  # one step of priority is worth a hundred grants


def test_a_request_withdrawn_leaves_no_ghost():
    machines = born(permits=2)
    machines.ask(0)
    machines.ask(1, want=2)
    machines.ask(2)
    assert machines.nodes[1].withdraw(7, machines.now)
    machines.carry(1)
    assert machines.clients() == [(0, 7), (2, 7)]
    assert not machines.nodes[2].withdraw(7, machines.now)  # it has what it wanted


# -- members ---------------------------------------------------------------------------------


def test_a_member_is_added_and_another_removed_while_clients_go_on():
    machines = born(permits=2, size=2, others=1)
    machines.ask(1)
    machines.paces[0].change = (True, 2)
    machines.run(LEASE)
    assert {node.members for node in machines.nodes.values()} == {(0, 1, 2)}
    machines.paces[0].change = (False, 1)
    machines.run(LEASE)
    assert {node.members for node in machines.nodes.values()} == {(0, 2)}
    assert not machines.nodes[1].member
    assert machines.lost == []
    machines.kill(2)
    machines.run(2 * LEASE)
    assert machines.holders() == []  # it counts
    machines.start(2)
    assert machines.nodes[2].members == (0, 2)  # and remembers that it does
    machines.run(4 * LEASE)
    assert machines.free() == 2


def test_the_last_member_is_not_removed():
    machines = born(size=1)
    machines.paces[0].change = (False, 0)
    machines.run(LEASE)
    assert machines.nodes[0].members == (0,)


def test_a_member_with_another_lease_is_refused_and_both_hear_why():
    machines = born(size=5)
    machines.kill(4)
    machines.start(4, Pool((0, 1, 2, 3, 4), (0, 1, 2, 3, 4), 1, 2 * LEASE, 2 * WAIT))
    machines.run(4 * LEASE)
    assert machines.nodes[4].adopted == NO_EPOCH
    assert (4, 0) in machines.misfits
    assert len(machines.holders()) == 1


# -- telling ---------------------------------------------------------------------------------


def test_why_one_waits_is_said_in_a_sentence():
    machines = Machines(size=5)
    machines.ask(1)
    machines.run(1860)
    assert machines.paces[1].why(machines.now) == "restarted, silent for 1.2 s more"
    machines.run(1300)
    assert machines.paces[0].why(machines.now) == ""  # nobody waits here
    machines.ask(0)
    assert (
        machines.paces[0].why(machines.now).startswith("the token was lost; a new one is made in 3")
    )
    machines.run(WAIT)
    assert machines.clients() == [(1, 7)]
    machines.ask(1, client=8)
    machines.ask(1, client=9)
    assert machines.paces[0].why(machines.now) == (
        "node 1 has the token, or knows the way to it; its queue decides"
    )
    assert machines.paces[1].why(machines.now) == "second in the queue"
    machines.leave(1)
    assert machines.paces[0].why(machines.now) == ""
    machines.ask(0, client=8)
    assert machines.paces[0].why(machines.now) == "second in the queue"
    machines.cut(0, 1)
    machines.run(POLL)
    assert machines.paces[0].suspects() == [2, 3, 4]
    assert machines.paces[0].why(machines.now) == (
        "a majority of the members cannot be reached: 2 of 5 can"
    )


def test_all_permits_are_in_use():
    machines = born()
    machines.ask(0)
    machines.ask(0, client=8)
    assert machines.paces[0].why(machines.now) == "all permits are in use"


def test_no_message_is_sent_at_an_idle_holder_and_five_by_a_far_client():
    machines = born()
    machines.nodes[0].request(7, 1, 0, machines.now)
    assert [type(effect) for effect in machines.out] == [Granted]
    machines.carry(0)
    machines.leave(0)
    sent: list[str] = []
    arrives = machines.arrives

    def counted(sender: int, message: Message) -> bool:
        sent.append(message.kind)
        return arrives(sender, message)

    machines.arrives = counted  # type: ignore[method-assign]
    machines.ask(2)
    assert sent == ["REQUEST", Token.kind, "GOT"]
    machines.leave(2)
    assert len(sent) == 3

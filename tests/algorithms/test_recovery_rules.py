"""Every rule of the layer has its story, which ends well; undone, the same story does not.

The numbers are those of :mod:`meshlock.algorithms.recovery.layer`. A story says whether it ended
well.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from layer_machines import LEASE, POLL, WAIT, Machines, born, line, zero_between

from meshlock.algorithms.interface import Effect, Enter, Message
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Copy, Hello
from meshlock.algorithms.recovery.pace import Pace
from meshlock.algorithms.recovery.records import (
    ANY_BOOT,
    Entry,
    Fence,
    FirstLedger,
    Part,
    Parts,
    Seal,
    TokenState,
)
from meshlock.algorithms.recovery.state import HeldToken, Proposal, Terms

Make = type[Layer]

# -- 1: the token's state and lease go with it ---------------------------------------------------


def fences_grow(make: Make) -> bool:
    machines = born("jiang", permits=2, make=make)
    machines.ask(0)
    machines.ask(1)
    numbers = [fence for _, _, fence in machines.granted]
    return numbers == sorted(set(numbers)) and machines.free() == 0


def a_late_token_is_good_for_the_rest_of_its_lease(make: Make) -> bool:
    machines = born("direct", make=make)
    machines.held_back = {"TOKEN"}
    machines.ask(1)
    machines.cut(1)
    machines.change_epoch(2)
    machines.ask(2)
    machines.pass_time(LEASE - 2 * POLL)
    (token,) = machines.kept
    assert token.seal is not None
    token.seal.travelled = LEASE - 2 * POLL
    machines.held_back = set()
    machines.deliver_kept()
    machines.pass_time(WAIT - LEASE + 3 * POLL)
    return not machines.overbooked() and machines.who()[-1:] == [2]


def undone_1() -> list[Make]:
    class SendsNoState(Layer):
        def give(self, message: Message) -> None:
            super().give(message)
            seal = message.seal
            assert seal is not None and seal.state is not None
            state = TokenState(seal.epoch, seal.state.hop, seal.state.free, (), 0)
            message.seal = Seal(seal.epoch, seal.boot, state, seal.left)

    class ForgetsTheWay(Layer):
        def arrives_until(self, seal: Seal) -> int:
            return self.now + seal.left

    return [SendsNoState, ForgetsTheWay]


# -- 2: a fresh node inside, stand-ins, and everybody asks anew ----------------------------------


def kept_grants_count_inside_too(make: Make) -> bool:
    machines = born("direct", permits=2, make=make)
    machines.ask(0)
    machines.change_epoch(1)
    machines.ask(1)
    machines.ask(2)
    waited = machines.who() == [0, 1]
    machines.leave(0)
    return waited and machines.who() == [0, 1, 2]


def who_waits_is_served_in_the_next_epoch(make: Make) -> bool:
    machines = born("direct", make=make)
    machines.ask(0)
    machines.ask(1)
    machines.change_epoch(2)
    machines.leave(0)
    return machines.who() == [0, 1]


def there_is_one_token_inside(make: Make) -> bool:
    machines = born("direct", make=make)
    machines.change_epoch(1)
    return machines.inner_tokens() == machines.holders() == [1]


def undone_2() -> list[Make]:
    class HasNoStandIns(Layer):
        def let_stand_in(self, entry: Entry) -> None:
            pass

    class AsksNothingAnew(Layer):
        def ask_anew(self) -> None:
            pass

    class KeepsTheOldNode(Layer):
        def adopt(self, first: FirstLedger, holder: int) -> None:
            old = self.inner
            super().adopt(first, holder)
            if old is not None:
                self.inner = old

    return [HasNoStandIns, AsksNothingAnew, KeepsTheOldNode]


# -- 3: how a grant of the first ledger ends -----------------------------------------------------


def a_kept_grant_is_given_back(make: Make) -> bool:
    machines = born("direct", make=make)
    machines.ask(0)
    machines.change_epoch(1)
    machines.ask(2)
    machines.leave(0)
    machines.pass_time(LEASE)
    return machines.who() == [0, 2]


def what_lapses_counts_until_its_lease_is_over(make: Make) -> bool:
    machines = born("direct", permits=2, make=make)
    machines.ask(0)
    machines.ask(2)
    machines.cut(2)
    machines.change_epoch(0)
    machines.leave(0)
    machines.ask(1, want=2)
    safe = not machines.overbooked() and machines.who() == [0, 2]
    machines.pass_time(WAIT)
    return safe and machines.who() == [0, 2, 1]


def undone_3() -> list[Make]:
    class StandsInForEver(Layer):
        def leave_stand_in(self, fence: Fence, left: int = 0) -> None:
            pass

    class FreesWhatLapsesAtOnce(Layer):
        def let_lapse(self) -> None:
            if self.token_was_made():
                for fence in sorted(self.lapsing):
                    self.leave_stand_in(fence)

    return [StandsInForEver, FreesWhatLapsesAtOnce]


# -- 4: anybody may hand on the first ledger -----------------------------------------------------


def who_missed_the_ledger_gets_it_from_anybody(make: Make) -> bool:
    machines = born("direct", others=1, make=make)
    machines.propose(1)
    machines.held_back = {"LEDGER"}
    machines.close(1)
    machines.held_back = set()
    for ledger in machines.kept:
        if ledger.receiver != 3:
            machines.deliver(ledger)
    machines.crash(1)
    machines.pass_time(LEASE)
    return machines.nodes[3].adopted.counter == 2


def undone_4() -> list[Make]:
    class KeepsTheLedgerToItself(Layer):
        def inform(self, node: int) -> None:
            pass

    return [KeepsTheLedgerToItself]


# -- 5: HELLO ------------------------------------------------------------------------------------


def links_are_told_to_the_new_node_inside(make: Make) -> bool:
    machines = born("jiang", make=make)
    machines.change_epoch(1)
    machines.ask(2)
    return machines.who() == [2]


def undone_5() -> list[Make]:
    class SaysNoHello(Layer):
        def say_hello(self) -> None:
            for peer in sorted(self.near):
                self.link_inside(peer)

    return [SaysNoHello]


# -- 6: what comes early waits -------------------------------------------------------------------


def what_comes_early_is_not_lost(make: Make) -> bool:
    machines = born("naimi-trehel", make=make, near=zero_between)
    machines.propose(1)
    machines.held_back = {"LEDGER"}
    machines.close(1)
    machines.held_back = set()
    to_0, to_2 = sorted(machines.kept, key=lambda ledger: ledger.receiver)
    machines.deliver(to_2)
    machines.dropped = {"COPY"}  # else it comes in time
    machines.ask(2)  # by way of 0
    machines.dropped = set()
    machines.deliver(to_0)
    machines.pass_time(LEASE)
    return machines.who() == [2]


def undone_6() -> list[Make]:
    class DropsWhatIsEarly(Layer):
        def wait_for_epoch(self, message: Message) -> None:
            self.ask_ledger(message.sender)

    return [DropsWhatIsEarly]


# -- 7: for one epoch, one life, and not after a promise -----------------------------------------


def a_token_for_a_former_life_is_not_taken(make: Make) -> bool:
    machines = born("jiang", make=make)
    machines.held_back = {"TOKEN"}
    machines.ask(1)
    machines.held_back = set()
    (token,) = machines.kept
    machines.deliver(token)
    machines.leave(1)
    machines.ask(2)
    machines.crash(1)
    machines.start(1)
    assert machines.nodes[1].inner is not None
    machines.deliver(token)
    return machines.holders() == [2]


def permits_of_an_old_epoch_do_not_come_back_in_the_new_one(make: Make) -> bool:
    machines = born("direct", permits=2, make=make)
    machines.ask(0)
    machines.ask(1)
    machines.held_back = {"RELEASE"}
    machines.leave(1)
    machines.held_back = set()
    machines.change_epoch(0)
    machines.deliver_kept()
    machines.ask(2)
    return machines.who() == [0, 1, 2] and not machines.at(0).disagrees()


def a_token_is_not_taken_after_a_promise(make: Make) -> bool:
    """Who has promised vouches that it will never have it, and it can be replaced at once."""
    machines = born("direct", make=make)
    machines.held_back = {"TOKEN", "PROPOSE"}
    machines.ask(1)
    machines.propose(2)
    token, to_0, to_1 = machines.kept
    assert (to_0.receiver, to_1.receiver) == (0, 1)
    machines.held_back = set()
    machines.deliver(to_1)
    machines.deliver(token)
    machines.at(1).expire()  # it sends receipts
    machines.carry(1)
    machines.deliver(to_0)
    machines.close(2)
    return machines.who() == [1] and not machines.overbooked()


def undone_7() -> list[Make]:
    class TakesWordsForAFormerLife(Layer):
        def is_addressed(self, seal: Seal) -> bool:
            return True

    class ListensToOtherEpochs(Layer):
        def is_of_our_epoch(self, seal: Seal) -> bool:
            return self.active()

    class ServesAfterAPromise(Layer):
        def active(self) -> bool:
            return self.inner is not None

    return [TakesWordsForAFormerLife, ListensToOtherEpochs, ServesAfterAPromise]


# -- 8: not before the token is made, nor after its lease ----------------------------------------


def a_dead_token_lets_nobody_in(make: Make) -> bool:
    machines = born("direct", make=make)
    machines.cut(0)
    machines.pass_time(LEASE)
    machines.change_epoch(1)
    machines.pass_time(WAIT)
    machines.ask(1)
    machines.ask(0)
    return machines.who() == [1]


def a_lost_token_is_replaced_one_lease_later(make: Make) -> bool:
    machines = born("direct", make=make)
    machines.ask(0)
    machines.cut(0)
    machines.ask(1)
    machines.change_epoch(1)
    machines.pass_time(POLL)
    safe = not machines.overbooked()
    machines.pass_time(WAIT)
    return safe and machines.who() == [0, 1]


def nothing_overtakes_a_token_that_waits(make: Make) -> bool:
    machines = born("jiang", make=make)
    machines.crash(0)
    machines.change_epoch(1)
    machines.ask(2)  # node 1 gives it the token inside, which is not made yet ...
    machines.ask(1)  # ... and asks for it back
    machines.pass_time(WAIT)
    machines.leave(2)
    return machines.who() == [2, 1]


def undone_8() -> list[Make]:
    class LetsInUnderADeadLease(Layer):
        def may_let_in(self, client: int) -> bool:
            return self.token is not None and self.wants(client) <= self.token.free

    class DoesNotWait(Layer):
        def waited_out(self, proposal: Proposal) -> bool:
            return True

    class Overtakes(Layer):
        def flush(self) -> None:
            for effect in self.withheld[:]:
                if isinstance(effect, Message) and effect.tokens() == 0:
                    self.withheld.remove(effect)
                    self.out.append(effect)
            super().flush()

    return [LetsInUnderADeadLease, DoesNotWait, Overtakes]


# -- 9: fences of permits that come back ---------------------------------------------------------


def permits_come_back_with_their_fences(make: Make) -> bool:
    machines = born("direct", permits=2, make=make)
    machines.ask(0)
    machines.ask(1)
    machines.leave(1)
    return machines.holders() == [0] and machines.free() == 1


def permits_may_come_ahead_of_the_token(make: Make) -> bool:
    """To the founder of an epoch, before there is one."""
    machines = born("direct", permits=2, make=make)
    machines.ask(1)
    machines.propose(0)
    machines.held_back = {"CONFIRM"}
    machines.close(0)
    machines.held_back = set()
    machines.leave(1)
    assert machines.holders() == []
    machines.deliver_kept()
    return machines.holders() == [0] and machines.free() == 2


def permits_come_back_where_the_token_is(make: Make) -> bool:
    machines = born("direct", make=make)
    machines.ask(0)
    machines.leave(0)
    return machines.free() == 1


def two_parts_on_their_way(make: Make) -> Machines:
    """Node 0 has the token and one permit, so that it stays; node 1 has three and releases one,
    then another."""
    machines = born("direct", permits=5, make=make)
    machines.ask(0)
    machines.ask(1, want=3)
    machines.held_back = {"RELEASE"}
    for _ in range(2):
        machines.release_some(1)
    machines.held_back = set()
    return machines


def a_part_counts_once(make: Make) -> bool:
    """Its RELEASE is doubled: two of five permits are free then, and not three."""
    machines = two_parts_on_their_way(make)
    for _ in range(2):
        machines.deliver(machines.kept[0])
    machines.ask(0, want=3, client=8)
    return not machines.overbooked() and machines.free() == 2


def parts_come_in_any_order(make: Make) -> bool:
    """Each is struck out when it comes, so that the token agrees with the node inside."""
    machines = two_parts_on_their_way(make)
    agrees = []
    for part in reversed(machines.kept):
        machines.deliver(part)
        agrees.append(not machines.nodes[0].disagrees())
    return agrees == [True, True] and machines.free() == 3


def a_part_counts_once_in_the_next_epoch(make: Make) -> bool:
    """Its founder has sent the token on, and returns what RETURN brings; that is doubled."""
    machines = born("jiang", permits=4, make=make)
    machines.ask(1, want=3)
    machines.change_epoch(2)
    machines.ask(0)
    machines.held_back = {"RELEASE"}
    machines.release_some(1)
    (part,) = machines.kept
    machines.held_back = set()
    for _ in range(2):
        machines.deliver(part)
    machines.ask(0, want=2, client=8)
    return not machines.overbooked() and machines.free() == 1


def undone_9() -> list[Make]:
    class KeepsFencesToItself(Layer):
        def take_pending(self, permits: int) -> Parts:
            return ()

    class AbsorbsNothing(Layer):
        def absorb(self) -> None:
            pass

    class StrikesNothing(Layer):
        def bring_back(self, had: bool, returned: Parts) -> None:
            self.pending.update(returned)

    class StrikesByAmount(Layer):
        def strike(self, part: Part) -> None:
            assert self.token is not None
            left = max(0, self.token.left(part.fence) - part.permits)
            super().strike(Part(part.fence, left, part.permits))

    class StrikesByWhatIsLeft(Layer):
        def strike(self, part: Part) -> None:
            assert self.token is not None
            super().strike(part._replace(permits=self.token.left(part.fence)))

    return [
        *(KeepsFencesToItself, AbsorbsNothing, StrikesNothing),
        *(StrikesByAmount, StrikesByWhatIsLeft, StrikesByAmount),
    ]


# -- 10: a token on a failed link ----------------------------------------------------------------


def its_sender_does_not_take_it_back(make: Make) -> bool:
    machines = born("jiang", make=make)
    machines.held_back = {"TOKEN"}
    machines.ask(2)
    machines.sever(0, 2)
    machines.held_back = set()
    machines.ask(0)
    machines.deliver_kept()
    return not machines.overbooked() and machines.who() == [2]


def a_token_lost_with_its_link_is_sent_again(make: Make) -> bool:
    machines = born("jiang", make=make)
    machines.held_back = {"TOKEN"}
    machines.ask(2)
    machines.sever(0, 2)
    machines.held_back = set()
    machines.pass_time(LEASE // 3)
    return machines.who() == [2]


def a_late_token_is_taken_once(make: Make) -> bool:
    machines = born("jiang", make=make)
    machines.held_back = {"TOKEN"}
    machines.ask(2)
    machines.sever(0, 2)
    machines.held_back = set()
    machines.pass_time(POLL)
    machines.leave(2)
    machines.ask(1)
    machines.deliver_kept()
    return machines.holders() == [1]


def undone_10() -> list[Make]:
    class TakesTheTokenBack(Layer):
        def link_down(self, peer: int) -> None:
            sent, message = self.unaccepted, self.unaccepted_message
            if sent is not None and message is not None and sent.receiver == peer:
                assert self.inner is not None
                self.token = HeldToken(sent.state, self.unaccepted_until)
                self.unaccepted = self.unaccepted_message = None
                self.inner.undelivered(message)
            super().link_down(peer)

    class NeverSendsAgain(Layer):
        def send_again(self) -> None:
            pass

    class TakesATokenTwice(Layer):
        def is_new(self, state: TokenState) -> bool:
            return state.epoch == self.adopted

    return [TakesTheTokenBack, NeverSendsAgain, TakesATokenTwice]


# -- 11: who gave up too late --------------------------------------------------------------------


def who_gave_up_too_late_is_let_in_and_leaves(make: Make) -> bool:
    machines = born("direct", make=make)
    machines.crash(0)
    machines.change_epoch(1)
    machines.ask(1)  # let in inside, but there is no token yet
    machines.withdraw(1)
    machines.pass_time(WAIT)
    machines.ask(2)
    return machines.who() == [2]


def undone_11() -> list[Make]:
    class DropsTheEntry(Layer):
        def withdraw(self, client: int) -> bool:
            could = super().withdraw(client)
            self.leaving.pop(client, None)
            self.withheld = [one for one in self.withheld if not is_entry(one, client)]
            return could

    return [DropsTheEntry]


def is_entry(effect: Effect, client: int) -> bool:
    return isinstance(effect, Enter) and effect.client == client


# -- 12 and 13: who takes part -------------------------------------------------------------------


def a_restarted_founder_makes_no_second_token_inside(make: Make) -> bool:
    machines = born("jiang", make=make)
    machines.ask(2)
    machines.crash(0)
    machines.start(0)
    return machines.inner_tokens() == [2]


def permits_of_a_newcomer_that_forgot_come_back(make: Make) -> bool:
    return newcomer_with_a_former_life(make, forgets=True)


def permits_of_a_newcomer_come_back(make: Make) -> bool:
    return newcomer_with_a_former_life(make, forgets=False)


def newcomer_with_a_former_life(make: Make, forgets: bool) -> bool:
    """Node 3 is not named in the first ledger; its former life got a permit in this epoch."""
    machines = Machines("jiang", 2, 3, 1, make)
    machines.cut(3)
    machines.run_until_usable()
    machines.heal()
    machines.run(LEASE)
    machines.ask(3)
    machines.ask(0)
    assert machines.who() == [3, 0] and len(machines.epochs()) == 1
    machines.crash(3)
    if forgets:
        machines.disk[3] = None
    machines.start(3)
    machines.run(5 * LEASE)
    machines.leave(0)
    machines.run(POLL)
    return machines.free() == 2


def a_late_node_takes_no_token_of_a_former_life(make: Make) -> bool:
    """A node that came late does not know whom it sends the token to, so it is for any life."""
    machines = born("direct", make=make)
    late(machines, 2)
    machines.ask(2)
    machines.leave(2)
    machines.held_back = {"TOKEN"}
    machines.ask(1)
    machines.held_back = set()
    (token,) = machines.kept
    assert token.seal is not None and token.seal.boot == ANY_BOOT
    machines.deliver(token)
    machines.leave(1)
    machines.ask(0)
    late(machines, 1)
    machines.deliver(token)
    return machines.holders() == [0] and len(machines.epochs()) == 1


def a_late_node_says_who_it_is(make: Make) -> bool:
    """Else the token would be sent to its former life, and lost."""
    machines = born("direct", make=make)
    late(machines, 1)
    machines.ask(1)
    return machines.who() == [1] and len(machines.epochs()) == 1


def late(machines: Machines, node: int) -> None:
    """It crashes, and takes part again in the same epoch."""
    machines.crash(node)
    machines.start(node)
    machines.run(LEASE)
    assert machines.nodes[node].inner is not None


def undone_12() -> list[Make]:
    class TakesPartAnyway(Layer):
        def may_take_part(self, first: FirstLedger) -> bool:
            return True

    class DoesNotAskItsDisk(Layer):
        def may_take_part(self, first: FirstLedger) -> bool:
            named = [one.boot for one in first.participants if one.node == self.me]
            return named[0] == self.boot if named else not self.fixed

    return [TakesPartAnyway, DoesNotAskItsDisk]


def undone_13() -> list[Make]:
    class OverlooksItsFormerLife(Layer):
        def is_new_to(self, copy: Copy) -> bool:
            return copy.ledger is not None

    class TakesTokensThatItWasToldOf(Layer):
        def present(self, hop: int) -> None:
            seen = self.hop_seen
            super().present(hop)
            self.hop_seen = seen

    class ComesUnnoticed(Layer):
        def receive_hello(self, hello: Hello) -> None:
            if not self.open:
                super().receive_hello(hello)

    return [OverlooksItsFormerLife, TakesTokensThatItWasToldOf, ComesUnnoticed]


# -- 14: reasons to propose ----------------------------------------------------------------------


def a_fixed_network_does_without_a_participant(make: Make) -> bool:
    machines = Machines("raymond", 1, 3, 0, make, line)
    machines.run_until_usable()
    machines.ask(2)
    machines.run(LEASE)  # everybody knows where the token is
    machines.kill(1)
    machines.ask(0)  # by way of 1
    machines.leave(2)
    machines.run(4 * LEASE)
    return machines.who() == [2, 0]


def permits_given_back_to_nobody_are_missed(make: Make) -> bool:
    machines = Machines("jiang", 2, 3, 0, make)
    machines.run_until_usable()
    machines.ask(0)
    machines.change_epoch(1)
    machines.ask(2)
    machines.run(LEASE)
    assert machines.holders() == [2]
    machines.kill(1)
    machines.run(2 * LEASE)
    machines.leave(0)
    machines.leave(2)
    machines.run(4 * LEASE)
    return machines.free() == 2


def undone_14() -> list[Make]:
    class MissesNoParticipant(Pace):
        def participant_reason(self, now: int) -> str:
            return ""

    class MissesNoPermits(Pace):
        def lost_reason(self, now: int) -> str:
            return ""

    class First(Layer):
        def __init__(self, me: int, out: list[Effect], terms: Terms) -> None:
            super().__init__(me, out, terms)
            self.pace = MissesNoParticipant(self)

    class Second(Layer):
        def __init__(self, me: int, out: list[Effect], terms: Terms) -> None:
            super().__init__(me, out, terms)
            self.pace = MissesNoPermits(self)

    return [First, Second]


# -- 17: grants to clients of other nodes --------------------------------------------------------


def lending(make: Make) -> Machines:
    """Two permits, and one of them is out, so that the token stays where it is."""
    machines = born("direct", permits=2, make=make)
    machines.ask(0)
    return machines


def held_back_grant(machines: Machines) -> Message:
    """To a client of node 1, while it is under way."""
    machines.held_back = {"GRANT"}
    machines.ask(1)
    machines.held_back = set()
    (grant,) = machines.kept
    machines.kept = []
    assert machines.holders() == [0] and machines.free() == 0
    return grant


def what_is_lent_is_in_the_ledger(make: Make) -> bool:
    machines = lending(make)
    machines.ask(1)
    machines.change_epoch(0)
    machines.ask(2)
    safe = not machines.overbooked() and machines.who() == [0, 1]
    machines.leave(1)
    return safe and machines.who() == [0, 1, 2]


def a_late_grant_is_good_for_the_rest_of_its_lease(make: Make) -> bool:
    machines = lending(make)
    grant = held_back_grant(machines)
    machines.cut(1)
    machines.change_epoch(2)
    machines.ask(2)
    machines.pass_time(LEASE - 2 * POLL)
    assert grant.seal is not None
    grant.seal.travelled = LEASE - 2 * POLL
    machines.deliver(grant)
    machines.pass_time(WAIT - LEASE + 3 * POLL)
    return not machines.overbooked() and machines.who() == [0, 1, 2]


def a_grant_that_comes_twice_is_accepted_once(make: Make) -> bool:
    machines = lending(make)
    grant = held_back_grant(machines)
    machines.ask(1, client=8)
    machines.deliver(grant)
    machines.deliver(grant)
    safe = not machines.overbooked() and machines.clients() == [(0, 7), (1, 7)]
    machines.leave(1)
    machines.deliver(grant)
    return safe and machines.clients() == [(0, 7), (1, 7), (1, 8)] and machines.free() == 0


def a_late_node_takes_no_grant_of_a_former_life(make: Make) -> bool:
    """It was told what is out, and this is not: it was granted, and returned, before."""
    machines = lending(make)
    grant = held_back_grant(machines)
    machines.deliver(grant)
    machines.leave(1)
    late(machines, 1)
    machines.deliver(grant)
    machines.ask(1)
    machines.ask(2)
    agree = not machines.at(0).disagrees() and not machines.overbooked()
    return agree and machines.who() == [0, 1, 1] and len(machines.epochs()) == 1


def a_grant_after_its_lease_ends_in_a_new_epoch(make: Make) -> bool:
    """Nobody may use what it names, and whoever made it cannot know."""
    machines = lending(make)
    grant = held_back_grant(machines)
    assert grant.seal is not None
    grant.seal.travelled = LEASE
    machines.deliver(grant)
    assert machines.who() == [0]
    machines.run(LEASE // 3)  # sooner than its maker would miss the acknowledgement
    return machines.who() == [0, 1] and machines.free() == 0


def a_grant_that_nobody_acknowledges_ends_in_a_new_epoch(make: Make) -> bool:
    machines = lending(make)
    held_back_grant(machines)  # and lost
    machines.run(LEASE)
    return machines.who() == [0, 1] and machines.free() == 0


def a_grant_after_a_promise_is_free_in_the_new_epoch(make: Make) -> bool:
    """Who has promised has reported, without it."""
    machines = lending(make)
    grant = held_back_grant(machines)
    machines.held_back = {"PROPOSE"}
    machines.propose(2)
    machines.held_back = set()
    to_0, to_1 = machines.kept
    assert (to_0.receiver, to_1.receiver) == (0, 1)
    machines.deliver(to_1)
    machines.deliver(grant)
    machines.deliver(to_0)
    machines.close(2)
    machines.ask(2)
    return not machines.overbooked() and machines.who() == [0, 1]


def a_node_that_restarts_twice_is_served_where_the_token_stays(make: Make) -> bool:
    """Its first request in the third life is newer than any of the second."""
    machines = lending(make)
    for _ in range(2):
        late(machines, 1)
        machines.ask(1)
        machines.leave(1)
    return machines.who() == [0, 1, 1] and len(machines.epochs()) == 1


def undone_17() -> list[Make]:
    class LendsWithoutAnEntry(Layer):
        def lend(self, message: Message) -> None:
            super().lend(message)
            assert self.token is not None
            self.token.ledger = self.token.ledger[:-1]
            self.token.free += message.lends()

    class ForgetsTheWay(Layer):
        def arrives_until(self, seal: Seal) -> int:
            return self.now + seal.left

    class TakesAGrantTwice(Layer):
        def is_lent_to_us(self, seal: Seal, lent: Entry) -> bool:
            new = super().is_lent_to_us(seal, lent)
            self.taken = self.taken[:1]
            return new

    class TakesGrantsThatItWasToldOf(Layer):
        def receive_copy(self, copy: Copy) -> None:
            copy.grants = 0
            super().receive_copy(copy)

    class MissesNoGrant(Layer):
        def is_lent_to_us(self, seal: Seal, lent: Entry) -> bool:
            new = super().is_lent_to_us(seal, lent)
            self.missed = False
            return new

    class WaitsForNoAnswer(Layer):
        def lend(self, message: Message) -> None:
            super().lend(message)
            self.lent = {}

    class ServesAfterAPromise(Layer):
        def active(self) -> bool:
            return self.inner is not None

    class CountsFromTheHopAlone(Layer):
        def receive_copy(self, copy: Copy) -> None:
            copy.number = 0
            super().receive_copy(copy)

    return [
        LendsWithoutAnEntry,
        ForgetsTheWay,
        TakesAGrantTwice,
        TakesGrantsThatItWasToldOf,
        MissesNoGrant,
        WaitsForNoAnswer,
        ServesAfterAPromise,
        CountsFromTheHopAlone,
    ]


Story = Callable[[Make], bool]

RULES: list[tuple[int, list[Story], Callable[[], list[Make]]]] = [
    (1, [fences_grow, a_late_token_is_good_for_the_rest_of_its_lease], undone_1),
    (
        2,
        [
            kept_grants_count_inside_too,
            who_waits_is_served_in_the_next_epoch,
            there_is_one_token_inside,
        ],
        undone_2,
    ),
    (3, [a_kept_grant_is_given_back, what_lapses_counts_until_its_lease_is_over], undone_3),
    (4, [who_missed_the_ledger_gets_it_from_anybody], undone_4),
    (5, [links_are_told_to_the_new_node_inside], undone_5),
    (6, [what_comes_early_is_not_lost], undone_6),
    (
        7,
        [
            a_token_for_a_former_life_is_not_taken,
            permits_of_an_old_epoch_do_not_come_back_in_the_new_one,
            a_token_is_not_taken_after_a_promise,
        ],
        undone_7,
    ),
    (
        8,
        [
            a_dead_token_lets_nobody_in,
            a_lost_token_is_replaced_one_lease_later,
            nothing_overtakes_a_token_that_waits,
        ],
        undone_8,
    ),
    (
        9,
        [
            permits_come_back_with_their_fences,
            permits_may_come_ahead_of_the_token,
            permits_come_back_where_the_token_is,
            a_part_counts_once,
            parts_come_in_any_order,
            a_part_counts_once_in_the_next_epoch,
        ],
        undone_9,
    ),
    (
        10,
        [
            its_sender_does_not_take_it_back,
            a_token_lost_with_its_link_is_sent_again,
            a_late_token_is_taken_once,
        ],
        undone_10,
    ),
    (11, [who_gave_up_too_late_is_let_in_and_leaves], undone_11),
    (
        12,
        [
            a_restarted_founder_makes_no_second_token_inside,
            permits_of_a_newcomer_that_forgot_come_back,
        ],
        undone_12,
    ),
    (
        13,
        [
            permits_of_a_newcomer_come_back,
            a_late_node_takes_no_token_of_a_former_life,
            a_late_node_says_who_it_is,
        ],
        undone_13,
    ),
    (
        14,
        [a_fixed_network_does_without_a_participant, permits_given_back_to_nobody_are_missed],
        undone_14,
    ),
    (
        17,
        [
            what_is_lent_is_in_the_ledger,
            a_late_grant_is_good_for_the_rest_of_its_lease,
            a_grant_that_comes_twice_is_accepted_once,
            a_late_node_takes_no_grant_of_a_former_life,
            a_grant_after_its_lease_ends_in_a_new_epoch,
            a_grant_that_nobody_acknowledges_ends_in_a_new_epoch,
            a_grant_after_a_promise_is_free_in_the_new_epoch,
            a_node_that_restarts_twice_is_served_where_the_token_stays,
        ],
        undone_17,
    ),
]

CASES = [
    pytest.param(story, undone, place, id=f"{rule}-{story.__name__}")
    for rule, stories, undone in RULES
    for place, story in enumerate(stories)
]


@pytest.mark.parametrize(("story", "undone", "place"), CASES)
def test_the_story_of_the_rule_ends_well(
    story: Story, undone: Callable[[], list[Make]], place: int
) -> None:
    assert story(Layer)


@pytest.mark.parametrize(("story", "undone", "place"), CASES)
def test_without_the_rule_it_does_not(
    story: Story, undone: Callable[[], list[Make]], place: int
) -> None:
    assert not story(undone()[place])

"""Mistakes one could make in recovery: each undoes one rule.

The algorithm inside is ``direct`` unless the rule concerns another kind. Where a search from the
beginning would take too long, the first steps are given.
"""

from __future__ import annotations

import re
from typing import Any

from meshlock.algorithms.interface import Effect, Keep, Message
from meshlock.algorithms.mutants.made import Case, Mutant
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Confirm, Copy, Return, Suggest
from meshlock.algorithms.recovery.records import (
    NO_EPOCH,
    Change,
    Config,
    Entry,
    Epoch,
    Fence,
    FirstLedger,
    Part,
    Parts,
    Report,
    Seal,
    TokenState,
    Unaccepted,
)
from meshlock.algorithms.recovery.reports import changed_members
from meshlock.algorithms.recovery.state import HeldToken, Proposal, Terms
from meshlock.algorithms.registry import find

# -- leases, promises and ledgers --------------------------------------------------------------


class TakesTokensOfAFormerLife(Layer):
    def is_addressed(self, seal: Seal) -> bool:
        return True


class VouchesForAFormerLife(Layer):
    def vouches(self, receiver: Report, sent: Unaccepted) -> bool:
        return receiver.hop_seen < (sent.state.epoch, sent.state.hop)


class ReturnsForAFormerLife(Layer):
    def disown(self, missing: dict[Fence, int]) -> None:
        self.returning.update(missing)


class OthersSpeakAtOnce(Layer):
    def quiet_period(self) -> int:
        return self.terms.wait if self.member else 0


class TellsWhatLapses(Layer):
    def told(self, proposal: Proposal) -> tuple[Entry, ...]:
        return proposal.kept + tuple([entry._replace(lapsing=False) for entry in proposal.lapsing])


class FreesWhatLapses(Layer):
    def is_free(self, entry: Entry, report: Report | None) -> bool:
        return report is not None and entry.fence not in [grant.fence for grant in report.grants]


class TakesAnyToken(Layer):
    def is_current(self, epoch: Epoch, top: Epoch) -> bool:
        return True


class KeepsGrantsOfAnyEpoch(Layer):
    def belongs(self, report: Report, top: Epoch) -> bool:
        return True


class RenewsTheDead(Layer):
    def renewable(self, until: int) -> bool:
        return True


class AnswersWithoutPromise(Layer):
    def answer(self, epoch: Epoch) -> None:
        self.answered = max(self.answered, epoch)


class ConfirmedByAnyBoot(Layer):
    def is_counted(self, confirm: Confirm, proposal: Proposal) -> bool:
        return proposal.closed


class EpochWithoutBoot(Layer):
    def next_epoch(self) -> Epoch:
        return super().next_epoch()._replace(boot=0)


class ForgetsItsPromise(Layer):
    def restart(self, boot: int, kept: Keep | None, floor: int = 0) -> None:
        super().restart(boot, None if kept is None else Keep(NO_EPOCH, kept.config), floor)


class SpeaksBeforeItsDisk(Layer):
    def rests_on_disk(self, message: Message, on_disk: Epoch) -> bool:
        return False


class IgnoresAPromiseToTheDead(Layer):
    def receive_suggest(self, suggest: Suggest) -> None:
        if suggest.epoch <= self.promised:
            super().receive_suggest(suggest)


class DoesNotWait(Layer):
    def waited_out(self, proposal: Proposal) -> bool:
        return True


class CountsFromTheReply(Layer):
    def counted_from(self, sent: int) -> int:
        return self.now


class VotesAtOnce(Layer):
    def quiet_period(self) -> int:
        return 0


class SwitchesOnItsPromise(Layer):
    def promise(self, epoch: Epoch) -> Report:
        report = super().promise(epoch)
        for grant in self.grants.values():
            grant.epoch = epoch
        self.adopted = epoch
        return report


class TakesBackAnUnacceptedToken(Layer):
    def expire(self) -> None:
        super().expire()
        if self.unaccepted is not None and self.token is None:
            self.token = HeldToken(self.unaccepted.state, self.now + 1)
            self.unaccepted = None


class ForgetsTheWay(Layer):
    def arrives_until(self, seal: Seal) -> int:
        return self.now + seal.left


class Founder(Layer):
    """Node 0 is started with the option to create the token."""

    def restart(self, boot: int, kept: Keep | None, floor: int = 0) -> None:
        super().restart(boot, kept, floor)
        if self.me == 0:
            epoch = Epoch(1, 0, boot)
            config = Config(epoch, self.terms.members, self.terms.permits, self.terms.lease)
            everybody = {node: self.report_of(node, boot) for node in self.terms.nodes}
            nodes = self.participants(everybody)
            self.adopt(FirstLedger(epoch, config, nodes, (), 0, NO_EPOCH, 0, False), 0)
            state = TokenState(epoch, 0, self.terms.permits, (), 0)
            self.hop_seen = (epoch, 0)
            self.token = HeldToken(state, self.now + self.terms.lease)

    def report_of(self, node: int, boot: int) -> Report:
        life = boot if node == 0 else 1
        return Report(life, NO_EPOCH, NO_EPOCH, (), (NO_EPOCH, -1), None, None, self.config, False)


class NoMargin(Layer):
    """Who holds counts as long as who waits."""

    def __init__(self, me: int, out: list[Effect], terms: Terms) -> None:
        even = Terms(
            terms.nodes,
            terms.members,
            terms.permits,
            terms.wait,
            terms.wait,
            terms.algorithm,
            terms.options,
            terms.near,
        )
        super().__init__(me, out, even)


class TakesATokenTwice(Layer):
    def is_new(self, state: TokenState) -> bool:
        return (state.epoch, state.hop) >= self.hop_seen


class SendsAgainForLonger(Layer):
    def send_again(self) -> None:
        self.unaccepted_until = self.now + self.terms.lease
        super().send_again()


class RenewsByCopy(Layer):
    def receive_copy(self, copy: Copy) -> None:
        super().receive_copy(copy)
        for grant in self.grants.values():
            grant.until = self.now + self.terms.lease


# -- members -----------------------------------------------------------------------------------


class RemovesTwoAtOnce(Layer):
    def config_after(self, proposal: Proposal) -> Config:
        config = super().config_after(proposal)
        return config if proposal.change is None else config._replace(members=(self.me,))


class ReportsATokenTwice(Layer):
    def surrender(self) -> None:
        self.token = None


class ChangesUnconfirmed(Layer):
    def may_change(self, proposal: Proposal, change: Change) -> bool:
        return True


class ForgetsItsMembers(Layer):
    def restart(self, boot: int, kept: Keep | None, floor: int = 0) -> None:
        if kept is not None:
            kept = Keep(kept.promised, kept.config._replace(epoch=NO_EPOCH))
        super().restart(boot, kept, floor)


class GoesByTheLastChange(Layer):
    def adopt(self, first: FirstLedger, holder: int) -> None:
        if first.config.members == self.config.members:
            first = first._replace(config=self.config)
        super().adopt(first, holder)

    def config_after(self, proposal: Proposal) -> Config:
        latest = self.latest(proposal)
        if proposal.change is not None:
            latest = latest._replace(members=changed_members(latest.members, proposal.change))
        return latest._replace(epoch=proposal.epoch)


# -- permits -----------------------------------------------------------------------------------


class GrantsWhileTooMuchIsOut(Layer):
    """Rule 15: after k fell, nobody is let in before enough came back."""

    def may_ask(self, client: int) -> bool:
        return True

    def may_let_in(self, client: int) -> bool:
        return super().may_let_in(client) or (self.paused() and self.usable())


class FreesAllThatComesBack(Layer):
    """Rule 15: what comes back makes up for what was too much."""

    def strike(self, part: Part) -> None:
        if self.paused() and self.token is not None:
            self.token.free = max(0, self.token.free)
        super().strike(part)


class ForgetsThePermits(Layer):
    """The permits belong to the epoch, and to the next one."""

    def config_after(self, proposal: Proposal) -> Config:
        config = super().config_after(proposal)
        return config if proposal.change else config._replace(permits=self.terms.permits)


class RemembersNoPermits(Layer):
    """The permits are on disk."""

    def restart(self, boot: int, kept: Keep | None, floor: int = 0) -> None:
        super().restart(boot, kept, floor)
        self.config = self.config._replace(permits=self.terms.permits)


class StaysPaused(Layer):
    """Rule 15: when enough came back there is another epoch."""

    def has_to_pause(self, out: int, config: Config) -> bool:
        return super().has_to_pause(out, config) or self.paused()


# -- the algorithm inside ----------------------------------------------------------------------


class HearsEveryEpoch(Layer):
    """Rule 7: messages inside are for one epoch."""

    def is_of_our_epoch(self, seal: Seal) -> bool:
        return self.active()


class ServesAfterAPromise(Layer):
    """Rule 7: after a promise the node inside is not called."""

    def active(self) -> bool:
        return self.inner is not None

    def usable(self) -> bool:
        token = self.token
        return token is not None and token.until > self.now

    def promise(self, epoch: Epoch) -> Report:
        token = self.token
        report = super().promise(epoch)
        self.token = token
        return report


class GrantsUnderADeadLease(Layer):
    def may_let_in(self, client: int) -> bool:
        token = self.token
        return token is not None and token.epoch == self.promised


class AsksNothingAnew(Layer):
    """Rule 2: waiting clients ask anew."""

    def ask_anew(self) -> None:
        pass


class ReturnsByAmount(Layer):
    """Rule 3: by fence, so that twice is as good as once."""

    def receive_return(self, message: Return) -> None:
        token = self.token
        if token is not None and all(entry.fence != message.fence for entry in token.ledger):
            token.free += 1
        super().receive_return(message)


class ServesTheLeastUrgent(Layer):
    """Rule 2: clients ask inside with the priority that they have."""

    def resume(self, client: int, want: int, priority: int, age: int) -> None:
        super().resume(client, want, -priority, age)


class DoesNotWithhold(Layer):
    """Rule 8: who is let in waits until the token is made."""

    def may_let_in(self, client: int) -> bool:
        if self.token is None and self.proposal is not None and self.proposal.closed:
            epoch = self.proposal.epoch
            state = TokenState(epoch, 0, self.terms.permits, (), 0)
            self.token = HeldToken(state, self.now + self.terms.lease)
        return super().may_let_in(client)


class StrikesNothing(Layer):
    """Rule 9: what comes back to whom has the token is struck out."""

    def bring_back(self, had: bool, returned: Parts) -> None:
        super().bring_back(False, returned)


class LosesWhatIsPending(Layer):
    """Rule 9: pending fences go along with the token."""

    def absorb(self) -> None:
        self.pending = set()


class ForgetsWhoGaveUp(Layer):
    """Rule 11: who gave up too late is let in, and leaves."""

    def withdraw(self, client: int) -> bool:
        found = super().withdraw(client)
        self.leaving.pop(client, None)
        return found

    def wants(self, client: int) -> int:
        return super().wants(client) if client in self.waiting else 1

    def let_in(self, client: int) -> list[tuple[int, Fence, int]]:
        return super().let_in(client) if client in self.waiting else []


class TakesPartInAnyLife(Layer):
    """Rule 12: only a life that the ledger names."""

    def may_take_part(self, first: FirstLedger) -> bool:
        return True


class FoundsAgain(Layer):
    """Rule 13: the founder cannot come back as a newcomer."""

    def is_new_to(self, copy: Copy) -> bool:
        return not self.fixed and copy.ledger is not None


class FreesAtOnce(Layer):
    """Rule 3: what lapses is free when its time is over."""

    def let_lapse(self) -> None:
        if self.token_was_made():
            for fence in sorted(self.lapsing):
                self.leave_stand_in(fence)


class TakesTokensOfAFailedLink(Layer):
    """Rule 10: its sender does not take it back."""

    def link_down(self, peer: int) -> None:
        sent = self.unaccepted
        super().link_down(peer)
        if sent is not None and sent.receiver == peer and self.token is None:
            self.token = HeldToken(sent.state, self.unaccepted_until)


class TakesTheFirstSlots(Layer):
    def let_in(self, client: int) -> list[tuple[int, Fence, int]]:
        self.forget_slots()
        return super().let_in(client)

    def lend(self, message: Message) -> None:
        self.forget_slots()
        super().lend(message)

    def forget_slots(self) -> None:
        token = self.token
        assert token is not None
        token.ledger = tuple([entry._replace(slots=()) for entry in token.ledger])


class GivesSlotsTwiceAfterRecovery(Layer):
    def kept(
        self, reports: dict[int, Report], top: Epoch, usable: TokenState | None
    ) -> list[Entry]:
        return [entry._replace(slots=()) for entry in super().kept(reports, top, usable)]


class ForgetsSlotsOfWhatLapses(Layer):
    def lapse(
        self, reports: dict[int, Report], kept: list[Entry], usable: TokenState | None
    ) -> tuple[Entry, ...]:
        lapsing = super().lapse(reports, kept, usable)
        return tuple([entry._replace(slots=()) for entry in lapsing])


class StrikesTheWhole(Layer):
    def strike(self, part: Part) -> None:
        assert self.token is not None
        super().strike(Part(part.fence, 0, self.token.left(part.fence)))


class StrikesTheFirst(Layer):
    """Rule 9: a part names the permits that come back."""

    def strike(self, part: Part) -> None:
        super().strike(part._replace(left=0))


class ReturnsAPartTwice(Layer):
    """Rule 3: by what is left, so that twice is as good as once."""

    def leave_stand_in(self, fence: Fence, left: int = 0) -> None:
        if left > 0 and fence in self.stand_ins:
            left = self.stand_ins[fence][1] - 1
        super().leave_stand_in(fence, left)

    def receive_return(self, message: Return) -> None:
        if message.left > 0 and message.fence in self.stand_ins and self.active():
            self.leave_stand_in(message.fence, message.left)
        else:
            super().receive_return(message)


# -- grants to clients of other nodes ----------------------------------------------------------


class LendsWithoutAnEntry(Layer):
    """Rule 17: the entry is in the ledger before the message leaves."""

    def lend(self, message: Message) -> None:
        super().lend(message)
        token = self.token
        assert token is not None
        token.ledger = token.ledger[:-1]
        token.free += message.lends()


class CountsAGrantFromItsArrival(Layer):
    """Rule 17: it is good for what was left of the lease, less the time under way."""

    def arrives_until(self, seal: Seal) -> int:
        return self.now + seal.left if seal.lent is not None else super().arrives_until(seal)


class ForgetsALateGrant(Layer):
    """Rule 17: one that came after the end of its lease is a reason to propose."""

    def is_lent_to_us(self, seal: Seal, lent: Entry) -> bool:
        ours = super().is_lent_to_us(seal, lent)
        self.missed = False
        return ours


class LendsUnderADeadLease(Layer):
    def may_lend(self, message: Message) -> bool:
        token = self.token
        return token is not None and token.epoch == self.promised and message.lends() <= token.free


class NumbersByTheHopAlone(Layer):
    """Rule 17: the token may stay where it is while a node restarts twice."""

    def receive_copy(self, copy: Copy) -> None:
        hop, first, ledger = copy.hop, copy.first, copy.ledger
        known = Copy(copy.receiver, first, ledger, hop, copy.grants, 0, copy.boot)
        known.sender = copy.sender
        super().receive_copy(known)


LISTS = ("crashing", "proposers", "resizes", "stay")


def mutant(
    layer: type[Layer], mistake: str, breaks: str, words: str, lead: str = "", prevents: str = ""
) -> Mutant:
    """What it breaks, in how many steps; the words of :class:`Case` and ``algorithm``, direct
    by default, ``members``, three, ``others``, none; and the first steps, one of which the original
    may prevent."""
    given: dict[str, Any] = {"members": ""}
    for word in words.split():
        name, _, value = word.partition("=")
        given[name] = int(value) if value.isdigit() and name != "requests" else value or True
        if value == "no":
            given[name] = False
        elif name in LISTS:
            given[name] = [int(one) for one in value.split(",")]
        elif name == "member_changes":
            given[name] = value.replace("-", " ").split(",")
    origin = find(given.pop("algorithm", "direct"))
    topology = given.pop("topology", "complete")
    requests = given.pop("requests", "").replace(",", " ")
    members, others = given["members"] or 3, given.pop("others", 0)
    given["members"] = str(members) if others else "all"
    if not requests:
        given["idle"] = True
    name = "-".join(re.findall("[A-Z][a-z]*", layer.__name__)).lower()
    case = Case(
        members + others, topology, requests, lead=lead.split(", ") if lead else [], **given
    )
    broken, steps = breaks.split(" in ")
    return Mutant(
        *(origin, name, mistake, origin.make, case),
        breaks=broken,
        steps=int(steps),
        layer=layer,
        prevents=prevents,
    )


FIRST_TOKEN = "request 1, deliver REQUEST 1>0, deliver TOKEN 0>1"
FIRST_GRANT = "request 1, deliver REQUEST 1>0, deliver GRANT 0>1"

MUTANTS: list[Mutant] = [
    mutant(
        TakesTokensOfAFormerLife,
        "a restarted node accepts a token that was sent to it before its restart",
        "one-token in 12",
        "requests=1,0 algorithm=jiang topology=line members=2 crashes=1 crashing=1 doubles=1 "
        "cuts=1 stale",
        "request 1, deliver REQUEST 1>0, cut 0-1, double TOKEN 0>1, heal 0-1",
    ),
    mutant(
        VouchesForAFormerLife,
        "a restarted node confirms that a token never arrived, though it had it before its restart",
        "one-token in 26",
        "requests=1,2 members=5 ticks=3 proposals=1 crashes=1 crashing=1 proposers=0 stay=2",
        f"{FIRST_TOKEN}, leave 1, request 2, deliver REQUEST 2>0, deliver REQUEST 0>1, "
        "deliver TOKEN 1>2, crash 1, restart 1, tick, renew 2 with 3, renew 2 with 4, tick, "
        "renew 2 with 3, renew 2 with 4, propose 0, deliver PROPOSE 0>1, deliver PROMISE 1>0, "
        "deliver PROPOSE 0>3, deliver PROMISE 3>0",
    ),
    mutant(
        ReturnsForAFormerLife,
        "a restarted node returns at once permits that a command started before still uses",
        "ledger in 11",
        "requests=0 proposals=1 crashes=1 crashing=0 proposers=2 stay=0",
        "request 0, propose 2, deliver PROPOSE 2>0",
    ),
    mutant(
        OthersSpeakAtOnce,
        "a restarted node that is no member has no quiet period",
        "ledger in 11",
        "requests=1 members=1 others=1 proposals=2 crashes=1 crashing=1",
        FIRST_TOKEN,
    ),
    mutant(
        TellsWhatLapses,
        "the ledger names grants that nobody reported, so an unreachable client goes on with them",
        "ledger in 14",
        "requests=1 members=1 others=1 proposals=2",
    ),
    mutant(
        FreesWhatLapses,
        "in a second change of epoch a grant that is running out counts as free",
        "ledger in 14",
        "requests=1 members=1 others=1 proposals=3",
    ),
    mutant(
        TakesAnyToken,
        "an old token counts as usable although a newer epoch lives",
        "one-token in 15",
        "proposals=2 proposers=1,2",
        "propose 1, deliver PROPOSE 1>2",
    ),
    mutant(
        KeepsGrantsOfAnyEpoch,
        "a grant is kept though its node missed the epoch that dropped it",
        "ledger in 16",
        "requests=0 proposals=2 proposers=1,2 stay=0",
        "request 0, propose 1, deliver PROPOSE 1>2, deliver PROMISE 2>1, close 1",
    ),
    mutant(
        RenewsTheDead,
        "a lease that ran out is renewed through a member that forgot its promise",
        "one-token in 14",
        "proposals=1 proposers=2 crashes=1 crashing=1 forgets=1",
    ),
    mutant(
        AnswersWithoutPromise,
        "answering a renewal binds nobody",
        "one-token in 23",
        "proposals=3 proposers=0,1 crashes=1 crashing=0 forgets=1 wall_clock=no handshakes=any",
        "propose 1, deliver PROPOSE 1>0, deliver PROMISE 0>1, close 1, deliver LEDGER 1>0, "
        "deliver CONFIRM 0>1, crash 0, forget 0, tick, renew 1 with 2, tick, propose 0",
    ),
    mutant(
        ConfirmedByAnyBoot,
        "a ledger is confirmed by a member that forgot that it had promised it",
        "one-token in 21",
        "members=5 proposals=1 proposers=4 crashes=1 crashing=2 forgets=1",
        "propose 4, deliver PROPOSE 4>2, crash 2, forget 2, tick, renew 0 with 1, "
        "renew 0 with 3, deliver PROPOSE 4>3, deliver PROMISE 3>4, deliver PROMISE 2>4, "
        "close 4, deliver LEDGER 4>3, deliver CONFIRM 3>4, tick, renew 0 with 1, renew 0 with 2",
    ),
    mutant(
        EpochWithoutBoot,
        "a proposer that forgot uses the number of an epoch again",
        "fences in 26",
        "requests=0,0 birth proposals=2 proposers=0 crashes=1 crashing=0 forgets=1 "
        "wall_clock=no stay=0",
        "tick, tick, propose 0, deliver PROPOSE 0>1, deliver PROMISE 1>0, close 0, "
        "deliver LEDGER 0>1, deliver CONFIRM 1>0, request 0a, tick, renew 0 with 1, tick, "
        "crash 0, forget 0, tick, tick",
    ),
    mutant(
        ForgetsItsPromise,
        "the promise is not on disk, so fences fall back",
        "fences in 24",
        "requests=0,1 proposals=2 proposers=0,1 crashes=1 crashing=2 stay=0,1",
        "propose 1, deliver PROPOSE 1>2, deliver PROMISE 2>1, close 1, deliver LEDGER 1>2, "
        "deliver CONFIRM 2>1, request 1, tick, renew 1 with 2, tick, crash 2, restart 2, tick, "
        "tick",
    ),
    mutant(
        SpeaksBeforeItsDisk,
        "a promise is sent before it is on disk, and forgotten in a crash",
        "fences in 22",
        "requests=0,1 proposals=2 proposers=0,1 crashes=1 crashing=2 slow_disks=1 stay=0,1",
        "propose 1, hang 2, deliver PROPOSE 1>2, deliver PROMISE 2>1, close 1, "
        "deliver LEDGER 1>2, deliver CONFIRM 2>1, request 1, tick, renew 1 with 2, tick, crash 2, "
        "restart 2, tick, tick",
        "deliver PROMISE 2>1",
    ),
    mutant(
        IgnoresAPromiseToTheDead,
        "members ignore a node that promised an epoch whose proposer is dead, so it is left out",
        "served in 3",
        "requests=3 members=3 others=1 proposals=1 proposers=1 stay_dead=1 crashing=1 ticks=0",
        "propose 1, deliver PROPOSE 1>3, die 1",
    ),
    mutant(
        DoesNotWait,
        "a lost token is replaced without waiting for the leases to end",
        "one-token in 6",
        "requests=0 proposals=1 proposers=2",
    ),
    mutant(
        CountsFromTheReply,
        "a lease is counted from the answer instead of from the question",
        "one-token in 11",
        "proposals=1 proposers=2 renewals=travel",
    ),
    mutant(
        VotesAtOnce,
        "a restarted member that forgot everything votes at once",
        "one-token in 12",
        "proposals=1 proposers=2 crashes=1 crashing=1 forgets=1",
    ),
    mutant(
        SwitchesOnItsPromise,
        "a client's grant belongs to the new epoch as soon as it is promised",
        "ledger in 12",
        "requests=0 algorithm=naimi-trehel proposals=1 proposers=2 stay=0",
    ),
    mutant(
        TakesBackAnUnacceptedToken,
        "the sender of a token that is not acknowledged uses it again",
        "one-token in 3",
        "requests=0,1",
    ),
    mutant(
        ForgetsTheWay,
        "the time that a token travels is not taken off its lease",
        "one-token in 12",
        "requests=1 proposals=1 proposers=2 stay=1",
    ),
    mutant(
        Founder,
        "one node is started with an option to create the token, and started again",
        "ledger in 3",
        "requests=0 birth crashes=1 crashing=0",
    ),
    mutant(
        NoMargin,
        "the holder of a lease counts as long on its slow clock as others on theirs",
        "one-token in 9",
        "requests=0 proposals=1 proposers=2 stay=0 slow_ticks=1 lease=1 wait=2",
    ),
    mutant(
        TakesATokenTwice,
        "a token that was resent because its receipt was late is accepted again",
        "ledger in 6",
        "requests=1 algorithm=jiang topology=line members=2 resends=1 cuts=1",
    ),
    mutant(
        SendsAgainForLonger,
        "a token that is resent gets a new lease",
        "one-token in 12",
        "requests=2 algorithm=jiang topology=line members=1 others=2 proposals=1 resends=1 "
        "cuts=2 ticks=3",
        "request 2, deliver REQUEST 2>1, deliver REQUEST 1>0, deliver TOKEN 0>1, cut 0-1, "
        "cut 1-2, propose 0, close 0, tick",
    ),
    mutant(
        RenewsByCopy,
        "a copy of the ledger that comes late counts as a renewal",
        "ledger in 20",
        "requests=0 proposals=2 proposers=1,2 stay=0 handshakes=any",
        "request 0, propose 2, deliver PROPOSE 2>0, deliver PROMISE 0>2, deliver PROPOSE 2>1, "
        "deliver PROMISE 1>2, close 2, deliver LEDGER 2>1, deliver CONFIRM 1>2, "
        "renew 2 with 0, propose 1, deliver PROPOSE 1>2, deliver PROMISE 2>1, close 1",
    ),
    mutant(
        RemovesTwoAtOnce,
        "two members are removed by one change, so majorities need not meet",
        "one-token in 11",
        "proposals=2 proposers=0,1 member_changes=remove-2",
        "remove 2 by 0, propose 1, deliver PROPOSE 1>2",
    ),
    mutant(
        ChangesUnconfirmed,
        "members are changed from an epoch of which nobody knows whether it was confirmed",
        "one-token in 16",
        "proposals=3 proposers=1,2 member_changes=remove-0,remove-1",
        "remove 0 by 2, deliver PROPOSE 2>1, deliver PROMISE 1>2, close 2, propose 1, "
        "deliver PROPOSE 1>0, deliver PROMISE 0>1, close 1, deliver LEDGER 1>0, "
        "deliver CONFIRM 0>1",
    ),
    mutant(
        ReportsATokenTwice,
        "a node reports the token that it sent to two proposals, and each changes the members",
        "one-token in 14",
        "requests=2 members=2 others=1 proposals=2 proposers=0,1 member_changes=remove-0,add-2 "
        "ticks=0 stay=2",
        "request 2, deliver REQUEST 2>0, remove 0 by 1, deliver PROPOSE 1>0",
    ),
    mutant(
        ForgetsItsMembers,
        "the members are not on disk, so after a restart the first ones count again",
        "one-token in 30",
        "requests=1 members=1 others=2 proposals=3 proposers=0 member_changes=add-1,add-2 "
        "crashes=1 crashing=0 stay=1",
        "add 1 by 0, deliver PROPOSE 0>1, deliver PROMISE 1>0, close 0, deliver LEDGER 0>1, "
        "deliver CONFIRM 1>0, add 2 by 0, deliver PROPOSE 0>1, deliver PROPOSE 0>2, "
        "deliver PROMISE 1>0, deliver PROMISE 2>0, close 0, deliver LEDGER 0>1, "
        "deliver LEDGER 0>2, deliver CONFIRM 1>0, request 1, deliver REQUEST 1>0, "
        "deliver TOKEN 0>1, crash 0, restart 0",
    ),
    mutant(
        GoesByTheLastChange,
        "the last change of members counts, though a later epoch was confirmed without it",
        "one-token in 43",
        "members=4 others=1 proposals=4 proposers=0,1 member_changes=add-4,remove-0",
        "add 4 by 0, deliver PROPOSE 0>1, deliver PROPOSE 0>3, deliver PROPOSE 0>4, "
        "deliver PROMISE 3>0, deliver PROMISE 4>0, close 0, propose 1, deliver PROPOSE 1>0, "
        "deliver PROPOSE 1>2, deliver PROPOSE 1>3, deliver PROMISE 2>1, deliver PROMISE 3>1, "
        "close 1, deliver LEDGER 1>2, deliver LEDGER 1>3, deliver CONFIRM 2>1, "
        "deliver CONFIRM 3>1, tick, renew 1 with 2, renew 1 with 3, tick, remove 0 by 1, "
        "deliver PROPOSE 1>2, deliver PROMISE 2>1, close 1, deliver LEDGER 1>2, "
        "deliver CONFIRM 2>1, propose 0, deliver PROPOSE 0>3, deliver PROPOSE 0>4, "
        "deliver PROMISE 3>0, deliver PROMISE 4>0",
    ),
    mutant(
        GrantsWhileTooMuchIsOut,
        "after k was reduced, a client is granted permits although more than k are held",
        "safety in 8",
        "requests=0,0,0 members=2 permits=2 resizes=1 proposals=1 proposers=0 clients=3",
    ),
    mutant(
        FreesAllThatComesBack,
        "after k was reduced, released permits beyond k count as free",
        "conservation in 11",
        "requests=0,1 members=2 permits=2 resizes=1 proposals=1 proposers=0 stay=0",
    ),
    mutant(
        ForgetsThePermits,
        "an epoch that changes nothing has as many permits as the first",
        "conservation in 12",
        "members=2 resizes=2 proposals=2 proposers=0",
    ),
    mutant(
        RemembersNoPermits,
        "a restarted node has forgotten that the number of permits changed",
        "served in 5",
        "members=2 resizes=2 proposals=1 crashes=1",
    ),
    mutant(
        StaysPaused,
        "after k was reduced, nobody is granted permits even when enough were released",
        "served in 8",
        "requests=0,1 members=2 permits=2 resizes=1 proposals=1 proposers=0",
    ),
    mutant(
        HearsEveryEpoch,
        "messages of the algorithm inside count in any epoch",
        "served in 13",
        "requests=1 proposals=1 proposers=0 stale",
    ),
    mutant(
        ServesAfterAPromise,
        "the node inside goes on after its layer has promised a higher epoch",
        "ledger in 7",
        "requests=0,1 proposals=1 proposers=1",
    ),
    mutant(
        GrantsUnderADeadLease,
        "a token whose lease has ended still grants",
        "fences in 11",
        "requests=0,1 proposals=1 proposers=1 stay=0,1",
    ),
    mutant(
        AsksNothingAnew,
        "waiting clients do not ask anew in a new epoch",
        "served in 1",
        "requests=1 members=1 others=1 proposals=1",
    ),
    mutant(
        ServesTheLeastUrgent,
        "clients ask the node inside with their priorities reversed",
        "order in 7",
        "requests=0:1@1,1:1@9,2:1@5",
    ),
    mutant(
        ReturnsByAmount,
        "a RETURN names an amount, not a grant, so a repeated one counts twice",
        "conservation in 11",
        "requests=1 members=1 others=1 proposals=1 doubles=1",
        FIRST_TOKEN,
    ),
    mutant(
        DoesNotWithhold,
        "the founder lets clients in before the new token is made",
        "safety in 6",
        "requests=0,2 proposals=1 proposers=2 stay=0,2",
        "request 0",
    ),
    mutant(
        StrikesNothing,
        "permits that come back to the holder stay in the ledger",
        "conservation in 2",
        "requests=0",
    ),
    mutant(
        LosesWhatIsPending,
        "permits that came ahead of the token stay in its ledger when it comes",
        "conservation in 11",
        "requests=1 members=2 proposals=1 proposers=0",
        FIRST_TOKEN,
    ),
    mutant(
        ForgetsWhoGaveUp,
        "a client that gave up too late is let in without a grant",
        "conservation in 4",
        "requests=0,1 algorithm=raymond topology=line members=2 withdrawals",
    ),
    mutant(
        TakesPartInAnyLife,
        "a restarted node takes part in an epoch that it was in before its restart",
        "served in 6",
        "requests=0,1 algorithm=jiang topology=line crashes=1 crashing=0",
    ),
    mutant(
        FoundsAgain,
        "a restarted founder comes back as a new node, with a second token inside",
        "served in 6",
        "requests=0,1 algorithm=jiang topology=line crashes=1 crashing=0",
    ),
    mutant(
        FreesAtOnce,
        "what lapses is free as soon as the new token is made",
        "ledger in 6",
        "requests=1,0 permits=2 members=1 others=1 proposals=1",
        f"request 0, {FIRST_GRANT}",
    ),
    mutant(
        TakesTokensOfAFailedLink,
        "the sender uses a token again that was on a link that failed",
        "one-token in 3",
        "requests=1 algorithm=jiang topology=line members=2 cuts=1",
    ),
    mutant(
        TakesTheFirstSlots,
        "slots are counted from the first, whichever the ledger says are held",
        "slots in 4",
        "requests=0,1 permits=2 members=2 slots",
    ),
    mutant(
        GivesSlotsTwiceAfterRecovery,
        "the ledger of a new epoch keeps grants without their slots",
        "slots in 8",
        "requests=0,1 permits=2 members=2 proposals=1 slots",
    ),
    mutant(
        ForgetsSlotsOfWhatLapses,
        "what lapses keeps its permits out, but not its slots",
        "slots in 10",
        "requests=1,0,0,0 permits=2 members=1 others=1 clients=2 proposals=1 slots",
        f"request 0a, request 0b, leave 0a, {FIRST_GRANT}, leave 0b",
    ),
    mutant(
        StrikesTheWhole,
        "a node that releases a part of its permits is struck out of the ledger",
        "ledger in 2",
        "requests=0:2 permits=2 parts",
    ),
    mutant(
        StrikesTheFirst,
        "the first permits of a grant are struck out in place of those that were released",
        "conservation in 3",
        "requests=0:2 permits=2 parts",
    ),
    mutant(
        ReturnsAPartTwice,
        "a RETURN of a part frees one permit more whenever it comes",
        "ledger in 11",
        "requests=1:3 permits=3 members=1 others=1 proposals=1 parts",
        FIRST_TOKEN,
    ),
    mutant(
        LendsWithoutAnEntry,
        "a grant is sent to another node without an entry in the ledger",
        "conservation in 3",
        "requests=0,1 permits=2 members=2",
    ),
    mutant(
        CountsAGrantFromItsArrival,
        "the time that a grant travels is not taken off its lease",
        "ledger in 9",
        "requests=0,1 permits=2 members=1 others=1 proposals=1 stay=0,1",
    ),
    mutant(
        ForgetsALateGrant,
        "a grant that came after the end of its lease is dropped, and nobody returns it",
        "served in 6",
        "requests=0,1 permits=2 members=2",
    ),
    mutant(
        LendsUnderADeadLease,
        "a token whose lease has ended still grants to other nodes",
        "fences in 14",
        "requests=0,1,2 permits=2 proposals=1 proposers=2 stay=0,1,2",
        "request 0, request 1, request 2, propose 2, deliver PROPOSE 2>1, deliver PROMISE 1>2, "
        "close 2, deliver LEDGER 2>1, deliver CONFIRM 1>2",
    ),
    mutant(
        NumbersByTheHopAlone,
        "a node that restarts twice while the token stays uses numbers of requests again",
        "served in 11",
        "requests=0,1 permits=2 members=1 others=1 crashes=2 crashing=1 stay=0 resends=2",
    ),
]

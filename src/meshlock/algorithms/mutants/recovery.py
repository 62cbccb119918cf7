"""Mistakes one could make in recovery: each undoes one rule.

The algorithm inside is ``direct`` unless the rule concerns another kind. Where a search from the
beginning would take too long, the first steps are given.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.interface import Effect, Keep
from meshlock.algorithms.mutants.mutant import Case, Mutant
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Confirm, Copy, Return
from meshlock.algorithms.recovery.records import (
    NO_EPOCH,
    Change,
    Config,
    Entry,
    Epoch,
    Fence,
    FirstLedger,
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

    def strike(self, fence: Fence) -> None:
        if self.paused() and self.token is not None:
            self.token.free = max(0, self.token.free)
        super().strike(fence)


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

    def bring_back(self, had: bool, returned: tuple[tuple[Fence, int], ...]) -> None:
        super().bring_back(False, returned)


class LosesWhatIsPending(Layer):
    """Rule 9: pending fences go along with the token."""

    def absorb(self) -> None:
        self.pending = {}


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
        token = self.token
        assert token is not None
        token.ledger = tuple([entry._replace(slots=()) for entry in token.ledger])
        return super().let_in(client)


class KeepsGrantsWithoutSlots(Layer):
    def kept(
        self, reports: dict[int, Report], top: Epoch, usable: TokenState | None
    ) -> list[Entry]:
        return [entry._replace(slots=()) for entry in super().kept(reports, top, usable)]


class LapsesWithoutSlots(Layer):
    def lapse(
        self, reports: dict[int, Report], kept: list[Entry], usable: TokenState | None
    ) -> tuple[Entry, ...]:
        lapsing = super().lapse(reports, kept, usable)
        return tuple([entry._replace(slots=()) for entry in lapsing])


def mutant(
    name: str,
    mistake: str,
    layer: type[Layer],
    breaks: str,
    steps: int,
    requests: str = "",
    members: int = 3,
    others: int = 0,
    algorithm: str = "direct",
    topology: str = "complete",
    **case: Any,
) -> Mutant:
    origin = find(algorithm)
    size = members + others
    if not requests:
        case["idle"] = True
    return Mutant(
        origin,
        name,
        mistake,
        origin.make,
        Case(size, topology, requests, members=str(members) if others else "all", **case),
        breaks=breaks,
        steps=steps,
        layer=layer,
    )


FIRST_TOKEN = ["request 1", "deliver REQUEST 1>0", "deliver TOKEN 0>1"]

MUTANTS: list[Mutant] = [
    mutant(
        "takes-tokens-of-a-former-life",
        "a restarted node takes a token that was sent to its former life",
        TakesTokensOfAFormerLife,
        "one-token",
        12,
        "1 0",
        algorithm="jiang",
        topology="line",
        members=2,
        crashes=1,
        crashing=[1],
        doubles=1,
        cuts=1,
        stale=True,
        lead=["request 1", "deliver REQUEST 1>0", "cut 0-1", "double TOKEN 0>1", "heal 0-1"],
    ),
    mutant(
        "vouches-for-a-former-life",
        "a restarted node vouches that a token never came, though its former life had it",
        VouchesForAFormerLife,
        "one-token",
        26,
        "1 2",
        members=5,
        ticks=3,
        proposals=1,
        crashes=1,
        crashing=[1],
        proposers=[0],
        stay=[2],
        lead=[
            *FIRST_TOKEN,
            *("leave 1", "request 2", "deliver REQUEST 2>0", "deliver REQUEST 0>1"),
            *(
                "deliver TOKEN 1>2",
                "crash 1",
                "restart 1",
                "tick",
                "renew 2 with 3",
                "renew 2 with 4",
            ),
            *("tick", "renew 2 with 3", "renew 2 with 4", "propose 0", "deliver PROPOSE 0>1"),
            *("deliver PROMISE 1>0", "deliver PROPOSE 0>3", "deliver PROMISE 3>0"),
        ],
    ),
    mutant(
        "returns-for-a-former-life",
        "a restarted node returns at once what a command of its former life still uses",
        ReturnsForAFormerLife,
        "ledger",
        11,
        "0",
        proposals=1,
        crashes=1,
        crashing=[0],
        proposers=[2],
        stay=[0],
        lead=["request 0", "propose 2", "deliver PROPOSE 2>0"],
    ),
    mutant(
        "others-speak-at-once",
        "a restarted node that is no member has no quiet period",
        OthersSpeakAtOnce,
        "ledger",
        11,
        "1",
        members=1,
        others=1,
        proposals=2,
        crashes=1,
        crashing=[1],
        lead=FIRST_TOKEN,
    ),
    mutant(
        "tells-what-lapses",
        "the ledger names grants that nobody reported, so an unreachable client goes on with them",
        TellsWhatLapses,
        "ledger",
        14,
        "1",
        members=1,
        others=1,
        proposals=2,
    ),
    mutant(
        "frees-what-lapses",
        "in a second change of epoch a grant that is running out counts as free",
        FreesWhatLapses,
        "ledger",
        14,
        "1",
        members=1,
        others=1,
        proposals=3,
    ),
    mutant(
        "takes-any-token",
        "an old token counts as usable although a newer epoch lives",
        TakesAnyToken,
        "one-token",
        15,
        proposals=2,
        proposers=[1, 2],
        lead=["propose 1", "deliver PROPOSE 1>2"],
    ),
    mutant(
        "keeps-grants-of-any-epoch",
        "a grant is kept though its node missed the epoch that dropped it",
        KeepsGrantsOfAnyEpoch,
        "ledger",
        16,
        "0",
        proposals=2,
        proposers=[1, 2],
        stay=[0],
        lead=["request 0", "propose 1", "deliver PROPOSE 1>2", "deliver PROMISE 2>1", "close 1"],
    ),
    mutant(
        "renews-the-dead",
        "a lease that ran out is renewed through a member that forgot its promise",
        RenewsTheDead,
        "one-token",
        14,
        proposals=1,
        proposers=[2],
        crashes=1,
        crashing=[1],
        forgets=1,
    ),
    mutant(
        "answers-without-promise",
        "answering a renewal binds nobody",
        AnswersWithoutPromise,
        "one-token",
        23,
        proposals=3,
        proposers=[0, 1],
        crashes=1,
        crashing=[0],
        forgets=1,
        wall_clock=False,
        handshakes="any",
        lead=[
            *("propose 1", "deliver PROPOSE 1>0", "deliver PROMISE 0>1", "close 1"),
            *("deliver LEDGER 1>0", "deliver CONFIRM 0>1", "crash 0", "forget 0"),
            *("tick", "renew 1 with 2", "tick", "propose 0"),
        ],
    ),
    mutant(
        "confirmed-by-any-boot",
        "a ledger is confirmed by a member that forgot that it had promised it",
        ConfirmedByAnyBoot,
        "one-token",
        21,
        members=5,
        proposals=1,
        proposers=[4],
        crashes=1,
        crashing=[2],
        forgets=1,
        lead=[
            *("propose 4", "deliver PROPOSE 4>2", "crash 2", "forget 2", "tick"),
            *("renew 0 with 1", "renew 0 with 3", "deliver PROPOSE 4>3", "deliver PROMISE 3>4"),
            *(
                "deliver PROMISE 2>4",
                "close 4",
                "deliver LEDGER 4>3",
                "deliver CONFIRM 3>4",
                "tick",
            ),
            *("renew 0 with 1", "renew 0 with 2"),
        ],
    ),
    mutant(
        "epoch-without-boot",
        "a proposer that forgot uses the number of an epoch again",
        EpochWithoutBoot,
        "fences",
        26,
        "0 0",
        birth=True,
        proposals=2,
        proposers=[0],
        crashes=1,
        crashing=[0],
        forgets=1,
        wall_clock=False,
        stay=[0],
        lead=[
            *("tick", "tick", "propose 0", "deliver PROPOSE 0>1", "deliver PROMISE 1>0"),
            *("close 0", "deliver LEDGER 0>1", "deliver CONFIRM 1>0", "request 0a", "tick"),
            *("renew 0 with 1", "tick", "crash 0", "forget 0", "tick", "tick"),
        ],
    ),
    mutant(
        "forgets-its-promise",
        "the promise is not on disk, so fences fall back",
        ForgetsItsPromise,
        "fences",
        24,
        "0 1",
        proposals=2,
        proposers=[0, 1],
        crashes=1,
        crashing=[2],
        stay=[0, 1],
        lead=[
            *("propose 1", "deliver PROPOSE 1>2", "deliver PROMISE 2>1", "close 1"),
            *("deliver LEDGER 1>2", "deliver CONFIRM 2>1", "request 1", "tick", "renew 1 with 2"),
            *("tick", "crash 2", "restart 2", "tick", "tick"),
        ],
    ),
    mutant(
        "does-not-wait",
        "a lost token is replaced without waiting for the leases to end",
        DoesNotWait,
        "one-token",
        6,
        "0",
        proposals=1,
        proposers=[2],
    ),
    mutant(
        "counts-from-the-reply",
        "a lease is counted from the answer instead of from the question",
        CountsFromTheReply,
        "one-token",
        11,
        proposals=1,
        proposers=[2],
        renewals="travel",
    ),
    mutant(
        "votes-at-once",
        "a restarted member that forgot everything votes at once",
        VotesAtOnce,
        "one-token",
        12,
        proposals=1,
        proposers=[2],
        crashes=1,
        crashing=[1],
        forgets=1,
    ),
    mutant(
        "switches-on-its-promise",
        "a client's grant belongs to the new epoch as soon as it is promised",
        SwitchesOnItsPromise,
        "ledger",
        12,
        "0",
        proposals=1,
        proposers=[2],
        stay=[0],
    ),
    mutant(
        "takes-back-an-unaccepted-token",
        "the sender of a token that is not acknowledged takes it back",
        TakesBackAnUnacceptedToken,
        "one-token",
        3,
        "0 1",
    ),
    mutant(
        "forgets-the-way",
        "the time that a token travels is not taken off its lease",
        ForgetsTheWay,
        "one-token",
        12,
        "1",
        proposals=1,
        proposers=[2],
        stay=[1],
    ),
    mutant(
        "founder",
        "one node is started with an option to create the token, and started again",
        Founder,
        "ledger",
        3,
        "0",
        birth=True,
        crashes=1,
        crashing=[0],
    ),
    mutant(
        "no-margin",
        "who holds a lease by a slow clock counts as long as who waits by a right one",
        NoMargin,
        "one-token",
        9,
        "0",
        proposals=1,
        proposers=[2],
        stay=[0],
        slow_ticks=1,
        lease=1,
        wait=2,
    ),
    mutant(
        "takes-a-token-twice",
        "a token that was sent again because its receipt was late is taken again",
        TakesATokenTwice,
        "ledger",
        6,
        "1",
        algorithm="jiang",
        topology="line",
        members=2,
        resends=1,
        cuts=1,
    ),
    mutant(
        "sends-again-for-longer",
        "a token that is sent again gets a new lease",
        SendsAgainForLonger,
        "one-token",
        12,
        "2",
        algorithm="jiang",
        topology="line",
        members=1,
        others=2,
        proposals=1,
        resends=1,
        cuts=2,
        ticks=3,
        lead=[
            *("request 2", "deliver REQUEST 2>1", "deliver REQUEST 1>0", "deliver TOKEN 0>1"),
            *("cut 0-1", "cut 1-2", "propose 0", "close 0", "tick"),
        ],
    ),
    mutant(
        "renews-by-copy",
        "a copy of the ledger that comes late counts as a renewal",
        RenewsByCopy,
        "ledger",
        20,
        "0",
        proposals=2,
        proposers=[1, 2],
        stay=[0],
        handshakes="any",
        lead=[
            *("request 0", "propose 2", "deliver PROPOSE 2>0", "deliver PROMISE 0>2"),
            *("deliver PROPOSE 2>1", "deliver PROMISE 1>2", "close 2", "deliver LEDGER 2>1"),
            *("deliver CONFIRM 1>2", "renew 2 with 0", "propose 1", "deliver PROPOSE 1>2"),
            *("deliver PROMISE 2>1", "close 1"),
        ],
    ),
    mutant(
        "removes-two-at-once",
        "two members are removed by one change, so majorities need not meet",
        RemovesTwoAtOnce,
        "one-token",
        11,
        proposals=2,
        proposers=[0, 1],
        member_changes=["remove 2"],
        lead=["remove 2 by 0", "propose 1", "deliver PROPOSE 1>2"],
    ),
    mutant(
        "changes-unconfirmed",
        "members are changed from an epoch of which nobody knows whether it was confirmed",
        ChangesUnconfirmed,
        "one-token",
        16,
        proposals=3,
        proposers=[1, 2],
        member_changes=["remove 0", "remove 1"],
        lead=[
            *("remove 0 by 2", "deliver PROPOSE 2>1", "deliver PROMISE 1>2", "close 2"),
            *("propose 1", "deliver PROPOSE 1>0", "deliver PROMISE 0>1", "close 1"),
            *("deliver LEDGER 1>0", "deliver CONFIRM 0>1"),
        ],
    ),
    mutant(
        "forgets-its-members",
        "who the members are is not on disk, so after a restart the first ones count again",
        ForgetsItsMembers,
        "one-token",
        30,
        "1",
        members=1,
        others=2,
        proposals=3,
        proposers=[0],
        member_changes=["add 1", "add 2"],
        crashes=1,
        crashing=[0],
        stay=[1],
        lead=[
            *("add 1 by 0", "deliver PROPOSE 0>1", "deliver PROMISE 1>0", "close 0"),
            *("deliver LEDGER 0>1", "deliver CONFIRM 1>0", "add 2 by 0", "deliver PROPOSE 0>1"),
            *("deliver PROPOSE 0>2", "deliver PROMISE 1>0", "deliver PROMISE 2>0", "close 0"),
            *("deliver LEDGER 0>1", "deliver LEDGER 0>2", "deliver CONFIRM 1>0", "request 1"),
            *("deliver REQUEST 1>0", "deliver TOKEN 0>1", "crash 0", "restart 0"),
        ],
    ),
    mutant(
        "goes-by-the-last-change",
        "the last change of members counts, though a later epoch was confirmed without it",
        GoesByTheLastChange,
        "one-token",
        43,
        members=4,
        others=1,
        proposals=4,
        proposers=[0, 1],
        member_changes=["add 4", "remove 0"],
        lead=[
            *("add 4 by 0", "deliver PROPOSE 0>1", "deliver PROPOSE 0>3", "deliver PROPOSE 0>4"),
            *("deliver PROMISE 3>0", "deliver PROMISE 4>0", "close 0", "propose 1"),
            *("deliver PROPOSE 1>0", "deliver PROPOSE 1>2", "deliver PROPOSE 1>3"),
            *("deliver PROMISE 2>1", "deliver PROMISE 3>1", "close 1", "deliver LEDGER 1>2"),
            *("deliver LEDGER 1>3", "deliver CONFIRM 2>1", "deliver CONFIRM 3>1", "tick"),
            *("renew 1 with 2", "renew 1 with 3", "tick", "remove 0 by 1"),
            *("deliver PROPOSE 1>2", "deliver PROMISE 2>1", "close 1", "deliver LEDGER 1>2"),
            *("deliver CONFIRM 2>1", "propose 0", "deliver PROPOSE 0>3", "deliver PROPOSE 0>4"),
            *("deliver PROMISE 3>0", "deliver PROMISE 4>0"),
        ],
    ),
    mutant(
        "grants-while-too-much-is-out",
        "after k fell somebody is let in although more than that is out",
        GrantsWhileTooMuchIsOut,
        "safety",
        8,
        "0 0 0",
        members=2,
        permits=2,
        resizes=[1],
        proposals=1,
        proposers=[0],
        clients=3,
    ),
    mutant(
        "frees-all-that-comes-back",
        "after k fell, what comes back is free although it was too much",
        FreesAllThatComesBack,
        "conservation",
        11,
        "0 1",
        members=2,
        permits=2,
        resizes=[1],
        proposals=1,
        proposers=[0],
        stay=[0],
    ),
    mutant(
        "forgets-the-permits",
        "an epoch that changes nothing has as many permits as the first",
        ForgetsThePermits,
        "conservation",
        12,
        members=2,
        resizes=[2],
        proposals=2,
        proposers=[0],
    ),
    mutant(
        "remembers-no-permits",
        "a restarted node has forgotten that the number of permits changed",
        RemembersNoPermits,
        "served",
        5,
        members=2,
        resizes=[2],
        proposals=1,
        crashes=1,
    ),
    mutant(
        "stays-paused",
        "after k fell, nobody is let in even when enough came back",
        StaysPaused,
        "served",
        8,
        "0 1",
        members=2,
        permits=2,
        resizes=[1],
        proposals=1,
        proposers=[0],
    ),
    mutant(
        "hears-every-epoch",
        "messages of the algorithm inside count in any epoch",
        HearsEveryEpoch,
        "handlers",
        9,
        "1",
        proposals=1,
        proposers=[0],
        stale=True,
    ),
    mutant(
        "serves-after-a-promise",
        "the node inside goes on after its layer has promised a higher epoch",
        ServesAfterAPromise,
        "ledger",
        7,
        "0 1",
        proposals=1,
        proposers=[1],
    ),
    mutant(
        "grants-under-a-dead-lease",
        "a token whose lease has ended still grants",
        GrantsUnderADeadLease,
        "fences",
        11,
        "0 1",
        proposals=1,
        proposers=[1],
        stay=[0, 1],
    ),
    mutant(
        "asks-nothing-anew",
        "waiting clients do not ask anew in a new epoch",
        AsksNothingAnew,
        "served",
        1,
        "1",
        members=1,
        others=1,
        proposals=1,
    ),
    mutant(
        "returns-by-amount",
        "a RETURN gives back an amount, not a grant, so twice is twice",
        ReturnsByAmount,
        "conservation",
        11,
        "1",
        members=1,
        others=1,
        proposals=1,
        doubles=1,
        lead=FIRST_TOKEN,
    ),
    mutant(
        "does-not-withhold",
        "the founder lets clients in before the new token is made",
        DoesNotWithhold,
        "safety",
        6,
        "0 2",
        proposals=1,
        proposers=[2],
        stay=[0, 2],
        lead=["request 0"],
    ),
    mutant(
        "strikes-nothing",
        "permits that come back to the holder stay in the ledger",
        StrikesNothing,
        "conservation",
        2,
        "0",
    ),
    mutant(
        "loses-what-is-pending",
        "permits that came ahead of the token stay in its ledger when it comes",
        LosesWhatIsPending,
        "conservation",
        11,
        "1",
        members=2,
        proposals=1,
        proposers=[0],
        lead=FIRST_TOKEN,
    ),
    mutant(
        "forgets-who-gave-up",
        "a client that gave up too late is let in without a grant",
        ForgetsWhoGaveUp,
        "conservation",
        4,
        "0 1",
        algorithm="raymond",
        topology="line",
        members=2,
        withdrawals=True,
    ),
    mutant(
        "takes-part-in-any-life",
        "a restarted node takes part in an epoch that a former life of it was in",
        TakesPartInAnyLife,
        "served",
        6,
        "0 1",
        algorithm="jiang",
        topology="line",
        crashes=1,
        crashing=[0],
    ),
    mutant(
        "founds-again",
        "a restarted founder comes back as a newcomer, with a second token inside",
        FoundsAgain,
        "served",
        6,
        "0 1",
        algorithm="jiang",
        topology="line",
        crashes=1,
        crashing=[0],
    ),
    mutant(
        "frees-at-once",
        "what lapses is free as soon as the new token is made",
        FreesAtOnce,
        "ledger",
        8,
        "1 0",
        permits=2,
        members=1,
        others=1,
        proposals=1,
        lead=[*FIRST_TOKEN, "request 0", "deliver REQUEST 0>1", "deliver TOKEN 1>0"],
    ),
    mutant(
        "takes-tokens-of-a-failed-link",
        "the sender takes a token back that was on a link that failed",
        TakesTokensOfAFailedLink,
        "one-token",
        3,
        "1",
        algorithm="jiang",
        topology="line",
        members=2,
        cuts=1,
    ),
    mutant(
        "takes-the-first-slots",
        "slots are counted from the first, whatever the ledger says is out",
        TakesTheFirstSlots,
        "slots",
        4,
        "0 1",
        permits=2,
        members=2,
        slots=True,
    ),
    mutant(
        "gives-slots-twice-after-recovery",
        "the ledger of a new epoch keeps grants without their slots",
        KeepsGrantsWithoutSlots,
        "slots",
        8,
        "0 1",
        permits=2,
        members=2,
        proposals=1,
        slots=True,
    ),
    mutant(
        "forgets-slots-of-what-lapses",
        "what lapses keeps its permits out, but not its slots",
        LapsesWithoutSlots,
        "slots",
        10,
        "1 0 0",
        permits=2,
        members=1,
        others=1,
        proposals=1,
        slots=True,
        lead=[*FIRST_TOKEN, "request 0a", "deliver REQUEST 0>1", "deliver TOKEN 1>0", "leave 0a"],
    ),
]

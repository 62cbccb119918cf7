"""Mistakes one could make in recovery: each undoes one rule.

The first fourteen are rules that an earlier sketch lacked, the next nine are cruder; then come the
rules about tokens sent again, copies of the ledger, the order of service, and members that
change. Each has bounds that are just wide enough to show it; the original holds within the
same bounds.
"""

from __future__ import annotations

from meshlock.algorithms.interface import Effect
from meshlock.algorithms.recovery.messages import (
    NO_EPOCH,
    Asked,
    Config,
    Copy,
    Doubt,
    Entry,
    Epoch,
    Fence,
    Ledger,
    Papers,
    Release,
    Report,
    Still,
    Token,
)
from meshlock.algorithms.recovery.node import HeldToken, Pool, Proposal, RecoveryNode
from meshlock.check.recovery import Bounds, Make


class TakesTokensOfAFormerLife(RecoveryNode):
    def is_addressed(self, message: Token) -> bool:
        return True


class VouchesForAFormerLife(RecoveryNode):
    def vouches(self, receiver: Report, doubt: Doubt) -> bool:
        return receiver[4] < (doubt[0][0], doubt[0][1])


class ReleasesAFormerLife(RecoveryNode):
    def disown(self, missing: dict[Fence, int], now: int) -> None:
        self.releasing.update(missing)


class OthersSpeakAtOnce(RecoveryNode):
    def silence(self) -> int:
        return self.pool.wait if self.member else 0


class TellsWhatLapses(RecoveryNode):
    def told(self, proposal: Proposal) -> tuple[Entry, ...]:
        return proposal.kept + tuple([(*entry[:3], False) for entry in proposal.lapsing])


class FreesWhatLapses(RecoveryNode):
    def is_free(self, entry: Entry, report: Report | None) -> bool:
        return report is not None and entry[1] not in [fence for fence, _ in report[3]]


class TakesAnyToken(RecoveryNode):
    def is_current(self, epoch: Epoch, top: Epoch) -> bool:
        return True


class KeepsGrantsOfAnyEpoch(RecoveryNode):
    def belongs(self, report: Report, top: Epoch) -> bool:
        return True


class RenewsTheDead(RecoveryNode):
    def renewable(self, until: int, now: int) -> bool:
        return True


class AnswersWithoutPromise(RecoveryNode):
    def answer(self, epoch: Epoch) -> None:
        self.answered = max(self.answered, epoch)


class ConfirmedByAnyBoot(RecoveryNode):
    def confirms(self, still: Still, proposal: Proposal) -> bool:
        return proposal.closed


class EpochWithoutBoot(RecoveryNode):
    def next_epoch(self, floor: int) -> Epoch:
        counter, me, _ = super().next_epoch(floor)
        return (counter, me, 0)


class ForgetsItsPromise(RecoveryNode):
    def start(self, now: int, boot: int, promised: Epoch, config: Config | None = None) -> None:
        super().start(now, boot, NO_EPOCH, config)


class SaysNothingAgain(RecoveryNode):
    def repeat(self, now: int) -> None:
        pass


class DoesNotWait(RecoveryNode):
    def waited(self, proposal: Proposal, now: int) -> bool:
        return True


class CountsFromTheReply(RecoveryNode):
    def counted_from(self, sent: int, now: int) -> int:
        return now


class VotesAtOnce(RecoveryNode):
    def silence(self) -> int:
        return 0


class SwitchesOnItsPromise(RecoveryNode):
    def promise(self, epoch: Epoch, now: int) -> Report:
        report = super().promise(epoch, now)
        for grant in self.grants.values():
            grant.epoch = epoch
        self.adopted = epoch
        return report


class TakesBackADoubtfulToken(RecoveryNode):
    def wake(self, now: int) -> None:
        super().wake(now)
        if self.doubt is not None and self.token is None:
            self.token = HeldToken(self.doubt[0], now + 1)
            self.doubt = None


class ForgetsTheWay(RecoveryNode):
    def arrives_until(self, message: Token, now: int) -> int:
        return now + message.left


class TokenByAmount(HeldToken):
    def give_back(self, fence: Fence, h: int) -> None:
        self.ledger = tuple([entry for entry in self.ledger if entry[1] != fence])
        self.free += h


class ReleasesByAmount(RecoveryNode):
    def receive_release(self, release: Release, now: int) -> None:
        if self.token is not None:
            self.token = TokenByAmount(self.token.papers(), self.token.until)
        super().receive_release(release, now)


class Founder(RecoveryNode):
    """Node 0 is started with the option to create the token."""

    def start(self, now: int, boot: int, promised: Epoch, config: Config | None = None) -> None:
        super().start(now, boot, promised, config)
        if self.me == 0:
            epoch = (1, 0, boot)
            self.promised = self.adopted = epoch
            self.hop_seen = (epoch, 0)
            papers: Papers = (epoch, 0, self.pool.permits, (), 0)
            self.token = HeldToken(papers, now + self.pool.lease)


class NoMargin(RecoveryNode):
    """Who holds counts as long as who waits."""

    def __init__(self, me: int, pool: Pool, out: list[Effect]) -> None:
        even = Pool(pool.nodes, pool.members, pool.permits, pool.wait, pool.wait)
        super().__init__(me, even, out)


class TakesATokenTwice(RecoveryNode):
    def is_new(self, epoch: Epoch, hop: int) -> bool:
        return (epoch, hop) >= self.hop_seen


class SendsAgainForLonger(RecoveryNode):
    def send_again(self, now: int) -> None:
        self.doubt_until = now + self.pool.lease
        super().send_again(now)


class RenewsByCopy(RecoveryNode):
    def receive_copy(self, copy: Copy, now: int) -> None:
        super().receive_copy(copy, now)
        for grant in self.grants.values():
            grant.until = now + self.pool.lease


class TakesCopiesOfAFormerLife(RecoveryNode):
    def receive_copy(self, copy: Copy, now: int) -> None:
        copy.boot = self.boot
        super().receive_copy(copy, now)


class SettlesByAnyLedger(RecoveryNode):
    def receive_ledger(self, ledger: Ledger, now: int) -> None:
        ledger.yours = self.boot
        super().receive_ledger(ledger, now)


class FirstComeFirstServed(RecoveryNode):
    def line_up(self, asked: Asked) -> None:
        if asked[0] not in [other[0] for other in self.queue]:
            self.queue.append(asked)


class ServesWhoFits(RecoveryNode):
    def decide(self, now: int) -> None:
        if self.usable(now) and self.token is not None:
            free = self.token.free
            self.queue.sort(key=lambda asked: asked[2] > free)
        super().decide(now)


class RemovesTwoAtOnce(RecoveryNode):
    def after(self, proposal: Proposal) -> tuple[int, ...]:
        return (self.me,) if proposal.change is not None else super().after(proposal)


class ChangesUnconfirmed(RecoveryNode):
    def may_change(self, now: int) -> bool:
        return True


class ForgetsItsMembers(RecoveryNode):
    def start(self, now: int, boot: int, promised: Epoch, config: Config | None = None) -> None:
        super().start(now, boot, promised)


class GoesByTheLastChange(RecoveryNode):
    def adopt(
        self, epoch: Epoch, entries: tuple[Entry, ...], config: Config, holder: int, now: int
    ) -> None:
        if config[1] == self.config[1]:
            config = self.config
        super().adopt(epoch, entries, config, holder, now)

    def after(self, proposal: Proposal) -> tuple[int, ...]:
        latest = self.latest(proposal)[1]
        if proposal.change is None:
            return latest
        added, node = proposal.change
        rest = [member for member in latest if member != node]
        return tuple(sorted([*rest, node])) if added else tuple(rest)


class RecoveryMutant:
    def __init__(
        self, name: str, mistake: str, make: Make, bounds: Bounds, script: list[str] | None = None
    ) -> None:
        self.name = f"recovery/{name}"
        self.mistake = mistake
        self.make = make
        self.bounds = bounds
        # the way in, where a search from the beginning would take too long
        self.script = script if script is not None else []


MUTANTS: list[RecoveryMutant] = [
    RecoveryMutant(
        "takes-tokens-of-a-former-life",
        "a restarted node takes a TOKEN that was sent to its former life",
        TakesTokensOfAFormerLife,
        Bounds(proposals=0, crashes=1, crashing=(1,), wants={1: 1}, doubles=1),
    ),
    RecoveryMutant(
        "vouches-for-a-former-life",
        "a restarted node vouches that a TOKEN in doubt never came, though its former life had it",
        VouchesForAFormerLife,
        Bounds(proposals=1, crashes=1, crashing=(1,), wants={1: 1, 2: 1}, proposers=(0,)),
        [
            *("ask 1", "deliver REQUEST 1>0", "deliver TOKEN 0>1", "leave 1", "ask 2"),
            *("deliver REQUEST 2>0", "deliver REQUEST 0>1", "deliver TOKEN 1>2"),
            *("crash 1", "restart 1"),
        ],
    ),
    RecoveryMutant(
        "releases-a-former-life",
        "a restarted node gives back at once what a command of its former life still uses",
        ReleasesAFormerLife,
        Bounds(proposals=1, crashes=1, crashing=(0,), wants={0: 1}, proposers=(2,), leaves=False),
        ["ask 0", "propose 2", "deliver PROPOSE 2>0"],
    ),
    RecoveryMutant(
        "others-speak-at-once",
        "a restarted node that is no member is not silent first",
        OthersSpeakAtOnce,
        Bounds(1, 1, proposals=2, crashes=1, crashing=(1,), wants={1: 1}),
        ["ask 1", "deliver REQUEST 1>0", "deliver TOKEN 0>1"],
    ),
    RecoveryMutant(
        "tells-what-lapses",
        "the ledger names grants that nobody reported, so an unreachable client goes on with them",
        TellsWhatLapses,
        Bounds(1, 1, proposals=2, wants={1: 1}),
    ),
    RecoveryMutant(
        "frees-what-lapses",
        "in a second change of epoch a grant that is running out counts as free",
        FreesWhatLapses,
        Bounds(1, 1, proposals=3, wants={1: 1}),
    ),
    RecoveryMutant(
        "takes-any-token",
        "an old token counts as usable although a newer epoch lives",
        TakesAnyToken,
        Bounds(proposals=2, wants={}, proposers=(1, 2)),
        ["propose 1", "deliver PROPOSE 1>2"],
    ),
    RecoveryMutant(
        "keeps-grants-of-any-epoch",
        "a grant is kept though its node missed the epoch that dropped it",
        KeepsGrantsOfAnyEpoch,
        Bounds(proposals=2, wants={0: 1}, proposers=(1, 2), leaves=False),
        ["ask 0", "propose 1", "deliver PROPOSE 1>2", "deliver PROMISE 2>1", "close 1"],
    ),
    RecoveryMutant(
        "renews-the-dead",
        "a lease that ran out is renewed through a member that forgot its promise",
        RenewsTheDead,
        Bounds(proposals=1, wants={}, proposers=(2,), crashes=1, crashing=(1,), forgets=1),
    ),
    RecoveryMutant(
        "answers-without-promise",
        "answering a renewal binds nobody",
        AnswersWithoutPromise,
        Bounds(
            proposals=3,
            wants={},
            proposers=(0, 1),
            crashes=1,
            crashing=(0,),
            forgets=1,
            wall_clock=False,
        ),
        [
            *("propose 1", "deliver PROPOSE 1>0", "deliver PROMISE 0>1", "close 1"),
            *("deliver LEDGER 1>0", "deliver STILL 0>1", "crash 0", "forget 0"),
            *("tick", "renew 1 with 2", "tick", "propose 0"),
        ],
    ),
    RecoveryMutant(
        "confirmed-by-any-boot",
        "a ledger is confirmed by a member that forgot that it had promised it",
        ConfirmedByAnyBoot,
        Bounds(5, proposals=1, wants={}, proposers=(4,), crashes=1, crashing=(2,), forgets=1),
        [
            *("propose 4", "deliver PROPOSE 4>2", "crash 2", "forget 2", "tick"),
            *("renew 0 with 1", "renew 0 with 3", "deliver PROPOSE 4>3", "deliver PROMISE 3>4"),
            *("deliver PROMISE 2>4", "close 4", "deliver LEDGER 4>3", "deliver STILL 3>4", "tick"),
            *("renew 0 with 1", "renew 0 with 2"),
        ],
    ),
    RecoveryMutant(
        "epoch-without-boot",
        "a proposer that forgot uses the number of an epoch again",
        EpochWithoutBoot,
        Bounds(
            born=True,
            proposals=2,
            wants={0: 1},
            asks=2,
            proposers=(0,),
            crashes=1,
            crashing=(0,),
            forgets=1,
            wall_clock=False,
            leaves=False,
        ),
        [
            *("tick", "tick", "propose 0", "deliver PROPOSE 0>1", "deliver PROMISE 1>0"),
            *("close 0", "deliver LEDGER 0>1", "deliver STILL 1>0", "ask 0", "tick"),
            *("renew 0 with 1", "tick", "crash 0", "forget 0", "tick", "tick"),
        ],
    ),
    RecoveryMutant(
        "forgets-its-promise",
        "the promise is not on disk, so fences fall back",
        ForgetsItsPromise,
        Bounds(
            proposals=2,
            wants={0: 1, 1: 1},
            proposers=(0, 1),
            crashes=1,
            crashing=(2,),
            leaves=False,
        ),
        [
            *("propose 1", "deliver PROPOSE 1>2", "deliver PROMISE 2>1", "close 1"),
            *("deliver LEDGER 1>2", "deliver STILL 2>1", "ask 1", "tick", "renew 1 with 2"),
            *("tick", "crash 2", "restart 2", "tick", "tick"),
        ],
    ),
    RecoveryMutant(
        "says-nothing-again",
        "requests and releases are not sent anew in a new epoch",
        SaysNothingAgain,
        Bounds(1, 1, proposals=1, wants={1: 1}),
    ),
    RecoveryMutant(
        "does-not-wait",
        "a lost token is replaced without waiting for the leases to end",
        DoesNotWait,
        Bounds(proposals=1, wants={0: 1}, proposers=(2,)),
    ),
    RecoveryMutant(
        "counts-from-the-reply",
        "a lease is counted from the answer instead of from the question",
        CountsFromTheReply,
        Bounds(proposals=1, wants={}, proposers=(2,), detached=True, leaves=False),
    ),
    RecoveryMutant(
        "votes-at-once",
        "a restarted member that forgot everything votes at once",
        VotesAtOnce,
        Bounds(proposals=1, crashes=1, crashing=(1,), wants={}, proposers=(2,), forgets=1),
    ),
    RecoveryMutant(
        "switches-on-its-promise",
        "a client's grant belongs to the new epoch as soon as it is promised",
        SwitchesOnItsPromise,
        Bounds(proposals=1, wants={0: 1}, proposers=(2,), leaves=False),
    ),
    RecoveryMutant(
        "takes-back-a-doubtful-token",
        "the sender of a TOKEN that is not acknowledged takes it back",
        TakesBackADoubtfulToken,
        Bounds(proposals=0, wants={0: 1, 1: 1}),
    ),
    RecoveryMutant(
        "forgets-the-way",
        "the time that a TOKEN travels is not taken off its lease",
        ForgetsTheWay,
        Bounds(proposals=1, wants={1: 1}, proposers=(2,), leaves=False),
    ),
    RecoveryMutant(
        "releases-by-amount",
        "a RELEASE gives back an amount, not a grant, so twice is twice",
        ReleasesByAmount,
        Bounds(proposals=0, wants={0: 1, 1: 1}, permits=2, doubles=1),
        ["ask 0", "ask 1", "deliver REQUEST 1>0"],
    ),
    RecoveryMutant(
        "founder",
        "one node is started with an option to create the token, and started again",
        Founder,
        Bounds(born=True, proposals=0, crashes=1, crashing=(0,), wants={0: 1}),
    ),
    RecoveryMutant(
        "no-margin",
        "who holds a lease by a slow clock counts as long as who waits by a right one",
        NoMargin,
        Bounds(proposals=1, wants={0: 1}, proposers=(2,), leaves=False, slow=1, lease=1, wait=2),
    ),
    RecoveryMutant(
        "takes-a-token-twice",
        "a TOKEN that was sent again because its GOT was late is taken again",
        TakesATokenTwice,
        Bounds(proposals=0, wants={1: 1}, repeats=1),
    ),
    RecoveryMutant(
        "sends-again-for-longer",
        "a TOKEN that is sent again gets a new lease",
        SendsAgainForLonger,
        Bounds(1, 2, 2, wants={1: 1, 2: 1}, leaves=False, repeats=1),
        [
            *("ask 1", "deliver REQUEST 1>0", "deliver TOKEN 0>1", "deliver GOT 1>0", "ask 2"),
            *("deliver REQUEST 2>0", "deliver REQUEST 0>1", "propose 0", "close 0", "tick"),
        ],
    ),
    RecoveryMutant(
        "renews-by-copy",
        "a copy of the ledger that comes late counts as a renewal",
        RenewsByCopy,
        Bounds(wants={0: 1}, proposals=2, proposers=(1, 2), leaves=False),
        [
            *("ask 0", "propose 2", "deliver PROPOSE 2>0", "deliver PROMISE 0>2"),
            *("deliver PROPOSE 2>1", "deliver PROMISE 1>2", "close 2", "deliver LEDGER 2>1"),
            *("deliver STILL 1>2", "renew 2 with 0", "propose 1", "deliver PROPOSE 1>2"),
            *("deliver PROMISE 2>1", "close 1"),
        ],
    ),
    RecoveryMutant(
        "takes-copies-of-a-former-life",
        "a restarted node takes a copy of the ledger that does not know what was granted since",
        TakesCopiesOfAFormerLife,
        Bounds(
            permits=2,
            wants={0: 1, 1: 1},
            proposals=0,
            crashes=2,
            crashing=(1,),
            doubles=1,
            leaves=False,
            stale=True,
        ),
        [
            *("crash 1", "restart 1", "renew 0 with 1", "double COPY 0>1", "ask 1"),
            *("deliver REQUEST 1>0", "deliver TOKEN 0>1", "deliver GOT 1>0", "ask 0"),
            *("deliver REQUEST 0>1", "deliver TOKEN 1>0", "deliver GOT 0>1", "crash 1"),
            "restart 1",
        ],
    ),
    RecoveryMutant(
        "settles-by-any-ledger",
        "a restarted node takes a late LEDGER for all that its former life was granted",
        SettlesByAnyLedger,
        Bounds(
            permits=2,
            wants={1: 1, 2: 1},
            proposals=1,
            proposers=(2,),
            crashes=1,
            crashing=(1,),
            leaves=False,
        ),
        [
            *("propose 2", "deliver PROPOSE 2>0", "deliver PROMISE 0>2", "close 2"),
            *("deliver LEDGER 2>0", "deliver STILL 0>2", "renew 2 with 1", "deliver COPY 2>1"),
            *("ask 1", "deliver REQUEST 1>2", "deliver TOKEN 2>1", "deliver GOT 1>2", "ask 2"),
            *("deliver REQUEST 2>1", "deliver TOKEN 1>2", "deliver GOT 2>1", "crash 1"),
            "restart 1",
        ],
    ),
    RecoveryMutant(
        "first-come-first-served",
        "requests are served in the order of their coming, whatever their priority",
        FirstComeFirstServed,
        Bounds(clients=((0, 1, 0), (1, 1, 0), (2, 1, 1)), proposals=0),
        ["ask 0", "ask 1"],
    ),
    RecoveryMutant(
        "serves-who-fits",
        "whoever wants less overtakes the first in rank",
        ServesWhoFits,
        Bounds(permits=2, clients=((0, 1, 0), (0, 1, 0), (1, 2, 1)), proposals=0),
    ),
    RecoveryMutant(
        "removes-two-at-once",
        "two members are removed by one change, so majorities need not meet",
        RemovesTwoAtOnce,
        Bounds(wants={}, proposals=2, proposers=(0, 1), changes=((False, 2),)),
        ["remove 2 by 0", "propose 1", "deliver PROPOSE 1>2"],
    ),
    RecoveryMutant(
        "changes-unconfirmed",
        "members are changed from an epoch of which nobody knows whether it was confirmed",
        ChangesUnconfirmed,
        Bounds(wants={}, proposals=3, proposers=(1, 2), changes=((False, 0), (False, 1))),
        [
            *("remove 0 by 2", "deliver PROPOSE 2>1", "deliver PROMISE 1>2", "close 2"),
            *("propose 1", "deliver PROPOSE 1>0", "deliver PROMISE 0>1", "close 1"),
            *("deliver LEDGER 1>0", "deliver STILL 0>1"),
        ],
    ),
    RecoveryMutant(
        "forgets-its-members",
        "who the members are is not on disk, so after a restart the first ones count again",
        ForgetsItsMembers,
        Bounds(
            1,
            2,
            wants={1: 1},
            proposals=3,
            proposers=(0,),
            changes=((True, 1), (True, 2)),
            crashes=1,
            crashing=(0,),
            leaves=False,
        ),
        [
            *("add 1 by 0", "deliver PROPOSE 0>1", "deliver PROMISE 1>0", "close 0"),
            *("deliver LEDGER 0>1", "deliver STILL 1>0", "add 2 by 0", "deliver PROPOSE 0>1"),
            *("deliver PROPOSE 0>2", "deliver PROMISE 1>0", "deliver PROMISE 2>0", "close 0"),
            *("deliver LEDGER 0>1", "deliver LEDGER 0>2", "deliver STILL 1>0", "ask 1"),
            *("deliver REQUEST 1>0", "deliver TOKEN 0>1", "crash 0", "restart 0"),
        ],
    ),
    RecoveryMutant(
        "goes-by-the-last-change",
        "the last change of members counts, though a later epoch was confirmed without it",
        GoesByTheLastChange,
        Bounds(
            4,
            1,
            wants={},
            proposals=4,
            proposers=(0, 1),
            changes=((True, 4), (False, 0)),
        ),
        [
            *("add 4 by 0", "deliver PROPOSE 0>1", "deliver PROPOSE 0>3", "deliver PROPOSE 0>4"),
            *("deliver PROMISE 3>0", "deliver PROMISE 4>0", "close 0", "propose 1"),
            *("deliver PROPOSE 1>0", "deliver PROPOSE 1>2", "deliver PROPOSE 1>3"),
            *("deliver PROMISE 2>1", "deliver PROMISE 3>1", "close 1", "deliver LEDGER 1>2"),
            *("deliver LEDGER 1>3", "deliver STILL 2>1", "deliver STILL 3>1", "tick"),
            *("renew 1 with 2", "renew 1 with 3", "tick", "remove 0 by 1"),
            *("deliver PROPOSE 1>2", "deliver PROMISE 2>1", "close 1", "deliver LEDGER 1>2"),
            *("deliver STILL 2>1", "propose 0", "deliver PROPOSE 0>3", "deliver PROPOSE 0>4"),
            *("deliver PROMISE 3>0", "deliver PROMISE 4>0"),
        ],
    ),
]

"""The recovery layer as a transition system: leases, promises, ledgers and tokens.

The rules are those of docs/how-it-works/recovery.md. The algorithm inside may do anything: it may
give any free permit to any node, and lose or keep the token. Permits are told apart, so "never more
than k in use" is "each permit has at most one holder under a lease that runs". The members are
fixed here, and disks are kept. Clocks: a lease lasts at most L of true time, a wait at least W, and
W is no less than L; that is what the bound on clock rates gives.
"""

from __future__ import annotations

import z3
from system import Epoch, Node, Permit, Quorum, State, System, Time, Truth, every, some

L, W = z3.Reals("L W")
in_quorum = z3.Function("in_quorum", Quorum, Node, Truth)
both = z3.Function("both", Quorum, Quorum, Node)
"""A node that is in two quorums."""
heard = z3.Function("heard", Epoch, Node, Truth)
"""Which reports reach a proposer before it closes: any of them."""
heard_vote = z3.Function("heard_vote", Epoch, Node, Truth)
"""A node that was quiet reports a second time: whether that reaches it too."""

SIGNATURE = {
    "now": (Time,),
    # members: promises, answers to renewals, quiet periods
    "promised": (Node, Epoch),
    "adopted": (Node, Epoch),
    "answered": (Node, Epoch, Truth),
    "answered_at": (Node, Epoch, Time),
    "remembers": (Node, Epoch, Truth),  # that it answered: no restart since
    "quiet_until": (Node, Time),
    # grants, by node and permit
    "holds": (Node, Permit, Truth),
    "known": (Node, Permit, Truth),  # to its node: no restart since
    "epoch_of": (Node, Permit, Epoch),  # under which it is renewed
    "until": (Node, Permit, Time),
    "leased_in": (Node, Permit, Epoch),  # the epoch that the present lease rests on
    "lease_by": (Node, Permit, Quorum),  # who answered
    "lent": (Epoch, Node, Permit, Truth),  # a grant on its way
    "lent_until": (Epoch, Node, Permit, Time),
    "lent_by": (Epoch, Node, Permit, Quorum),
    # reports, by node and the epoch for which they were made
    "reported": (Node, Epoch, Truth),
    "report_top": (Node, Epoch, Epoch),
    "report_adopted": (Node, Epoch, Epoch),
    "report_token": (Node, Epoch, Truth),
    "report_grant": (Node, Epoch, Permit, Truth),
    "report_live": (Node, Epoch, Permit, Truth),  # it is of the epoch that its node has adopted
    "report_votes": (Node, Epoch, Truth),  # its node was not quiet, or is no more
    # proposals
    "given_up": (Epoch, Truth),
    "closed": (Epoch, Truth),
    "closed_at": (Epoch, Time),
    "closed_by": (Epoch, Quorum),
    "top": (Epoch, Epoch),
    "found": (Epoch, Truth),
    "counted": (Epoch, Node, Truth),
    "voted": (Epoch, Node, Truth),
    "kept": (Epoch, Node, Permit, Truth),
    "confirmed": (Epoch, Truth),
    "confirmed_until": (Epoch, Time),
    "confirmed_by": (Epoch, Quorum),
    # tokens and their ledgers
    "minted": (Epoch, Truth),
    "there": (Epoch, Truth),  # neither lost nor surrendered
    "token_until": (Epoch, Time),
    "token_by": (Epoch, Quorum),
    "has_granted": (Epoch, Truth),
    "entry": (Epoch, Node, Permit, Truth),
    "lapsing": (Epoch, Node, Permit, Truth),
}

AXIOMS = [
    W >= L,
    L > 0,
]


def meet(p: object, q: object) -> object:
    return z3.And(in_quorum(p, both(p, q)), in_quorum(q, both(p, q)))


def begins(s: State) -> object:
    """No epoch yet. A pool that was just made, or whose members were given by name."""
    return z3.And(
        s.now() == 0,
        every(Node)(lambda n: z3.And(s.promised(n) == 0, s.adopted(n) == 0, s.quiet_until(n) <= 0)),
        every(Node, Epoch)(
            lambda n, e: z3.Not(z3.Or(s.answered(n, e), s.remembers(n, e), s.reported(n, e)))
        ),
        every(Node, Permit)(lambda n, p: z3.Not(s.holds(n, p))),
        every(Epoch)(
            lambda e: z3.Not(
                z3.Or(s.closed(e), s.confirmed(e), s.minted(e), s.has_granted(e), s.there(e))
            )
        ),
        every(Epoch, Node, Permit)(
            lambda e, n, p: z3.Not(
                z3.Or(s.lent(e, n, p), s.entry(e, n, p), s.lapsing(e, n, p), s.kept(e, n, p))
            )
        ),
    )


system = System(SIGNATURE, AXIOMS, meet, begins)
And, Or, Not, If, Implies = z3.And, z3.Or, z3.Not, z3.If, z3.Implies


def valid(s: State, n: object, p: object) -> object:
    """Held under a lease that runs."""
    return And(s.holds(n, p), s.until(n, p) > s.now())


def changed_at(function: object, *place: object, value: object) -> object:
    """The function, changed at one place."""

    def changed(*at: object) -> object:
        return If(
            And(*(one == other for one, other in zip(at, place, strict=True))), value, function(*at)
        )

    return changed


def constant(value: object) -> object:
    return lambda: value


def supports(s: State, q: object, e: object, sent: object) -> object:
    """All of the quorum answered for that epoch at that time or later."""
    return every(Node)(
        lambda m: Implies(in_quorum(q, m), And(s.answered(m, e), s.answered_at(m, e) >= sent))
    )


def is_over(s: State, e: object) -> object:
    """No lease of that epoch runs, and none will: a quorum that closed a higher one answered for it
    more than a lease ago, and does so no more."""
    return some(Epoch)(
        lambda y: And(
            y > e,
            s.closed(y),
            every(Node)(
                lambda m: Implies(
                    And(in_quorum(s.closed_by(y), m), s.answered(m, e)),
                    s.answered_at(m, e) + L <= s.now(),
                )
            ),
        )
    )


def is_taken(s: State, e: object) -> object:
    """A proposal has found the token of that epoch."""
    return some(Epoch)(lambda y: And(s.closed(y), s.found(y), s.top(y) == e))


def usable(s: State, e: object) -> object:
    return And(s.there(e), s.token_until(e) > s.now())


# -- time, members ---------------------------------------------------------------------------


@system.step("leases", Time)
def time_passes(s, t):
    """Time passes."""
    return [("forward", t > s.now())], {"now": constant(t)}


@system.step("leases", Node, Epoch)
def answer(s, m, e):
    """A member answers a renewal: at that time or later it had promised nothing higher."""
    return [
        ("nothing-higher", s.promised(m) <= e),
        ("not-quiet", s.now() >= s.quiet_until(m)),
        ("an-epoch", s.closed(e)),
    ], {
        "promised": changed_at(s.promised, m, value=e),
        "answered": changed_at(s.answered, m, e, value=True),
        "answered_at": changed_at(s.answered_at, m, e, value=s.now()),
        "remembers": changed_at(s.remembers, m, e, value=True),
    }


@system.step("leases", Node, Epoch, Epoch, Truth)
def promise(s, m, e, top, token):
    """A node promises an epoch, and reports in the same step; it surrenders a token. That is a vote
    unless it is quiet."""
    mine = s.adopted(m)
    return [
        ("nothing-higher", s.promised(m) < e),
        ("top", And(mine <= top, every(Epoch)(lambda x: Implies(s.remembers(m, x), x <= top)))),
        ("its-token", Implies(token, s.there(mine))),
    ], {
        "promised": changed_at(s.promised, m, value=e),
        "reported": changed_at(s.reported, m, e, value=True),
        "report_top": changed_at(s.report_top, m, e, value=top),
        "report_adopted": changed_at(s.report_adopted, m, e, value=mine),
        "report_token": changed_at(s.report_token, m, e, value=token),
        "report_votes": changed_at(s.report_votes, m, e, value=s.now() >= s.quiet_until(m)),
        "report_grant": lambda n, x, p: If(
            And(n == m, x == e), And(valid(s, n, p), s.known(n, p)), s.report_grant(n, x, p)
        ),
        "report_live": lambda n, x, p: If(
            And(n == m, x == e), s.epoch_of(n, p) == mine, s.report_live(n, x, p)
        ),
        "there": lambda x: And(s.there(x), Not(And(token, x == mine))),
    }


@system.step("20", Node, Epoch, Truth)
def vote(s, m, e, anew):
    """A node that is quiet no more says its report again, as a vote; or a new one, without the
    token, where the first did not arrive."""
    return [
        ("reported", s.reported(m, e)),
        ("not-quiet", s.now() >= s.quiet_until(m)),
        ("in-time", Not(s.closed(e))),
    ], {
        "report_votes": changed_at(s.report_votes, m, e, value=True),
        "report_token": lambda n, x: And(s.report_token(n, x), Not(And(n == m, x == e, anew))),
        "report_grant": lambda n, x, p: And(
            s.report_grant(n, x, p), Or(Not(And(n == m, x == e, anew)), valid(s, n, p))
        ),
    }


@system.step("restart", Node)
def restart(s, n):
    """A node starts again with its disk: what it knew of leases is gone, and it is quiet."""
    return [], {
        "quiet_until": changed_at(s.quiet_until, n, value=s.now() + W),
        "known": lambda m, p: And(s.known(m, p), m != n),
        "remembers": lambda m, e: And(s.remembers(m, e), m != n),
        "lent": lambda e, m, p: And(s.lent(e, m, p), m != n),
    }


# -- proposals -------------------------------------------------------------------------------


def votes(s, m, e):
    """Is its report a vote, as far as the proposer knows?"""
    return And(s.reported(m, e), heard(e, m), s.report_votes(m, e), heard_vote(e, m))


def found_entries(s, e, top, n, p):
    """Of the surrendered ledger: but what its own node says is over."""
    over = And(votes(s, n, e), Not(s.report_grant(n, e, p)))
    return And(s.entry(top, n, p), Not(over))


@system.step("3, 18", Epoch, Quorum, Epoch)
def close(s, e, q, top):
    """From a quorum of reports the proposer writes the ledger."""

    def counts(m):
        return And(s.reported(m, e), heard(e, m))

    found = some(Node)(
        lambda m: And(counts(m), s.report_token(m, e), s.report_adopted(m, e) == top)
    )

    def keeps(n, p):
        reported = And(counts(n), s.report_grant(n, e, p))
        alone = And(s.report_adopted(n, e) == top, s.report_live(n, e, p))
        return And(reported, If(found, s.entry(top, n, p), alone))

    def lapses(n, p):
        return And(found, found_entries(s, e, top, n, p), Not(keeps(n, p)))

    return [
        ("once", Not(Or(s.closed(e), s.given_up(e)))),
        ("quorum", every(Node)(lambda m: Implies(in_quorum(q, m), votes(s, m, e)))),
        ("highest", every(Node)(lambda m: Implies(counts(m), s.report_top(m, e) <= top))),
        ("an-epoch", And(e > 0, top < e)),
    ], {
        "closed": changed_at(s.closed, e, value=True),
        "closed_at": changed_at(s.closed_at, e, value=s.now()),
        "closed_by": changed_at(s.closed_by, e, value=q),
        "top": changed_at(s.top, e, value=top),
        "found": changed_at(s.found, e, value=found),
        "counted": lambda x, m: If(x == e, counts(m), s.counted(x, m)),
        "voted": lambda x, m: If(x == e, votes(s, m, e), s.voted(x, m)),
        "kept": lambda x, n, p: If(x == e, keeps(n, p), s.kept(x, n, p)),
        "lapsing": lambda x, n, p: If(x == e, lapses(n, p), s.lapsing(x, n, p)),
        "entry": lambda x, n, p: If(x == e, Or(keeps(n, p), lapses(n, p)), s.entry(x, n, p)),
    }


@system.step("19", Epoch, Node)
def find_late(s, e, m):
    """The token that a closed proposal could not find is reported before another is made."""
    top = s.top(e)

    def lapses(n, p):
        over = And(s.counted(e, n), s.voted(e, n), Not(s.report_grant(n, e, p)))
        return And(s.entry(top, n, p), Not(over), Not(s.kept(e, n, p)))

    return [
        ("closed", And(s.closed(e), Not(s.found(e)))),
        ("not-minted", Not(s.minted(e))),
        ("its-token", And(s.reported(m, e), s.report_token(m, e), s.report_adopted(m, e) == top)),
    ], {
        "found": changed_at(s.found, e, value=True),
        "lapsing": lambda x, n, p: If(x == e, lapses(n, p), s.lapsing(x, n, p)),
        "entry": lambda x, n, p: If(x == e, Or(s.kept(e, n, p), lapses(n, p)), s.entry(x, n, p)),
    }


@system.step("4", Epoch, Quorum, Time, Time)
def confirm(s, e, q, sent, until):
    """A quorum confirms the ledger: the first lease of the epoch, or a later one."""
    return [
        ("closed", s.closed(e)),
        ("quorum", supports(s, q, e, sent)),
        ("from-the-sending", And(sent <= s.now(), until <= sent + L)),
        ("runs", And(until > s.now(), Implies(s.confirmed(e), s.confirmed_until(e) > s.now()))),
    ], {
        "confirmed": changed_at(s.confirmed, e, value=True),
        "confirmed_until": changed_at(s.confirmed_until, e, value=until),
        "confirmed_by": changed_at(s.confirmed_by, e, value=q),
    }


@system.step("5", Epoch)
def mint(s, e):
    """The proposer makes the token: at once if the old one was found, else one lease later."""
    return [
        ("closed", s.closed(e)),
        ("confirmed", And(s.confirmed(e), s.confirmed_until(e) > s.now())),
        ("once", Not(s.minted(e))),
        ("waits", Or(s.found(e), s.now() >= s.closed_at(e) + W)),
    ], {
        "minted": changed_at(s.minted, e, value=True),
        "there": changed_at(s.there, e, value=True),
        "token_until": changed_at(s.token_until, e, value=s.confirmed_until(e)),
        "token_by": changed_at(s.token_by, e, value=s.confirmed_by(e)),
    }


@system.step("19", Node, Epoch)
def retake(s, m, e):
    """A proposer gives up its own open proposal, which alone has seen its token."""
    token = And(s.report_token(m, e), s.reported(m, e))
    return [
        ("open", Not(Or(s.closed(e), s.given_up(e)))),
    ], {
        "given_up": changed_at(s.given_up, e, value=True),
        "there": lambda x: Or(s.there(x), And(token, x == s.report_adopted(m, e))),
        "token_until": lambda x: If(
            And(token, x == s.report_adopted(m, e)), s.now() - 1, s.token_until(x)
        ),
        "report_token": changed_at(s.report_token, m, e, value=False),
    }


@system.step("2", Node, Epoch)
def adopt(s, n, e):
    """A node adopts an epoch: grants that its ledger keeps are renewed under it from then on."""
    return [
        ("closed", s.closed(e)),
        ("nothing-higher", s.promised(n) <= e),
        ("forward", s.adopted(n) < e),
    ], {
        "promised": changed_at(s.promised, n, value=e),
        "adopted": changed_at(s.adopted, n, value=e),
        "epoch_of": lambda m, p: If(
            And(m == n, s.kept(e, n, p), s.holds(n, p), s.known(n, p)), e, s.epoch_of(m, p)
        ),
    }


# -- leases ----------------------------------------------------------------------------------


@system.step("leases", Epoch, Quorum, Time, Time)
def renew_token(s, e, q, sent, until):
    """The lease of a token runs from the sending of what a quorum answered."""
    return [
        ("runs", And(s.there(e), s.token_until(e) > s.now())),
        ("quorum", supports(s, q, e, sent)),
        ("from-the-sending", And(sent <= s.now(), until <= sent + L)),
    ], {
        "token_until": changed_at(s.token_until, e, value=until),
        "token_by": changed_at(s.token_by, e, value=q),
    }


@system.step("leases", Node, Permit, Quorum, Time, Time)
def renew_grant(s, n, p, q, sent, until):
    """So does that of a grant."""
    e = s.epoch_of(n, p)
    return [
        ("runs", And(valid(s, n, p), s.known(n, p))),
        ("its-epoch", And(e == s.adopted(n), e == s.promised(n))),
        ("quorum", supports(s, q, e, sent)),
        ("from-the-sending", And(sent <= s.now(), until <= sent + L)),
    ], {
        "until": changed_at(s.until, n, p, value=until),
        "leased_in": changed_at(s.leased_in, n, p, value=e),
        "lease_by": changed_at(s.lease_by, n, p, value=q),
    }


# -- grants ----------------------------------------------------------------------------------


def can_grant(s, e, p):
    return [
        ("usable", And(s.there(e), s.token_until(e) > s.now())),
        ("free", every(Node)(lambda n: Not(s.entry(e, n, p)))),
    ]


@system.step("1", Epoch, Node, Permit)
def grant(s, e, n, p):
    """A node with the token lets a client of its own in, with a permit that the ledger has free."""
    return [
        *can_grant(s, e, p),
        ("takes-part", And(s.promised(n) == e, s.adopted(n) == e)),
    ], {
        "has_granted": changed_at(s.has_granted, e, value=True),
        "entry": changed_at(s.entry, e, n, p, value=True),
        "holds": changed_at(s.holds, n, p, value=True),
        "known": changed_at(s.known, n, p, value=True),
        "epoch_of": changed_at(s.epoch_of, n, p, value=e),
        "until": changed_at(s.until, n, p, value=s.token_until(e)),
        "leased_in": changed_at(s.leased_in, n, p, value=e),
        "lease_by": changed_at(s.lease_by, n, p, value=s.token_by(e)),
    }


@system.step("17", Epoch, Node, Permit)
def lend(s, e, n, p):
    """A grant is sent to a client of another node: its entry is in the ledger first."""
    return can_grant(s, e, p), {
        "has_granted": changed_at(s.has_granted, e, value=True),
        "entry": changed_at(s.entry, e, n, p, value=True),
        "lent": changed_at(s.lent, e, n, p, value=True),
        "lent_until": changed_at(s.lent_until, e, n, p, value=s.token_until(e)),
        "lent_by": changed_at(s.lent_by, e, n, p, value=s.token_by(e)),
    }


@system.step("17", Epoch, Node, Permit)
def borrow(s, e, n, p):
    """It arrives, once, under what is left of the lease."""
    return [
        ("once", s.lent(e, n, p)),
        ("runs", s.lent_until(e, n, p) > s.now()),
        ("takes-part", And(s.promised(n) == e, s.adopted(n) == e)),
    ], {
        "lent": changed_at(s.lent, e, n, p, value=False),
        "holds": changed_at(s.holds, n, p, value=True),
        "known": changed_at(s.known, n, p, value=True),
        "epoch_of": changed_at(s.epoch_of, n, p, value=e),
        "until": changed_at(s.until, n, p, value=s.lent_until(e, n, p)),
        "leased_in": changed_at(s.leased_in, n, p, value=e),
        "lease_by": changed_at(s.lease_by, n, p, value=s.lent_by(e, n, p)),
    }


@system.step("17", Epoch, Node, Permit)
def decline(s, e, n, p):
    """It is returned: it will not be accepted any more."""
    return [], {"lent": changed_at(s.lent, e, n, p, value=False)}


@system.step("9", Node, Permit)
def release(s, n, p):
    """A client releases its permit."""
    return [], {"holds": changed_at(s.holds, n, p, value=False)}


@system.step("9", Epoch, Node, Permit)
def strike(s, e, n, p):
    """The permit has returned: its entry is removed from the ledger."""
    return [
        ("there", s.there(e)),
        ("returned", And(Not(valid(s, n, p)), Not(s.lent(e, n, p)), s.promised(n) >= e)),
    ], {
        "entry": changed_at(s.entry, e, n, p, value=False),
        "lapsing": changed_at(s.lapsing, e, n, p, value=False),
    }


@system.step("3", Epoch, Node, Permit)
def lapse(s, e, n, p):
    """An entry that lapses is removed when its lease must be over."""
    return [
        ("there", s.there(e)),
        ("lapsing", s.lapsing(e, n, p)),
        ("waits", s.now() >= s.closed_at(e) + W),
    ], {
        "entry": changed_at(s.entry, e, n, p, value=False),
        "lapsing": changed_at(s.lapsing, e, n, p, value=False),
    }


@system.step("10", Epoch)
def lose(s, e):
    """The token is lost with a node or on a link."""
    return [], {"there": changed_at(s.there, e, value=False)}

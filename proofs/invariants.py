"""What is true of every state of recovery.py. Each has a name and a sentence."""

from __future__ import annotations

from recovery import (
    And,
    Implies,
    L,
    Not,
    Or,
    W,
    heard,
    in_quorum,
    is_over,
    is_taken,
    supports,
    system,
    usable,
    valid,
)
from system import Epoch, Node, Permit, every, some

invariant = system.invariant


@invariant
def safety(s):
    """No permit has two holders under leases that run."""
    return every(Node, Node, Permit)(
        lambda m, n, p: Implies(And(valid(s, m, p), valid(s, n, p)), m == n)
    )


# -- members ---------------------------------------------------------------------------------


@invariant
def adopted_is_promised(s):
    """A node has promised what it has adopted, and adopts closed epochs only."""
    return every(Node)(
        lambda n: And(
            s.adopted(n) <= s.promised(n),
            s.adopted(n) >= 0,
            Or(s.adopted(n) == 0, s.closed(s.adopted(n))),
        )
    )


@invariant
def answers_are_promises(s):
    """Who answered for an epoch has promised it, and answered in the past."""
    return every(Node, Epoch)(
        lambda m, e: And(
            Implies(
                s.answered(m, e),
                And(s.answered_at(m, e) <= s.now(), s.promised(m) >= e, s.closed(e)),
            ),
            Implies(s.remembers(m, e), s.answered(m, e)),
        )
    )


@invariant
def forgotten_answers_are_old(s):
    """A node that does not remember an answer is quiet until every lease on it is over."""
    return every(Node, Epoch)(
        lambda m, e: Implies(
            And(s.answered(m, e), Not(s.remembers(m, e))),
            s.quiet_until(m) >= s.answered_at(m, e) + W,
        )
    )


@invariant
def reports_are_promises(s):
    """Who reported for an epoch has promised it."""
    return every(Node, Epoch)(lambda m, e: Implies(s.reported(m, e), s.promised(m) >= e))


@invariant
def reports_name_the_highest(s):
    """A vote names every lower epoch that its node answered, but those whose leases are over."""
    return every(Node, Epoch, Epoch)(
        lambda m, e, x: Implies(
            And(s.reported(m, e), s.report_votes(m, e), s.answered(m, x), x < e),
            Or(s.report_top(m, e) >= x, s.answered_at(m, x) + W <= s.now()),
        )
    )


@invariant
def quiet_reports_name_the_highest(s):
    """A report that is no vote names every lower epoch that its node answered, but those whose
    leases are over when the quiet period is."""
    return every(Node, Epoch, Epoch)(
        lambda m, e, x: And(
            s.quiet_until(m) <= s.now() + W,
            Implies(
                And(s.reported(m, e), s.answered(m, x), x < e),
                Or(
                    s.report_top(m, e) >= x,
                    s.answered_at(m, x) + W <= s.now(),
                    s.answered_at(m, x) + W <= s.quiet_until(m),
                ),
            ),
        )
    )


@invariant
def closed_by_a_quorum(s):
    """A closed proposal counted the votes of a quorum, and no report that names a higher top."""
    return every(Epoch, Node)(
        lambda e, m: Implies(
            s.closed(e),
            And(
                e > 0,
                s.top(e) < e,
                s.closed_at(e) <= s.now(),
                Implies(in_quorum(s.closed_by(e), m), s.voted(e, m)),
                Implies(s.voted(e, m), And(s.counted(e, m), s.report_votes(m, e))),
                Implies(
                    s.counted(e, m),
                    And(s.reported(m, e), heard(e, m), s.report_top(m, e) <= s.top(e)),
                ),
            ),
        )
    )


@invariant
def no_answers_after_closing(s):
    """The quorum that closed an epoch answers for no lower one any more."""
    return every(Epoch, Node, Epoch)(
        lambda e, m, x: Implies(
            And(s.closed(e), s.counted(e, m), x < e, s.answered(m, x)),
            s.answered_at(m, x) <= s.closed_at(e),
        )
    )


# -- leases ----------------------------------------------------------------------------------


@invariant
def token_leases(s):
    """The lease of a token rests on a quorum's answers."""
    return every(Epoch)(
        lambda e: Implies(
            s.minted(e),
            Or(
                s.token_until(e) <= s.now(),
                And(
                    supports(s, s.token_by(e), e, s.token_until(e) - L),
                    s.token_until(e) <= s.now() + L,
                ),
            ),
        )
    )


@invariant
def confirmed_leases(s):
    """The lease of a proposal rests on a quorum's answers."""
    return every(Epoch)(
        lambda e: Implies(
            s.confirmed(e),
            And(
                s.closed(e),
                supports(s, s.confirmed_by(e), e, s.confirmed_until(e) - L),
                s.confirmed_until(e) <= s.now() + L,
            ),
        )
    )


@invariant
def grant_leases(s):
    """The lease of a grant rests on a quorum's answers."""
    return every(Node, Permit)(
        lambda n, p: Implies(
            s.holds(n, p),
            And(
                supports(s, s.lease_by(n, p), s.leased_in(n, p), s.until(n, p) - L),
                s.until(n, p) <= s.now() + L,
                s.leased_in(n, p) <= s.epoch_of(n, p),
                s.epoch_of(n, p) <= s.adopted(n),
                s.closed(s.epoch_of(n, p)),
                s.closed(s.leased_in(n, p)),
            ),
        )
    )


@invariant
def lent_leases(s):
    """The lease of a grant on its way rests on a quorum's answers."""
    return every(Epoch, Node, Permit)(
        lambda e, n, p: Implies(
            s.lent(e, n, p),
            And(
                s.minted(e),
                supports(s, s.lent_by(e, n, p), e, s.lent_until(e, n, p) - L),
                s.lent_until(e, n, p) <= s.now() + L,
            ),
        )
    )


# -- proposals and tokens --------------------------------------------------------------------


@invariant
def tokens_are_minted(s):
    """A token that is there was minted, from a closed and confirmed proposal."""
    return every(Epoch)(
        lambda e: And(
            Implies(Or(s.there(e), s.has_granted(e)), s.minted(e)),
            Implies(s.minted(e), And(s.closed(e), s.confirmed(e))),
            Implies(And(s.minted(e), Not(s.found(e))), s.now() >= s.closed_at(e) + W),
        )
    )


@invariant
def surrendered_once(s):
    """A token that was reported is not there, and was reported to one proposal only."""
    return every(Node, Epoch, Node, Epoch)(
        lambda m, e, n, x: Implies(
            And(s.reported(m, e), s.report_token(m, e)),
            And(
                Not(s.there(s.report_adopted(m, e))),
                s.minted(s.report_adopted(m, e)),
                Implies(
                    And(
                        s.reported(n, x),
                        s.report_token(n, x),
                        s.report_adopted(n, x) == s.report_adopted(m, e),
                    ),
                    And(m == n, e == x),
                ),
            ),
        )
    )


@invariant
def found_is_surrendered(s):
    """The token that a proposal found was minted, is the highest, and is gone."""
    return every(Epoch)(
        lambda e: Implies(
            And(s.closed(e), s.found(e)),
            And(
                s.minted(s.top(e)),
                Not(s.there(s.top(e))),
                some(Node)(
                    lambda m: And(
                        s.reported(m, e), s.report_token(m, e), s.report_adopted(m, e) == s.top(e)
                    )
                ),
            ),
        )
    )


@invariant
def latest_token(s):
    """When a token is made, every lower epoch is over, unless its token was surrendered."""
    return every(Epoch, Epoch)(
        lambda e, x: Implies(
            And(s.minted(x), s.closed(e), e < x, Not(is_taken(s, e))), is_over(s, e)
        )
    )


@invariant
def lapsing_or_kept(s):
    """An entry that lapses is in the ledger, and not one that is kept."""
    return every(Epoch, Node, Permit)(
        lambda e, n, p: And(
            Implies(
                s.lapsing(e, n, p),
                And(s.entry(e, n, p), Not(s.kept(e, n, p)), Not(s.lent(e, n, p)), s.closed(e)),
            ),
            Implies(And(s.closed(e), Not(s.minted(e)), s.kept(e, n, p)), s.entry(e, n, p)),
            Implies(
                And(s.closed(e), Not(s.minted(e)), Not(s.found(e)), s.entry(e, n, p)),
                s.kept(e, n, p),
            ),
        )
    )


@invariant
def kept_was_reported(s):
    """What a ledger keeps was reported; without the token, by a node of the highest epoch."""
    return every(Epoch, Node, Permit)(
        lambda e, n, p: Implies(
            s.kept(e, n, p),
            And(
                s.closed(e),
                s.counted(e, n),
                s.report_grant(n, e, p),
                Or(
                    s.found(e),
                    And(s.report_adopted(n, e) == s.top(e), s.report_live(n, e, p)),
                ),
            ),
        )
    )


@invariant
def renewed_grants_are_kept(s):
    """Until its token is made, the grants of an epoch are those that its ledger keeps."""
    return every(Node, Permit)(
        lambda n, p: Implies(
            valid(s, n, p),
            And(
                Or(s.minted(s.epoch_of(n, p)), s.kept(s.epoch_of(n, p), n, p)),
                Or(s.minted(s.leased_in(n, p)), s.kept(s.leased_in(n, p), n, p)),
            ),
        )
    )


@invariant
def lapsing_is_older(s):
    """A grant whose entry lapses is of a lower epoch."""
    return every(Epoch, Node, Permit)(
        lambda e, n, p: Implies(
            And(s.lapsing(e, n, p), valid(s, n, p)),
            And(
                s.epoch_of(n, p) != e,
                s.leased_in(n, p) != e,
                Or(s.epoch_of(n, p) < e, is_over(s, e), is_taken(s, e)),
            ),
        )
    )


@invariant
def reported_live_grants(s):
    """Between a report and the epoch that it is for, a grant stays of the epoch that it had."""
    return every(Node, Epoch, Permit)(
        lambda n, e, p: Implies(
            And(
                s.reported(n, e),
                s.report_grant(n, e, p),
                s.report_live(n, e, p),
                s.holds(n, p),
                s.known(n, p),
                s.promised(n) == e,
                s.adopted(n) < e,
            ),
            And(s.epoch_of(n, p) == s.report_adopted(n, e)),
        )
    )


@invariant
def lent_alone(s):
    """A permit that is on its way in a grant has no holder, and is not in another."""
    return every(Epoch, Node, Permit)(
        lambda x, n, p: Implies(
            And(s.lent(x, n, p), s.lent_until(x, n, p) > s.now(), s.promised(n) <= x),
            And(
                every(Node)(lambda m: Not(valid(s, m, p))),
                every(Epoch, Node)(
                    lambda y, m: Implies(
                        And(s.lent(y, m, p), s.lent_until(y, m, p) > s.now(), s.promised(m) <= y),
                        And(x == y, m == n),
                    )
                ),
            ),
        )
    )


# -- ledgers ---------------------------------------------------------------------------------


@invariant
def ledger(s):
    """Every ledger names the grants whose leases rest on its epoch or a lower one."""
    return every(Epoch, Node, Permit)(
        lambda e, n, p: Implies(
            And(
                s.closed(e),
                Or(s.minted(e), s.found(e)),
                valid(s, n, p),
                s.leased_in(n, p) <= e,
            ),
            s.entry(e, n, p),
        )
    )


@invariant
def ledger_of_the_lent(s):
    """... and the grants on their way that may still be accepted."""
    return every(Epoch, Epoch, Node, Permit)(
        lambda x, e, n, p: Implies(
            And(
                s.lent(x, n, p),
                s.lent_until(x, n, p) > s.now(),
                s.promised(n) <= x,
                s.closed(e),
                Or(s.minted(e), s.found(e)),
                x <= e,
            ),
            s.entry(e, n, p),
        )
    )


@invariant
def reported_grants(s):
    """A grant whose lease runs and that is of a lower epoch is in its node's vote."""
    return every(Node, Epoch, Permit)(
        lambda n, e, p: Implies(
            And(s.reported(n, e), s.report_votes(n, e), valid(s, n, p), s.leased_in(n, p) < e),
            s.report_grant(n, e, p),
        )
    )


@invariant
def quietly_reported_grants(s):
    """... or in a report that is no vote, unless it ends with the quiet period."""
    return every(Node, Epoch, Permit)(
        lambda n, e, p: Implies(
            And(s.reported(n, e), valid(s, n, p), s.leased_in(n, p) < e),
            Or(s.report_grant(n, e, p), s.until(n, p) <= s.quiet_until(n)),
        )
    )


@invariant
def forgotten_grants_end(s):
    """A node that does not know a grant any more is quiet until the grant has ended."""
    return every(Node, Permit)(
        lambda n, p: Implies(
            And(s.holds(n, p), Not(s.known(n, p))), s.quiet_until(n) >= s.until(n, p)
        )
    )


@invariant
def live_epochs_name_all(s):
    """The ledger of an epoch that is not over, whose token was not surrendered, names every grant
    of it and of higher ones; that of a token that can be used names every grant."""
    return every(Epoch, Node, Permit)(
        lambda e, n, p: Implies(
            And(
                s.closed(e),
                Not(is_over(s, e)),
                Not(is_taken(s, e)),
                valid(s, n, p),
                Or(s.epoch_of(n, p) >= e, s.minted(e)),
            ),
            s.entry(e, n, p),
        )
    )


# -- what follows ----------------------------------------------------------------------------
# Each is proved from the invariants, with a node of two quorums named, and then taken for granted.

lemma = system.lemma


@lemma(lambda s, e, x: [(s.token_by(e), s.closed_by(x))], Epoch, Epoch)
def token_leases_end(s, e, x):
    """A lease of a token ends a lease after a higher epoch was closed; that one knows its epoch."""
    return Implies(
        And(s.minted(e), s.token_until(e) > s.now(), s.closed(x), e < x),
        And(s.token_until(e) <= s.closed_at(x) + L, s.top(x) >= e),
    )


def recent(s, q, e):
    """Some node of the quorum has answered for that epoch within a lease."""
    return some(Node)(
        lambda m: And(in_quorum(q, m), s.answered(m, e), s.answered_at(m, e) + L > s.now())
    )


@lemma(lambda s, e, y: [(s.token_by(e), s.closed_by(y))], Epoch, Epoch)
def a_usable_token_was_answered(s, e, y):
    """Of every quorum a node has answered for the token within a lease."""
    return Implies(
        And(s.minted(e), s.token_until(e) > s.now(), s.closed(y)), recent(s, s.closed_by(y), e)
    )


@lemma(lambda s, e: [], Epoch)
def a_usable_token_is_not_over(s, e):
    """An epoch whose token can be used is not over."""
    return Implies(And(s.minted(e), s.token_until(e) > s.now()), Not(is_over(s, e)))


@lemma(lambda s, e, x: [], Epoch, Epoch)
def usable_tokens_are_the_latest(s, e, x):
    """While a token can be used, no higher epoch has one."""
    return Implies(And(usable(s, e), e < x), Not(s.minted(x)))


@lemma(lambda s, e, n, p: [], Epoch, Node, Permit)
def usable_tokens_name_all(s, e, n, p):
    """The ledger of a token that can be used names every grant whose lease runs."""
    return Implies(And(usable(s, e), valid(s, n, p)), s.entry(e, n, p))


@lemma(lambda s, e, x: [(s.confirmed_by(e), s.closed_by(x))], Epoch, Epoch)
def confirmed_leases_end(s, e, x):
    """So does the lease of a proposal."""
    return Implies(
        And(s.confirmed(e), s.confirmed_until(e) > s.now(), s.closed(x), e < x),
        And(s.confirmed_until(e) <= s.closed_at(x) + L, s.top(x) >= e),
    )


@lemma(lambda s, n, p, x: [(s.lease_by(n, p), s.closed_by(x))], Node, Permit, Epoch)
def grant_leases_end(s, n, p, x):
    """So does the lease of a grant."""
    return Implies(
        And(valid(s, n, p), s.closed(x), s.leased_in(n, p) < x),
        And(s.until(n, p) <= s.closed_at(x) + L, s.top(x) >= s.leased_in(n, p)),
    )


@lemma(lambda s, e, n, p, x: [(s.lent_by(e, n, p), s.closed_by(x))], Epoch, Node, Permit, Epoch)
def lent_leases_end(s, e, n, p, x):
    """So does that of a grant on its way."""
    return Implies(
        And(s.lent(e, n, p), s.lent_until(e, n, p) > s.now(), s.closed(x), e < x),
        And(s.lent_until(e, n, p) <= s.closed_at(x) + L, s.top(x) >= e),
    )


@lemma(lambda s, e, x: [], Epoch, Epoch)
def higher_epochs_know_it(s, e, x):
    """A higher epoch that was closed knows every epoch that is not over."""
    return Implies(And(s.closed(x), e < x, Not(is_over(s, e))), s.top(x) >= e)


fact = system.fact


@fact("close", lambda s, a, n, p: [(s.lease_by(n, p), a[1])], Node, Permit)
def the_new_epoch_knows_running_grants(s, a, n, p):
    """A quorum that closes an epoch names every lower one in which a lease runs."""
    return Implies(And(valid(s, n, p), s.leased_in(n, p) < a[0]), a[2] >= s.leased_in(n, p))


@fact("close", lambda s, a, x, n, p: [(s.lent_by(x, n, p), a[1])], Epoch, Node, Permit)
def the_new_epoch_knows_lent_grants(s, a, x, n, p):
    """... and every one in which a grant is on its way."""
    return Implies(And(s.lent(x, n, p), s.lent_until(x, n, p) > s.now(), x < a[0]), a[2] >= x)


for granting in ("grant", "lend"):

    @fact(
        granting,
        lambda s, a, x: [],
        Epoch,
        by=("usable_tokens_are_the_latest", "tokens_are_minted"),
    )
    def fences_grow(s, a, x):
        """No grant was made in a higher epoch: with the count of the token's grants, its fence is
        above those of all grants before it."""
        return Implies(s.has_granted(x), x <= a[0])

    @fact(granting, lambda s, a, n: [], Node, by=("usable_tokens_name_all",))
    def a_free_permit_has_no_holder(s, a, n):
        """A permit that the ledger of a usable token has free has no holder."""
        return Not(valid(s, n, a[2]))

    @fact(
        granting,
        lambda s, a, y, n: [],
        Epoch,
        Node,
        by=(
            "ledger_of_the_lent",
            "usable_tokens_are_the_latest",
            "lent_leases",
            "tokens_are_minted",
        ),
    )
    def a_free_permit_is_not_under_way(s, a, y, n):
        """... and is in no grant that may still be accepted."""
        under_way = And(s.lent(y, n, a[2]), s.lent_until(y, n, a[2]) > s.now())
        return Not(And(under_way, s.promised(n) <= y))

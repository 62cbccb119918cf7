"""The algorithms that the general scheme has in it: each is one behaviour and one first tree."""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.actor import (
    NIL,
    Actor,
    Algorithm,
    Assumptions,
    Choices,
    Effect,
    Network,
    Options,
)
from meshlock.algorithms.general_scheme import (
    AlwaysProxy,
    AlwaysTransit,
    Behaviour,
    Chosen,
    OpenCube,
    Request,
    SchemeNode,
    ShortCut,
    Token,
    TransitWhileHolding,
)
from meshlock.algorithms.queues import Fifo, Lift
from meshlock.errors import Refused

MakeBehaviour = Callable[[Network], Behaviour]
BEHAVIOURS: dict[str, MakeBehaviour] = {
    "random": lambda network: Chosen(),
    "proxy": lambda network: AlwaysProxy(),
    "transit": lambda network: AlwaysTransit(),
    "raymond": lambda network: TransitWhileHolding(),
    "shortcut": ShortCut,
    "open-cube": lambda network: OpenCube(network.size),
}

STARTS: dict[str, Callable[[Network, int], int]] = {
    "shortest": lambda network, me: network.father(me),
    "binary": lambda network, me: (me - 1) // 2 if me > 0 else NIL,
    "cube": lambda network, me: me & (me - 1) if me > 0 else NIL,
}
"""The first father of a node. *shortest*: the network's tree, which is that of shortest paths to
node 0 (a star on the complete graph) unless another is given. The others are the complete binary
tree and the open cube, whatever the links."""


Placed = tuple[int, Behaviour]
"""A node's first father, and its behaviour."""


def alike(network: Network, make_behaviour: MakeBehaviour, start: str) -> list[Placed]:
    """All nodes with one behaviour."""
    behaviour = make_behaviour(network)
    return [(STARTS[start](network, me), behaviour) for me in range(network.size)]


def joined(network: Network, networks: int) -> list[Placed]:
    """Several networks of equal size, each with its first node as gateway.

    Gateways are proxies whose fathers are gateways; the others are transit nodes whose
    father is their own gateway. So no node ever needs the name of an ordinary node of
    another network: all that crosses the border is asked by, or returned to, a gateway.
    """
    if not network.ordered:
        raise Refused(
            "gateway joins networks of neighbouring numbers, which nodes do not keep in recovery: "
            "run it without recovery, or use another instance of the scheme such as shortcut."
        )
    per = -(-network.size // networks)
    proxy, transit = AlwaysProxy(), AlwaysTransit()
    return [
        (me - me % per, transit) if me % per else (0 if me > 0 else NIL, proxy)
        for me in range(network.size)
    ]


def waiting(me: int, options: Options) -> Fifo:
    return Lift(me) if options["queue"] == "lift" else Fifo()


SCHEME = "Helary, Mostefaoui, Raynal, INRIA RR-1692, 1992"
QUEUES: Choices = {"queue": ("fifo", "lift")}
NETWORKS: Choices = {"networks": ("2", "<number>")}
TREES: Choices = {**QUEUES, "start": ("shortest", "binary")}


def instance(
    name: str,
    title: str,
    behaviour: str | MakeBehaviour = "",
    source: str = SCHEME,
    *,
    routed: bool = True,
    any_tree: bool = True,
    start: str = "shortest",
    options: Choices = QUEUES,
) -> Algorithm:
    """The general scheme with one ``behaviour``, known or your own, or with all of them."""

    def with_behaviour(
        network: Network, permits: int, options: Options, out: list[Effect]
    ) -> list[Actor]:
        chosen = behaviour or options["behaviour"]
        if chosen == "gateway":
            placed = joined(network, int(options["networks"]))
        else:
            made = BEHAVIOURS[chosen] if isinstance(chosen, str) else chosen
            placed = alike(network, made, options.get("start", start))
        return [SchemeNode(me, out, *at, waiting(me, options)) for me, at in enumerate(placed)]

    return Algorithm(
        name,
        title,
        source,
        "mutex",
        with_behaviour,
        (Request, Token),
        assumes=Assumptions(routed=routed, any_tree=any_tree),
        structure=("scheme-1", "scheme-2", "scheme-3", "oriented"),
        options=options,
    )


ALGORITHMS = [
    instance(
        "general-scheme",
        "General scheme for token and tree based mutual exclusion",
        options={
            "behaviour": (*BEHAVIOURS, "gateway"),
            **QUEUES,
            **NETWORKS,
            "start": tuple(STARTS),
        },
    ),
    instance("centralized", "Central lock: every node a proxy", "proxy", options=TREES),
    instance(
        "naimi-trehel",
        "Naimi-Trehel variant: every node transit",
        "transit",
        f"Naimi and Trehel, ICDCS 1987, in the variant of {SCHEME}",
        options=TREES,
    ),
    instance(
        "raymond",
        "Raymond / van de Snepscheut: transit while holding the token",
        "raymond",
        f"Raymond, ACM TOCS 7(1), 1989; van de Snepscheut, 1987, in the variant of {SCHEME}",
        routed=False,
    ),
    instance("shortcut", "Short-cuts: transit where a link allows it", "shortcut", options=TREES),
    instance(
        "open-cube",
        "Open cube: transit for the last son's half, never more than log2 n + 1 messages",
        "open-cube",
        "Helary and Mostefaoui, ICDCS 1994; INRIA RR-2041, 1993",
        any_tree=False,
        start="cube",
    ),
    instance(
        "gateway",
        "Networks joined by proxy gateways",
        "gateway",
        any_tree=False,
        options={**QUEUES, **NETWORKS},
    ),
]

"""Who can still decide: the part of the network in which a majority of the members is awake."""

from __future__ import annotations

from collections.abc import Collection, Iterable

Link = tuple[str, str]


def parts(nodes: Iterable[str], links: Iterable[Link]) -> dict[str, set[str]]:
    """Of each node, the connected part of the network that it is in; links to nodes that are not in
    the network do not count."""
    part = {node: {node} for node in nodes}
    for one, other in links:
        if one in part and other in part and part[one] is not part[other]:
            joined = part[one] | part[other]
            part.update(dict.fromkeys(joined, joined))
    return part


def able(
    members: Collection[str],
    awake: Collection[str],
    links: Iterable[Link],
    silent: Collection[str] = (),
) -> set[str]:
    """The nodes that can be served: those connected to more than half of the members.

    ``awake`` are the nodes that run; the ``silent`` among them pass messages on but have no
    vote yet, because they have just started.
    """
    for part in parts(awake, links).values():
        if sum(member in part and member not in silent for member in members) * 2 > len(members):
            return part
    return set()


def across(links: Iterable[Link], sides: Iterable[Collection[str]]) -> list[Link]:
    """The links between the sides of a partition."""
    side = {node: number for number, nodes in enumerate(sides) for node in nodes}
    return [link for link in links if side[link[0]] != side[link[1]]]

"""The settings of a run: flags, scenario files, studies and traces all have these names."""

from __future__ import annotations

from meshlock.errors import Refused
from meshlock.settings import Settings, option

Values = dict[str, str | int]
"""Settings by their names, as a person writes them."""


class PlainSettings(Settings):
    """Those of nodes that do not fail."""

    algorithm: str = option(
        "jiang",
        "Run this algorithm: a name (see 'meshlock algorithms') or a file.py.",
    )
    nodes: int = option(0, "Set the number of nodes.")  # 0: as the topology says
    topology: str = option(
        "complete",
        "Link the nodes as line, ring, star, tree, grid:RxC, complete, edges:0-1,1-2, random:P, "
        "links:COUNT, geometric:RANGE, or as a file says (.graphml, .edgelist, .json).",
    )
    permits: str = option("1", "Set k, the number of permits: 4, or gpu:4,licence:5 of each kind.")
    want: str = option(
        "1",
        "Set how many permits a request asks for: 2, or 1-3 for a random number, or both for each "
        "kind: gpu:0-2,licence:1.",
    )
    priority: str = option(
        "0",
        "Set the priority of requests (larger is more urgent): 5, or 1-9 for a random one, or "
        "deadline:TIME, earliest first, or both: 1-9/deadline:TIME.",
    )
    raise_: str = option(
        "0",
        "Change the priority of this share of requests while they wait, up or down, such as 0.1.",
    )
    release_part: str = option(
        "0", "Release this share of the grants for several permits in two parts, such as 0.1."
    )
    workload: str = option(
        "saturated",
        "Choose when clients request: serial, saturated or poisson:RATE (per client).",
    )
    requests: int = option(1000, "Stop after this many requests in all.")
    clients: int = option(1, "Set the number of clients per node.")
    delay: str = option(
        "1", "Set how long a message takes on a link: a time, uniform:A,B or exp:MEAN."
    )
    hold: str = option("1", "Set how long a client holds its permits: as --delay.")
    links: str = option(
        "fifo", "Choose whether links keep the order of messages: fifo or unordered."
    )
    mobility: str = option(
        "none",
        "Change links over time: none, flips:RATE, waypoint:SPEED,RANGE, walk:..., "
        "gauss-markov:..., manhattan:..., or a file (.ns_movements, .movements[.gz], .tsv).",
    )
    radio_range: str = option("", "Set the radio range, for files of movements.", "--range")
    partitions: str = option(
        "",
        "Choose whether the network may be partitioned: prevented, allowed, or healed at the end "
        "of changes.",
    )
    failures: str = option(
        "drain",
        "Choose what becomes of messages on a failing link: drain (delivered first), return (to "
        "their sender) or custody (those with permits arrive late, as between live nodes).",
    )
    notice: str = option(
        "",
        "Set how long an end of a link takes to notice a change, with --failures custody.",
    )
    changes_until: str = option("inf", "Stop changes of links at this time.")
    seed: int = option(1, "Set the seed. The same seed gives the same run.")


class RunSettings(PlainSettings):
    """Also those of nodes that recover, if there are members."""

    members: str = option(
        "",
        "Survive crashes and partitions, with any token algorithm: a quorum of these members "
        "(auto, all, or a number) renews leases and replaces a lost token.",
    )
    lease: str = option("100", "Set how long a lease lasts, in the unit of --delay.")
    crashes: str = option(
        "",
        "Crash nodes: EVERY[,DOWN], the mean time between two crashes, and until a restart.",
    )
    disks_lost: str = option("0", "Lose the disk in this share of crashes, such as 0.1.")
    cuts: str = option("", "Cut the network in two at random: EVERY,LASTS, mean times.")
    permits_change: str = option(
        "", "Change the number of permits, with --members: TIME:K[,TIME:K...]."
    )
    members_change: str = option(
        "",
        "Add and remove members: TIME:+NODE or TIME:-NODE[,...]. Several at one time are made by "
        "different members.",
    )
    clock_skew: str = option(
        "0.01", "Let clocks run fast or slow by up to this share, such as 0.01."
    )
    until: str = option("", "Stop at this time even if clients wait, with --members.")

    options: dict[str, str]  # of the algorithm

    @property
    def recovers(self) -> bool:
        """Are there members, so that nodes may crash and the network may part?"""
        return bool(self.members)

    def values(self) -> Values:
        """Every setting that this run has, by its name."""
        found: Values = {}
        for name, one in self.declared.items():
            usual = name in PlainSettings.declared and name not in ("raise_", "release_part")
            if usual or self.recovers or name in self.given:
                found[one.key] = getattr(self, name)
        if self.permits.isdecimal():
            found["permits"] = int(self.permits)
        return found


RECOVERY = [one.key for one in RunSettings.keys.values() if one.key not in PlainSettings.keys]
"""The names of those that only nodes that recover have."""


def as_values(texts: dict[str, str]) -> Values:
    """Texts by the names of settings; numbers where numbers belong."""
    values: Values = {}
    for name, text in texts.items():
        values[name] = text
        if name in RunSettings.keys and isinstance(RunSettings.keys[name].default, int):
            try:
                values[name] = int(text)
            except ValueError:
                raise Refused(f"{name} takes a whole number, not '{text}'.") from None
    return values

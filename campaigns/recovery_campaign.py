"""Random pools that recover, by the hundred: prints every set-up in which something went wrong.

    python campaigns/recovery_campaign.py [FIRST [LAST]]

A set-up follows from its number, so a finding can be run again by itself. Wrong is: a violated
property (a client that waits in vain with a path to a majority counts as one), or messages
that breed messages. Clients that wait at the end without a path are no finding.
"""

from __future__ import annotations

import sys
from random import Random

from meshlock.simulate.recovery import RecoverySimulation
from meshlock.simulate.settings import run_settings, simulation

Given = dict[str, str | int]

ONE_PERMIT = ["reverse-link", "naimi-trehel", "raymond", "centralized", "suzuki-kasami"]
ONE_PERMIT += ["neilsen-mizuno"]

STORM = 20_000
"""More than this on the agenda of so small a pool is a storm of messages."""


def setup(number: int) -> Given:
    draw = Random(number)
    nodes, permits = draw.randint(2, 9), draw.randint(1, 4)
    algorithm = draw.choice(["jiang", "direct", *ONE_PERMIT])
    if algorithm in ONE_PERMIT:
        permits = 1
    given: Given = {
        "algorithm": algorithm,
        "nodes": nodes,
        "topology": draw.choice(["ring", "complete", "line", "star", "random:0.5", "tree"]),
        "permits": permits,
        "clients": draw.randint(1, 3),
        "want": f"1-{draw.randint(1, permits)}",
        "priority": draw.choice(["0", "1-3", "1-9"]),
        "members": str(draw.randint(1, nodes)) if draw.random() < 0.5 else "all",
        "workload": draw.choice(["saturated", "poisson:0.01", "poisson:0.002", "serial"]),
        "requests": 300,
        "seed": number,
        "delay": draw.choice(["1", "exp:1", "uniform:0.5,3", "0.05"]),
        "hold": draw.choice(["1", "exp:5", "50", "exp:100"]),
        "links": draw.choice(["fifo", "unordered"]),
        "clock-skew": draw.choice(["0", "0.01", "0.1"]),
        "until": "200000",
    }
    if draw.random() < 0.6:
        given["disks-lost"] = draw.choice(["0", "0", "0.3"])
        given["crashes"] = draw.choice(["300", "1000", "3000", "500,50", "500,2000"])
    if draw.random() < 0.6:
        given["cuts"] = draw.choice(["500,100", "1000,500", "3000,3000"])
    if draw.random() < 0.3:
        moving = ["flips:0.01", "waypoint:0.001,0.5", "waypoint:0.0002,0.3"]
        given["mobility"] = draw.choice(moving)
        given["partitions"] = "allowed"
    return given | changes(given, Random(f"{number} changes"))


def changes(given: Given, draw: Random) -> Given:
    """What clients and operators change meanwhile, in a part of the set-ups."""
    more: Given = {}
    nodes, several = int(given["nodes"]), given["algorithm"] not in ONE_PERMIT
    if several and given["priority"] != "0" and draw.random() < 0.5:
        deadlines = draw.choice(["", "/deadline:uniform:1,500"])
        more |= {"priority": given["priority"] + deadlines, "raise": "0.2"}
    most = int(given["want"].partition("-")[2])
    if several and most > 1 and draw.random() < 0.5:
        more["release-part"] = "0.3"
    if several and draw.random() < 0.3:
        more["permits-change"] = f"{draw.randint(500, 5000)}:{draw.randint(most, 5)}"
    members = nodes if given["members"] == "all" else int(given["members"])
    if members > 2 and given.get("disks-lost", "0") == "0" and draw.random() < 0.5:
        others = [*[f"+{node}" for node in range(members, nodes)], f"-{members - 1}", "-0"]
        time = draw.randint(500, 2000)  # of both changes, which two members begin
        more["members-change"] = ",".join([f"{time}:{other}" for other in others[:2]])
    return more


def main() -> int:
    numbers = [int(text) for text in sys.argv[1:3]] or [0, 200]
    first, last = numbers[0], numbers[-1] if len(numbers) > 1 else numbers[0] + 1
    wrong = requests = epochs = crashes = cuts = 0
    for number in range(first, last):
        run = simulation(run_settings(setup(number)), None)
        assert isinstance(run, RecoverySimulation)
        run.start()
        storm = False
        while run.run(2000):
            if len(run.agenda) > STORM:
                storm = True
                break
        if not storm:
            run.finish()
        requests += run.measures.requested
        epochs += run.lives.monitor.epochs
        crashes += run.recovery.crashes
        cuts += run.recovery.cuts
        if storm or run.monitor.violated:
            wrong += 1
            print(number, "a storm" if storm else run.monitor.violated, setup(number), flush=True)
    print(
        f"set-ups {first} to {last - 1}: {requests} requests, {crashes} crashes, {cuts} cuts, "
        f"{epochs} epochs; {wrong} went wrong"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

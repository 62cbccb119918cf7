"""The settings of an agent and of its pools: flags and keys of its file."""

from __future__ import annotations

from typing import Any, Literal

from meshlock.settings import Settings, option


class PoolSettings(Settings, group="Settings of the pools that --pool names"):
    permits: int | list[str] | None = option(
        None,
        "Set the number of permits, or their names. Without it the pool is only joined.",
        "--pool NAME=PERMITS",
        within="PERMITS",
        in_files_only=True,
    )
    members: list[str] | Literal["auto"] = option(
        "auto",
        "Name the members, separated by commas, or 'auto': they choose themselves.",
        as_text=True,
    )
    most_members: int = option(
        5, "Let at most this many nodes become members by themselves.", within="MEMBERS"
    )
    promote_after: float = option(
        10.0, "Let a node become a member after this many seconds.", within="STAY"
    )
    replace_after: float = option(
        30.0, "Replace an unreachable member after this many seconds.", within="STAY"
    )
    lease: float | None = option(
        None,
        "Set the lease: for how many seconds permits are held unless they are renewed.",
        within="LEASE",
    )
    algorithm: str | None = option(
        None, "Run this algorithm (name or file.py). Default: direct; jiang without recovery."
    )
    options: dict[str, str] = option(
        {}, "Set an option of the algorithm as NAME=VALUE. May be repeated.", "--option"
    )
    recovery: str | None = option(None, "Choose 'none' to have no leases, as in the papers.")
    founder: bool | None = option(None, "Make the pools at this node, without recovery.")
    links: list[tuple[str, str]] | None = option(
        None,
        "Link A,B in a fixed network, without recovery. May be repeated.",
        "--link",
        as_text=True,
        many=True,
    )


class AgentSettings(Settings):
    name: str | None = option(None, "Set the name of this node. Default: the host's name.")
    listen: str | None = option("127.0.0.1:0", "Accept links of other nodes at this host:port.")
    peers: tuple[str, ...] = option(
        (), "Link to the node at this host:port. May be repeated.", "--peer"
    )
    secret_file: str | None = option(None, "Read the join secret from this file.")
    certificates: str | None = option(None, "Read ca.crt, NAME.crt and NAME.key from this folder.")
    discover: bool = option(False, "Find peers on the local network by zeroconf.")
    create: bool = option(False, "Make the pools at once: this node is the first of them.")
    socket: str | None = option(None, "Listen at this Unix socket for programs of this machine.")
    http: str | None = option(None, "Serve HTTP and the page at this host:port.")
    http_token_file: str | None = option(
        None, "Read the bearer token of the HTTP interface from this file."
    )
    http_names: tuple[str, ...] = option(
        (), "Accept this host name in requests of browsers. May be repeated.", "--http-name"
    )
    allow_actions: bool = option(False, "Let the page acquire permits and cut links.")
    trace: str | None = option(None, "Write traces to this folder.")
    trace_limit: int = option(
        10**9,
        "Keep at most this many bytes of trace per pool. Default: 1 GB.",
        within="TRACE_LIMIT",
    )
    state: str = option(
        "auto",
        "Keep what the node must remember in this folder, or 'none'. Default: the platform's "
        "folder for state.",
    )
    member: bool = option(
        True, "Let this node become a member by itself, or not.", "--member/--no-member", shown=True
    )
    most_pools: int = option(
        1000,
        "Let programs use this many pools, and peers announce as many. 1,000 if unset.",
        within="POOLS",
    )
    client_pools: bool = option(False, "Let programs of this machine make pools.")
    min_links: int = option(
        3,
        "Keep at least this many links, also to nodes that others know. 0: only to --peer.",
        within="MIN_LINKS",
    )
    advertise: str | None = option(
        None, "Announce this host or host:port to other nodes, if they cannot see it themselves."
    )
    heartbeat: float = option(
        0.1, "Send a heartbeat after this many seconds without a message.", within="HEARTBEAT"
    )
    dead: float = option(
        0.5, "Count a link as failed after this many seconds without a message.", within="DEAD"
    )
    clock_rate: float = option(
        1.0, "Set how fast the clock of leases runs. For tests only.", within="CLOCK_RATE"
    )
    zenoh: dict[str, Any] | None = option(
        None, "Join the Zenoh network with these settings (JSON).", as_text=True
    )

    def __init__(self, pools: dict[str, PoolSettings] | None = None, **given: Any) -> None:
        super().__init__(**given)
        self.pools = pools if pools is not None else {}

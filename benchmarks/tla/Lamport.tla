------------------------------ MODULE Lamport ------------------------------
(* Lamport's mutual exclusion by logical clocks, N sites, FIFO channels.      *)
(* One action is one run of one handler, as in meshlock's checker; clocks are *)
(* not bounded, the number of requests is.                                    *)
EXTENDS Integers, Sequences

CONSTANTS N, Asks      \* sites, and requests of each site

Site == 0 .. N - 1
Channel == {c \in Site \X Site : c[1] # c[2]}

VARIABLES
    clock,
    queue,      \* stamp of the request each site is known to have, 0 if none
    heard,      \* from whom something younger than our request has come
    left,       \* requests still to be made
    mode,       \* "out", "waiting" or "inside"
    channel
vars == <<clock, queue, heard, left, mode, channel>>

Init ==
    /\ clock = [s \in Site |-> 0]
    /\ queue = [s \in Site |-> [t \in Site |-> 0]]
    /\ heard = [s \in Site |-> [t \in Site |-> FALSE]]
    /\ left = [s \in Site |-> Asks]
    /\ mode = [s \in Site |-> "out"]
    /\ channel = [c \in Channel |-> <<>>]

Younger(stamp, site, mine, s) == stamp > mine \/ (stamp = mine /\ site > s)

(* May s enter, its queue and what it has heard being these? *)
First(s, q, h) ==
    \A t \in Site \ {s} :
        /\ h[t]
        /\ q[t] > 0 => Younger(q[t], t, q[s], s)

Ask(s) ==
    /\ left[s] > 0
    /\ mode[s] = "out"
    /\ left' = [left EXCEPT ![s] = @ - 1]
    /\ clock' = [clock EXCEPT ![s] = @ + 1]
    /\ queue' = [queue EXCEPT ![s][s] = clock[s] + 1]
    /\ mode' = [mode EXCEPT ![s] = IF First(s, [queue[s] EXCEPT ![s] = clock[s] + 1], heard[s])
                                   THEN "inside" ELSE "waiting"]
    /\ channel' = [c \in Channel |->
         IF c[1] = s THEN Append(channel[c], <<"request", clock[s] + 1>>) ELSE channel[c]]
    /\ UNCHANGED heard

Leave(s) ==
    /\ mode[s] = "inside"
    /\ mode' = [mode EXCEPT ![s] = "out"]
    /\ clock' = [clock EXCEPT ![s] = @ + 1]
    /\ queue' = [queue EXCEPT ![s][s] = 0]
    /\ heard' = [heard EXCEPT ![s] = [t \in Site |-> FALSE]]
    /\ channel' = [c \in Channel |->
         IF c[1] = s THEN Append(channel[c], <<"release", clock[s] + 1>>) ELSE channel[c]]
    /\ UNCHANGED left

Receive(c) ==
    /\ channel[c] # <<>>
    /\ LET s == c[2]
           from == c[1]
           kind == Head(channel[c])[1]
           stamp == Head(channel[c])[2]
           base == [channel EXCEPT ![c] = Tail(@)]
           time == IF stamp + 1 > clock[s] THEN stamp + 1 ELSE clock[s]
           h == IF mode[s] = "waiting" /\ Younger(stamp, from, queue[s][s], s)
                THEN [heard[s] EXCEPT ![from] = TRUE] ELSE heard[s]
           q == CASE kind = "request" -> [queue[s] EXCEPT ![from] = stamp]
                  [] kind = "release" -> [queue[s] EXCEPT ![from] = 0]
                  [] OTHER -> queue[s]
       IN  /\ clock' = [clock EXCEPT ![s] = time]
           /\ heard' = [heard EXCEPT ![s] = h]
           /\ queue' = [queue EXCEPT ![s] = q]
           /\ mode' = IF mode[s] = "waiting" /\ First(s, q, h)
                      THEN [mode EXCEPT ![s] = "inside"] ELSE mode
           /\ channel' = IF kind = "request"
                         THEN [base EXCEPT ![<<s, from>>] = Append(@, <<"ack", time>>)] ELSE base
    /\ UNCHANGED left

Next == \/ \E s \in Site : Ask(s) \/ Leave(s)
        \/ \E c \in Channel : Receive(c)

Spec == Init /\ [][Next]_vars

Safe == \A s, t \in Site : mode[s] = "inside" /\ mode[t] = "inside" => s = t
Served ==
    (\A s \in Site : mode[s] # "inside") /\ (\A c \in Channel : channel[c] = <<>>)
        => \A s \in Site : mode[s] # "waiting"
=============================================================================

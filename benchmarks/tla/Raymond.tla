------------------------------ MODULE Raymond ------------------------------
(* Raymond's tree algorithm on a line of N nodes, the token at node 0.       *)
(* One action is one run of one handler, as in meshlock's checker: a client  *)
(* asks, a client leaves, or the first message of a channel is received.     *)
EXTENDS Integers, Sequences

CONSTANTS N, Asks      \* nodes, and requests of each node

Node == 0 .. N - 1
Nil == -1
Channel == {c \in Node \X Node : c[1] - c[2] \in {-1, 1}}

VARIABLES
    token,      \* is the token here?
    asked,      \* has the node asked for it, or is it in use?
    father,     \* the neighbour nearer to the token
    mandator,   \* on whose account the node asked
    queue,      \* what was asked meanwhile
    left,       \* requests still to be made
    mode,       \* "out", "waiting" or "inside"
    channel
vars == <<token, asked, father, mandator, queue, left, mode, channel>>

Init ==
    /\ token = [n \in Node |-> n = 0]
    /\ asked = [n \in Node |-> FALSE]
    /\ father = [n \in Node |-> n - 1]
    /\ mandator = [n \in Node |-> Nil]
    /\ queue = [n \in Node |-> <<>>]
    /\ left = [n \in Node |-> Asks]
    /\ mode = [n \in Node |-> "out"]
    /\ channel = [c \in Channel |-> <<>>]

(* A node while it works: its variables, what it sends, whether it enters.   *)
Local(n) == [token |-> token[n], asked |-> asked[n], father |-> father[n],
             mandator |-> mandator[n], queue |-> queue[n], mode |-> mode[n],
             up |-> <<>>, down |-> <<>>]

Send(n, s, to, message) ==
    IF to > n THEN [s EXCEPT !.up = Append(@, message)]
              ELSE [s EXCEPT !.down = Append(@, message)]

RECURSIVE Serve(_, _)
Serve(n, s) ==
    IF s.asked \/ s.queue = <<>> THEN s
    ELSE LET asker == Head(s.queue)
             t == [s EXCEPT !.queue = Tail(@)]
         IN  IF asker = n
             THEN IF t.token
                  THEN [t EXCEPT !.asked = TRUE, !.mode = "inside"]
                  ELSE Send(n, [t EXCEPT !.asked = TRUE, !.mandator = n], t.father, "request")
             ELSE IF t.token
                  THEN Serve(n, Send(n, [t EXCEPT !.token = FALSE, !.father = asker],
                                     asker, "token"))
                  ELSE Send(n, [t EXCEPT !.asked = TRUE, !.mandator = asker],
                            t.father, "request")

Become(n, s, base) ==
    /\ token' = [token EXCEPT ![n] = s.token]
    /\ asked' = [asked EXCEPT ![n] = s.asked]
    /\ father' = [father EXCEPT ![n] = s.father]
    /\ mandator' = [mandator EXCEPT ![n] = s.mandator]
    /\ queue' = [queue EXCEPT ![n] = s.queue]
    /\ mode' = [mode EXCEPT ![n] = s.mode]
    /\ LET risen == IF s.up = <<>> THEN base
                    ELSE [base EXCEPT ![<<n, n + 1>>] = @ \o s.up]
       IN  channel' = IF s.down = <<>> THEN risen
                      ELSE [risen EXCEPT ![<<n, n - 1>>] = @ \o s.down]

Ask(n) ==
    /\ left[n] > 0
    /\ mode[n] = "out"
    /\ left' = [left EXCEPT ![n] = @ - 1]
    /\ LET s == [Local(n) EXCEPT !.mode = "waiting", !.queue = Append(@, n)]
       IN  Become(n, Serve(n, s), channel)

Leave(n) ==
    /\ mode[n] = "inside"
    /\ LET s == [Local(n) EXCEPT !.mode = "out", !.asked = FALSE]
       IN  Become(n, Serve(n, s), channel)
    /\ UNCHANGED left

Receive(c) ==
    /\ channel[c] # <<>>
    /\ LET n == c[2]
           base == [channel EXCEPT ![c] = Tail(@)]
           s == Local(n)
       IN  IF Head(channel[c]) = "request"
           THEN Become(n, Serve(n, [s EXCEPT !.queue = Append(@, c[1])]), base)
           ELSE IF mandator[n] = n
                THEN Become(n, [s EXCEPT !.token = TRUE, !.father = Nil, !.mandator = Nil,
                                         !.mode = "inside"], base)
                ELSE LET t == [s EXCEPT !.asked = FALSE, !.father = mandator[n],
                                        !.mandator = Nil]
                     IN  Become(n, Serve(n, Send(n, t, mandator[n], "token")), base)
    /\ UNCHANGED left

Next == \/ \E n \in Node : Ask(n) \/ Leave(n)
        \/ \E c \in Channel : Receive(c)

Spec == Init /\ [][Next]_vars

Safe == \A m, n \in Node : mode[m] = "inside" /\ mode[n] = "inside" => m = n
Served ==
    (\A n \in Node : mode[n] # "inside") /\ (\A c \in Channel : channel[c] = <<>>)
        => \A n \in Node : mode[n] # "waiting"
=============================================================================

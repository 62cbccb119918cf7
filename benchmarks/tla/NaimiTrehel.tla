---------------------------- MODULE NaimiTrehel ----------------------------
(* Naimi-Trehel in the variant of the general scheme (every node transit),   *)
(* N nodes that can all reach each other, FIFO channels, the token at 0.     *)
(* One action is one run of one handler, as in meshlock's checker.           *)
EXTENDS Integers, Sequences

CONSTANTS N, Asks      \* nodes, and requests of each node

Node == 0 .. N - 1
Nil == -1
Channel == {c \in Node \X Node : c[1] # c[2]}
Token == Nil           \* a message is the token, or the name of a node that asks

VARIABLES token, asked, father, queue, left, mode, channel
vars == <<token, asked, father, queue, left, mode, channel>>

Init ==
    /\ token = [n \in Node |-> n = 0]
    /\ asked = [n \in Node |-> FALSE]
    /\ father = [n \in Node |-> IF n = 0 THEN Nil ELSE 0]
    /\ queue = [n \in Node |-> <<>>]
    /\ left = [n \in Node |-> Asks]
    /\ mode = [n \in Node |-> "out"]
    /\ channel = [c \in Channel |-> <<>>]

Local(n) == [token |-> token[n], asked |-> asked[n], father |-> father[n],
             queue |-> queue[n], mode |-> mode[n], out |-> <<>>]

Send(s, to, message) == [s EXCEPT !.out = Append(@, <<to, message>>)]

(* Take up what has been asked of us, until we have asked ourselves. *)
RECURSIVE Serve(_, _)
Serve(n, s) ==
    IF s.asked \/ s.queue = <<>> THEN s
    ELSE LET asker == Head(s.queue)
             t == [s EXCEPT !.queue = Tail(@)]
         IN  IF asker = n
             THEN IF t.token
                  THEN [t EXCEPT !.asked = TRUE, !.mode = "inside"]
                  ELSE Send([t EXCEPT !.asked = TRUE], t.father, n)
             ELSE IF t.token
                  THEN Serve(n, Send([t EXCEPT !.token = FALSE, !.father = asker],
                                     asker, Token))
                  ELSE Serve(n, Send([t EXCEPT !.father = asker], t.father, asker))

RECURSIVE Carry(_, _, _)
Carry(n, base, out) ==
    IF out = <<>> THEN base
    ELSE Carry(n, [base EXCEPT ![<<n, Head(out)[1]>>] = Append(@, Head(out)[2])], Tail(out))

Become(n, s, base) ==
    /\ token' = [token EXCEPT ![n] = s.token]
    /\ asked' = [asked EXCEPT ![n] = s.asked]
    /\ father' = [father EXCEPT ![n] = s.father]
    /\ queue' = [queue EXCEPT ![n] = s.queue]
    /\ mode' = [mode EXCEPT ![n] = s.mode]
    /\ channel' = Carry(n, base, s.out)

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
           message == Head(channel[c])
           s == Local(n)
       IN  IF message = Token
           THEN Become(n, [s EXCEPT !.token = TRUE, !.father = Nil, !.mode = "inside"], base)
           ELSE Become(n, Serve(n, [s EXCEPT !.queue = Append(@, message)]), base)
    /\ UNCHANGED left

Next == \/ \E n \in Node : Ask(n) \/ Leave(n)
        \/ \E c \in Channel : Receive(c)

Spec == Init /\ [][Next]_vars

Safe == \A m, n \in Node : mode[m] = "inside" /\ mode[n] = "inside" => m = n
Served ==
    (\A n \in Node : mode[n] # "inside") /\ (\A c \in Channel : channel[c] = <<>>)
        => \A n \in Node : mode[n] # "waiting"
=============================================================================

---------------------------- MODULE SuzukiKasami ----------------------------
(* Suzuki and Kasami's broadcast algorithm, N sites, FIFO channels, the       *)
(* token at 0. One action is one run of one handler, as in meshlock's checker.*)
EXTENDS Integers, Sequences

CONSTANTS N, Asks      \* sites, and requests of each site

Site == 0 .. N - 1
Channel == {c \in Site \X Site : c[1] # c[2]}
NoToken == [kind |-> "none"]
Token(queue, served) == [kind |-> "token", queue |-> queue, served |-> served]
Request(n) == [kind |-> "request", number |-> n]

VARIABLES
    token,      \* the token, where it is
    number,     \* RN: highest known request number of each site
    left,       \* requests still to be made
    mode,       \* "out", "waiting" or "inside"
    channel
vars == <<token, number, left, mode, channel>>

Init ==
    /\ token = [s \in Site |-> IF s = 0 THEN Token(<<>>, [t \in Site |-> 0]) ELSE NoToken]
    /\ number = [s \in Site |-> [t \in Site |-> 0]]
    /\ left = [s \in Site |-> Asks]
    /\ mode = [s \in Site |-> "out"]
    /\ channel = [c \in Channel |-> <<>>]

Ask(s) ==
    /\ left[s] > 0
    /\ mode[s] = "out"
    /\ left' = [left EXCEPT ![s] = @ - 1]
    /\ IF token[s].kind = "token"
       THEN /\ mode' = [mode EXCEPT ![s] = "inside"]
            /\ UNCHANGED <<number, channel>>
       ELSE /\ mode' = [mode EXCEPT ![s] = "waiting"]
            /\ number' = [number EXCEPT ![s][s] = @ + 1]
            /\ channel' = [c \in Channel |->
                 IF c[1] = s THEN Append(channel[c], Request(number[s][s] + 1)) ELSE channel[c]]
    /\ UNCHANGED token

RECURSIVE Enqueue(_, _, _, _)
Enqueue(s, site, queue, served) ==     \* everybody who waits and is not in the queue yet
    IF site = N THEN queue
    ELSE Enqueue(s, site + 1,
                 IF /\ site # s
                    /\ \A i \in 1 .. Len(queue) : queue[i] # site
                    /\ number[s][site] = served[site] + 1
                 THEN Append(queue, site) ELSE queue, served)

Leave(s) ==
    /\ mode[s] = "inside"
    /\ mode' = [mode EXCEPT ![s] = "out"]
    /\ LET served == [token[s].served EXCEPT ![s] = number[s][s]]
           queue == Enqueue(s, 0, token[s].queue, served)
       IN  IF queue = <<>>
           THEN /\ token' = [token EXCEPT ![s] = Token(queue, served)]
                /\ UNCHANGED channel
           ELSE /\ token' = [token EXCEPT ![s] = NoToken]
                /\ channel' = [channel EXCEPT ![<<s, Head(queue)>>] =
                     Append(@, Token(Tail(queue), served))]
    /\ UNCHANGED <<number, left>>

Receive(c) ==
    /\ channel[c] # <<>>
    /\ LET s == c[2]
           from == c[1]
           message == Head(channel[c])
           base == [channel EXCEPT ![c] = Tail(@)]
       IN  IF message.kind = "request"
           THEN LET known == IF message.number > number[s][from]
                             THEN message.number ELSE number[s][from]
                IN  /\ number' = [number EXCEPT ![s][from] = known]
                    /\ IF /\ token[s].kind = "token"
                          /\ mode[s] = "out"
                          /\ known = token[s].served[from] + 1
                       THEN /\ token' = [token EXCEPT ![s] = NoToken]
                            /\ channel' = [base EXCEPT ![<<s, from>>] = Append(@, token[s])]
                       ELSE /\ channel' = base
                            /\ UNCHANGED token
                    /\ UNCHANGED mode
           ELSE /\ token' = [token EXCEPT ![s] = message]
                /\ mode' = [mode EXCEPT ![s] = "inside"]
                /\ channel' = base
                /\ UNCHANGED number
    /\ UNCHANGED left

Next == \/ \E s \in Site : Ask(s) \/ Leave(s)
        \/ \E c \in Channel : Receive(c)

Spec == Init /\ [][Next]_vars

Safe == \A s, t \in Site : mode[s] = "inside" /\ mode[t] = "inside" => s = t
Served ==
    (\A s \in Site : mode[s] # "inside") /\ (\A c \in Channel : channel[c] = <<>>)
        => \A s \in Site : mode[s] # "waiting"
=============================================================================

/* Lamport's mutual exclusion by logical clocks; the same model as ../tla/Lamport.tla. */
mtype = { request, ack, release };
mtype = { out, waiting, in };

chan c[N * N] = [4] of { mtype, byte };   /* c[from * N + to] */
byte inside = 0;

inline tell_all(what) {
    i = 0;
    do
    :: i < N ->
        if
        :: i != me -> c[me * N + i]!what, clock
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

inline enter_if_first() {
    if
    :: mode == waiting ->
        first = true;
        i = 0;
        do
        :: i < N ->
            if
            :: i != me && (!heard[i] || (queue[i] > 0 &&
                   !(queue[i] > queue[me] || (queue[i] == queue[me] && i > me)))) -> first = false
            :: else
            fi;
            i++
        :: else -> break
        od;
        if
        :: first -> mode = in; inside++; assert(inside == 1)
        :: else
        fi;
        i = 0;
        first = false
    :: else
    fi
}

inline receive(from) {
    c[from * N + me]?kind, stamp;
    if
    :: stamp + 1 > clock -> clock = stamp + 1
    :: else
    fi;
    if
    :: mode == waiting && (stamp > queue[me] || (stamp == queue[me] && from > me)) ->
        heard[from] = true
    :: else
    fi;
    if
    :: kind == request -> queue[from] = stamp; c[me * N + from]!ack, clock
    :: kind == release -> queue[from] = 0
    :: else
    fi;
    enter_if_first();
    kind = 0;
    stamp = 0
}

#define FROM(f) d_step { f != me && len(c[f * N + me]) > 0 -> receive(f) }

proctype Site(byte me) {
    byte clock = 0, left = ASKS, stamp = 0, i = 0;
    byte queue[N];
    bool heard[N], first = false;
    mtype mode = out, kind = 0;
end:
    do
    :: d_step {
        left > 0 && mode == out ->
        left--;
        mode = waiting;
        clock++;
        queue[me] = clock;
        tell_all(request);
        enter_if_first()
       }
    :: d_step {
        mode == in ->
        mode = out;
        inside--;
        clock++;
        queue[me] = 0;
        do
        :: i < N -> heard[i] = false; i++
        :: else -> break
        od;
        tell_all(release)
       }
    :: FROM(0)
    :: FROM(1)
    :: FROM(2)
#if N > 3
    :: FROM(3)
#endif
#if N > 4
    :: FROM(4)
#endif
#if N > 5
    :: FROM(5)
#endif
    od
}

init {
    byte n = 0;
    atomic {
        do
        :: n < N -> run Site(n); n++
        :: else -> break
        od;
        n = 0
    }
}

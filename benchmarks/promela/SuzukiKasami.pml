/* Suzuki and Kasami's broadcast algorithm; the same model as ../tla/SuzukiKasami.tla.
   The token is one, so its queue and numbers stand in global variables, not at its holder. */
mtype = { request, token };
mtype = { out, waiting, in };

chan c[N * N] = [4] of { mtype, byte };   /* c[from * N + to] */
chan queue = [N] of { byte };
byte served[N];
byte inside = 0;

inline enter() { mode = in; inside++; assert(inside == 1) }

inline receive(from) {
    c[from * N + me]?kind, n;
    if
    :: kind == request ->
        if
        :: n > number[from] -> number[from] = n
        :: else
        fi;
        if
        :: here && mode == out && number[from] == served[from] + 1 ->
            here = false;
            c[me * N + from]!token, 0
        :: else
        fi
    :: else -> here = true; enter()
    fi;
    kind = 0;
    n = 0
}

#define FROM(f) d_step { f != me && len(c[f * N + me]) > 0 -> receive(f) }

proctype Site(byte me) {
    byte left = ASKS, n = 0, i = 0;
    byte number[N];
    bool here = (me == 0);
    mtype mode = out, kind = 0;
end:
    do
    :: d_step {
        left > 0 && mode == out ->
        left--;
        mode = waiting;
        if
        :: here -> enter()
        :: else ->
            number[me]++;
            do
            :: i < N ->
                if
                :: i != me -> c[me * N + i]!request, number[me]
                :: else
                fi;
                i++
            :: else -> break
            od;
            i = 0
        fi
       }
    :: d_step {
        mode == in ->
        mode = out;
        inside--;
        served[me] = number[me];
        do
        :: i < N ->
            if
            :: i != me && !(queue??[eval(i)]) && number[i] == served[i] + 1 -> queue!i
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        if
        :: len(queue) > 0 -> queue?n; here = false; c[me * N + n]!token, 0; n = 0
        :: else
        fi
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

/* Raymond's tree algorithm on a line; the same model as ../tla/Raymond.tla. */
#define NIL 255
mtype = { request, token };
mtype = { out, waiting, in };

chan up[N] = [3] of { mtype };     /* up[n]: from n to n + 1 */
chan down[N] = [3] of { mtype };   /* down[n]: from n to n - 1 */
byte inside = 0;

inline send(to, what) {
    if
    :: to > me -> up[me]!what
    :: else -> down[me]!what
    fi
}

inline enter() { mode = in; inside++; assert(inside == 1) }

inline serve() {
    do
    :: !asked && len(queue) > 0 ->
        queue?asker;
        if
        :: asker == me ->
            asked = true;
            if
            :: here -> enter()
            :: else -> mandator = me; send(father, request)
            fi
        :: asker != me && here -> send(asker, token); here = false; father = asker
        :: asker != me && !here -> asked = true; mandator = asker; send(father, request)
        fi
    :: else -> break
    od;
    asker = 0
}

inline receive(from, channel) {
    channel?message;
    if
    :: message == request -> queue!from; serve()
    :: else ->
        if
        :: mandator == me -> here = true; father = NIL; mandator = NIL; enter()
        :: else ->
            asked = false;
            father = mandator;
            send(mandator, token);
            mandator = NIL;
            serve()
        fi
    fi;
    message = 0
}

proctype Node(byte me; bool here; byte father) {
    bool asked = false;
    byte mandator = NIL, left = ASKS, asker = 0;
    mtype mode = out, message = 0;
    chan queue = [N] of { byte };
end:
    do
    :: d_step { left > 0 && mode == out -> left--; mode = waiting; queue!me; serve() }
    :: d_step { mode == in -> mode = out; inside--; asked = false; serve() }
    :: d_step { me > 0 && nempty(up[me - 1]) -> receive(me - 1, up[me - 1]) }
    :: d_step { me < N - 1 && nempty(down[me + 1]) -> receive(me + 1, down[me + 1]) }
    od
}

init {
    byte n = 0;
    atomic {
        do
        :: n < N -> run Node(n, n == 0, (n == 0 -> NIL : n - 1)); n++
        :: else -> break
        od;
        n = 0
    }
}

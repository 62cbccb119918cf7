/* Naimi-Trehel in the variant of the general scheme; the model of ../tla/NaimiTrehel.tla. */
#define NIL 255
#define TOKEN 254                  /* a message is the token, or the name of a node that asks */
mtype = { out, waiting, in };

chan c[N * N] = [4] of { byte };   /* c[from * N + to] */
byte inside = 0;

inline send(to, what) { c[me * N + to]!what }
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
            :: else -> send(father, me)
            fi
        :: asker != me && here -> send(asker, TOKEN); here = false; father = asker
        :: asker != me && !here -> send(father, asker); father = asker
        fi
    :: else -> break
    od;
    asker = 0
}

inline receive(from) {
    c[from * N + me]?message;
    if
    :: message == TOKEN -> here = true; father = NIL; enter()
    :: else -> queue!message; serve()
    fi;
    message = 0
}

#define FROM(f) d_step { f != me && len(c[f * N + me]) > 0 -> receive(f) }

proctype Node(byte me; bool here; byte father) {
    bool asked = false;
    byte left = ASKS, asker = 0, message = 0;
    mtype mode = out;
    chan queue = [N] of { byte };
end:
    do
    :: d_step { left > 0 && mode == out -> left--; mode = waiting; queue!me; serve() }
    :: d_step { mode == in -> mode = out; inside--; asked = false; serve() }
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
        :: n < N -> run Node(n, n == 0, (n == 0 -> NIL : 0)); n++
        :: else -> break
        od;
        n = 0
    }
}

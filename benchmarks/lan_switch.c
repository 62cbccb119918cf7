/* A switch in user space: TAP devices joined with delay, jitter, loss and bandwidth.
 *
 *     lan_switch PREFIX PORTS
 *
 * makes the devices PREFIX0, PREFIX1, ... and says "ready". Then it obeys lines:
 *     shape DELAY_US JITTER_US LOSS_PPM KBIT     of every way from now on; 0 KBIT: no limit
 *     count                                      answers with frames and bytes delivered so far
 *     cut PORT, heal PORT                        a host that is cut off hears and says nothing
 * Every line is answered. Frames of two ports keep their order, also with jitter.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, FRAME = 2048 };

struct frame {
    uint64_t due, number;
    int port, length;
    unsigned char bytes[FRAME];
};

static int ports, device[MOST], is_cut[MOST];
static unsigned char address[MOST][6];
static uint64_t delay, jitter, loss, kbit;
static uint64_t last_due[MOST][MOST], line_free[MOST];
static struct frame **heap;
static size_t waiting, room;
static uint64_t sent, frames, bytes;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int earlier(struct frame *a, struct frame *b) {
    return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static void push(struct frame *f) {
    if (waiting == room) heap = realloc(heap, (room = room ? 2 * room : 1024) * sizeof *heap);
    size_t place = waiting++;
    for (; place && earlier(f, heap[(place - 1) / 2]); place = (place - 1) / 2)
        heap[place] = heap[(place - 1) / 2];
    heap[place] = f;
}

static struct frame *pop(void) {
    struct frame *first = heap[0], *last = heap[--waiting];
    size_t place = 0, child;
    for (; (child = 2 * place + 1) < waiting; place = child) {
        if (child + 1 < waiting && earlier(heap[child + 1], heap[child])) child++;
        if (!earlier(heap[child], last)) break;
        heap[place] = heap[child];
    }
    heap[place] = last;
    return first;
}

static void forward(int from, int to, const unsigned char *data, int length, uint64_t at) {
    if (is_cut[from] || is_cut[to] || (loss && (uint64_t)(rand() % 1000000) < loss)) return;
    uint64_t due = at + delay + (jitter ? jitter * (rand() % 1024) / 1024 : 0);
    if (kbit) {
        uint64_t begin = at > line_free[to] ? at : line_free[to];
        line_free[to] = begin + length * 8000000ull / kbit;
        due += line_free[to] - at;
    }
    if (due < last_due[from][to]) due = last_due[from][to];
    last_due[from][to] = due;
    struct frame *f = malloc(sizeof *f);
    f->due = due, f->number = sent++, f->port = to, f->length = length;
    memcpy(f->bytes, data, length);
    push(f);
}

static void receive(int from) {
    unsigned char data[FRAME];
    int length;
    while ((length = read(device[from], data, sizeof data)) > 0) {
        uint64_t at = now();
        int one = -1;
        memcpy(address[from], data + 6, 6);
        for (int to = 0; to < ports && !(data[0] & 1); to++)
            if (!memcmp(address[to], data, 6)) one = to;
        for (int to = 0; to < ports; to++)
            if (to != from && (one < 0 || to == one)) forward(from, to, data, length, at);
    }
}

static void obey(void) {
    char line[128];
    int port;
    if (!fgets(line, sizeof line, stdin)) exit(0);
    if (sscanf(line, "shape %lu %lu %lu %lu", &delay, &jitter, &loss, &kbit) == 4)
        delay *= 1000, jitter *= 1000;
    else if (sscanf(line, "cut %d", &port) == 1) is_cut[port] = 1;
    else if (sscanf(line, "heal %d", &port) == 1) is_cut[port] = 0;
    printf("%lu %lu\n", frames, bytes);
    fflush(stdout);
}

int main(int count, char **word) {
    if (count != 3 || (ports = atoi(word[2])) < 1 || ports > MOST) return 2;
    int poll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = -1}, events[MOST];
    prctl(PR_SET_TIMERSLACK, 1000);
    setvbuf(stdin, NULL, _IONBF, 0);
    epoll_ctl(poll, EPOLL_CTL_ADD, 0, &event);
    event.data.fd = -2;
    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event);
    for (int port = 0; port < ports; port++) {
        struct ifreq name = {.ifr_flags = IFF_TAP | IFF_NO_PI};
        snprintf(name.ifr_name, sizeof name.ifr_name, "%s%d", word[1], port);
        device[port] = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
        if (device[port] < 0 || ioctl(device[port], TUNSETIFF, &name)) return perror("TAP"), 1;
        event.data.fd = port;
        epoll_ctl(poll, EPOLL_CTL_ADD, device[port], &event);
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct itimerspec at = {0};
        if (waiting)
            at.it_value.tv_sec = heap[0]->due / 1000000000, at.it_value.tv_nsec = heap[0]->due % 1000000000;
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
        int found = epoll_wait(poll, events, MOST, -1);
        for (int i = 0; i < found; i++) {
            uint64_t ignored;
            if (events[i].data.fd >= 0) receive(events[i].data.fd);
            else if (events[i].data.fd == -1) obey();
            else if (read(timer, &ignored, sizeof ignored) < 0) continue;
        }
        while (waiting && heap[0]->due <= now()) {
            struct frame *f = pop();
            if (!is_cut[f->port] && write(device[f->port], f->bytes, f->length) > 0)
                frames++, bytes += f->length;
            free(f);
        }
    }
}

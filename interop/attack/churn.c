/* TLS connections that leave as soon as the server has answered their ClientHello, from many addresses at a steady rate.
 *
 *   churn ADDRESS PORT RATE SECONDS SOURCES < CLIENT-HELLO
 *
 * The sources are 10.0.1.1 and those that follow. It prints a line when it begins, and then connections opened and answered
 * in a second, as JSON. A connection that has no answer after a second leaves as well. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 16 };

static double began[MOST]; /* by descriptor; 0: closed */
static int order[MOST];    /* the descriptors, in the order in which they were opened */
static unsigned char hello[4096];

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void leave(int fd) {
    began[fd] = 0;
    close(fd);
}

/* Begins a connection; the kernel chooses the port when it knows both addresses. */
static int enter(int poll, const struct sockaddr_in *to, unsigned source) {
    struct linger reset = {1, 0};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000101 + source)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLOUT, .data.fd = fd};
    if (fd >= MOST || bind(fd, (struct sockaddr *)&own, sizeof own) < 0 ||
        (connect(fd, (const struct sockaddr *)to, sizeof *to) < 0 && errno != EINPROGRESS) ||
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0) {
        close(fd);
        return -1;
    }
    began[fd] = seconds();
    return fd;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    ssize_t length = read(0, hello, sizeof hello);
    double rate = atof(argv[3]), span = atof(argv[4]), start, now;
    unsigned sources = atoi(argv[5]);
    unsigned long tried = 0, opened = 0, answered = 0, oldest = 0;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    int poll = epoll_create1(0);
    if (!inet_aton(argv[1], &to.sin_addr) || length <= 0 || !sources || poll < 0) return 2;
    puts("ready");
    fflush(stdout);
    for (start = now = seconds(); now < start + span; now = seconds()) {
        unsigned long due = (now - start) * rate;
        /* What is more than 50 ms late is left out. */
        if (due > tried + rate / 20) tried = due - rate / 20;
        for (; tried < due; tried++) {
            int fd = enter(poll, &to, tried % sources);
            if (fd >= 0) order[opened++ % MOST] = fd;
        }
        struct epoll_event events[256];
        int count = epoll_wait(poll, events, 256, 1);
        for (int n = 0; n < count; n++) {
            int fd = events[n].data.fd;
            char byte;
            if (events[n].events & EPOLLIN) {
                answered += read(fd, &byte, 1) == 1;
                leave(fd);
            } else if (events[n].events & EPOLLOUT && send(fd, hello, length, MSG_NOSIGNAL) == length) {
                struct epoll_event next = {.events = EPOLLIN, .data.fd = fd};
                epoll_ctl(poll, EPOLL_CTL_MOD, fd, &next);
            } else {
                leave(fd);
            }
        }
        for (; oldest < opened; oldest++) {
            int fd = order[oldest % MOST];
            if (began[fd] && began[fd] > now - 1) break;
            if (began[fd]) leave(fd);
        }
    }
    printf("{\"opened\": %.0f, \"answered\": %.0f}\n", opened / span, answered / span);
    return 0;
}

/* Uses up what the kernel counts per user: `watches epoll LIMIT` or `watches inotify LIMIT`. Prints how many it got, and
 * keeps them until its input ends or a minute has passed. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { EVENTS = 1990 };

static long watch_epolls(long limit) {
    int events[EVENTS];
    for (int i = 0; i < EVENTS; i++)
        if ((events[i] = eventfd(0, EFD_CLOEXEC)) < 0) return -1;
    for (long made = 0;;) {
        int poll = epoll_create1(EPOLL_CLOEXEC);
        if (poll < 0) return made;
        for (int i = 0; i < EVENTS; i++, made++) {
            struct epoll_event event = {.events = EPOLLIN};
            if (made >= limit || epoll_ctl(poll, EPOLL_CTL_ADD, events[i], &event) < 0) return made;
        }
    }
}

static long make_inotifies(long limit) {
    long made = 0;
    while (made < limit && inotify_init1(IN_CLOEXEC) >= 0) made++;
    return made;
}

int main(int argc, char **argv) {
    if (argc != 3) return 64;
    long limit = atol(argv[2]);
    long made = strcmp(argv[1], "epoll") == 0 ? watch_epolls(limit) : make_inotifies(limit);
    printf("%ld %s\n", made, strerrorname_np(errno) ? strerrorname_np(errno) : "0");
    fflush(stdout);
    sleep(60);
    return 0;
}

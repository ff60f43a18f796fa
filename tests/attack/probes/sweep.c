/* Makes every system call, and some that do not exist, with odd arguments, each in a process of its own that has little
 * time. The result shows outside: nothing of the host may have changed. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LAST = 620, SETS = 5, AT_ONCE = 32, SECOND_SET = 0x40000000 };

/* They would slow the whole machine down, or end this program or its parent, which is allowed. */
static const long LEFT_OUT[] = {
    SYS_sync, SYS_syncfs, SYS_exit, SYS_exit_group, SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo, 424 /* pidfd_send_signal */,
};

static int is_left_out(long number) {
    for (size_t i = 0; i < sizeof LEFT_OUT / sizeof *LEFT_OUT; i++)
        if (LEFT_OUT[i] == (number & ~(long)SECOND_SET)) return 1;
    return 0;
}

static void make(long number, int set, long page) {
    long a[SETS][6] = {
        {0, 0, 0, 0, 0, 0},
        {-1, -1, -1, -1, -1, -1},
        {page, page, page, page, page, page},
        {-100, page, 0x7fffffffffffffff, page, 1, 0},
        {1, 2, page, 4096, page, 0x10000000},
    };
    syscall(number, a[set][0], a[set][1], a[set][2], a[set][3], a[set][4], a[set][5]);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* Waits for the processes of one round, and ends those that hang. */
static void gather(pid_t *children, int count, long *signalled) {
    double until = now() + 0.25;
    for (int left = count; left > 0;) {
        int gone = 0;
        for (int i = 0; i < count; i++) {
            int status;
            if (children[i] == 0 || waitpid(children[i], &status, WNOHANG) <= 0) continue;
            *signalled += WIFSIGNALED(status);
            children[i] = 0;
            gone++;
        }
        left -= gone;
        if (gone == 0 && now() > until)
            for (int i = 0; i < count; i++)
                if (children[i] != 0) kill(children[i], SIGKILL);
        if (gone == 0) usleep(2000);
    }
}

int main(void) {
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t children[AT_ONCE];
    long made = 0, signalled = 0;
    int count = 0;
    signal(SIGHUP, SIG_IGN);
    for (int second = 0; second < 2; second++)
        for (long number = 0; number <= LAST; number++)
            for (int set = 0; set < (second ? 1 : SETS); set++) {
                long call = number + (second ? SECOND_SET : 0);
                if (is_left_out(call)) continue;
                pid_t child = fork();
                if (child == 0) {
                    setpgid(0, 0);
                    make(call, set, (long)page);
                    _exit(0);
                }
                if (child < 0) {
                    printf("fork %s\n", strerrorname_np(errno));
                    return 1;
                }
                made++;
                children[count++] = child;
                if (count == AT_ONCE) {
                    gather(children, count, &signalled);
                    count = 0;
                }
            }
    gather(children, count, &signalled);
    printf("made %ld calls, %ld ended by a signal\n", made, signalled);
    return 0;
}

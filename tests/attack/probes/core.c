/* Reads the limit on core dumps, tries to change it in every possible way, and prints the result. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say(const char *name, long result) {
    printf("%s %s\n", name, result < 0 ? strerrorname_np(errno) : "done");
}

int main(void) {
    struct rlimit limit, none = {0, 0}, all = {RLIM_INFINITY, RLIM_INFINITY}, one = {1, 1};
    getrlimit(RLIMIT_CORE, &limit);
    printf("core %ld %ld\n", (long)limit.rlim_cur, (long)limit.rlim_max);
    say("setrlimit-none", syscall(SYS_setrlimit, RLIMIT_CORE, &none));
    say("setrlimit-all", syscall(SYS_setrlimit, RLIMIT_CORE, &all));
    say("setrlimit-high-bits", syscall(SYS_setrlimit, RLIMIT_CORE | (1L << 40), &none));
    say("prlimit-none", syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL));
    say("prlimit-one", syscall(SYS_prlimit64, 0, RLIMIT_CORE, &one, NULL));
    getrlimit(RLIMIT_CORE, &limit);
    printf("core %ld %ld\n", (long)limit.rlim_cur, (long)limit.rlim_max);
    /* A program may lower other limits. */
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = 64;
    say("files", setrlimit(RLIMIT_NOFILE, &files));
    return 0;
}

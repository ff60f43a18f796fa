/* Asks for leases on a file: `lease FILE`. A lease stalls a process that opens the file outside. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void try(const char *name, int file, long command, long argument) {
    long result = syscall(SYS_fcntl, file, command, argument);
    printf("%s %s\n", name, result < 0 ? strerrorname_np(errno) : "done");
    if (result >= 0) syscall(SYS_fcntl, file, F_SETLEASE, F_UNLCK);
}

int main(int argc, char **argv) {
    if (argc != 2) return 64;
    int file = open(argv[1], O_RDONLY);
    if (file < 0) {
        printf("open %s\n", strerrorname_np(errno));
        return 1;
    }
    try("read", file, F_SETLEASE, F_RDLCK);
    try("write", file, F_SETLEASE, F_WRLCK);
    try("high-bits", file, F_SETLEASE | (1L << 40), F_RDLCK);
    /* Commands of honest programs have to work. */
    try("getfd", file, F_GETFD, 0);
    return 0;
}

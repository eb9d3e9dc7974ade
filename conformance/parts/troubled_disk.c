/* A disk that can be full or slow, of one process and its children: loaded by LD_PRELOAD, compiled by preload.py.
 *
 * The file that INORDER_TROUBLED_DISK names begins with two numbers of eight bytes. Where the first is not 0, whoever
 * asks how much room a file system has hears that there is none, and otherwise that all of it is free: how full this
 * machine's disk is decides nothing. The second is how many nanoseconds each sync takes longer, before it is done: what
 * is cut off meanwhile is not on the disk. The file is mapped and shared, so that either is there at once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static const volatile int64_t *numbers;
static int (*machine_statvfs)(const char *, struct statvfs *);
static int (*machine_statvfs64)(const char *, struct statvfs64 *);
static int (*machine_fsync)(int);
static int (*machine_fdatasync)(int);
static int (*machine_msync)(void *, size_t, int);

__attribute__((constructor)) static void open_the_file(void)
{
    const char *name = getenv("INORDER_TROUBLED_DISK");
    int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    machine_statvfs = (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
    machine_statvfs64 = (int (*)(const char *, struct statvfs64 *))dlsym(RTLD_NEXT, "statvfs64");
    machine_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    machine_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    machine_msync = (int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "msync");
    if (file < 0)
        return;
    void *page = mmap(NULL, 2 * sizeof *numbers, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED)
        numbers = page;
    close(file);
}

#define TELL_ROOM(answer)                                                                  \
    if (numbers != NULL)                                                                   \
        (answer)->f_bfree = (answer)->f_bavail = numbers[0] != 0 ? 0 : (answer)->f_blocks;

int statvfs(const char *restrict path, struct statvfs *restrict answer)
{
    int failed = machine_statvfs(path, answer);
    if (failed == 0)
        TELL_ROOM(answer);
    return failed;
}

int statvfs64(const char *restrict path, struct statvfs64 *restrict answer)
{
    int failed = machine_statvfs64(path, answer);
    if (failed == 0)
        TELL_ROOM(answer);
    return failed;
}

static void take_longer(void)
{
    int64_t ns = numbers == NULL ? 0 : numbers[1];
    struct timespec left = {ns / SECOND, ns % SECOND};
    int told = errno;
    if (ns > 0)
        while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
            ;
    errno = told;
}

int fsync(int file)
{
    take_longer();
    return machine_fsync(file);
}

int fdatasync(int file)
{
    take_longer();
    return machine_fdatasync(file);
}

int msync(void *from, size_t length, int flags)
{
    if (flags & MS_SYNC)
        take_longer();
    return machine_msync(from, length, flags);
}

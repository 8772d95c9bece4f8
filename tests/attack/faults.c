/* Fail the k-th change below a folder: loaded before the C library, and told by `arm` what to do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char below[PATH_MAX];
static long seen, target;
static int error_number;

/* error 0: kill the process */
void arm(const char *folder, long k, int error) {
    snprintf(below, sizeof below, "%s/", folder);
    seen = 0, target = k, error_number = error;
}

long changes(void) { return seen; }

static int hit(const char *path) {
    if (!below[0] || strncmp(path, below, strlen(below)) || ++seen != target) return 0;
    if (!error_number) kill(getpid(), SIGKILL);
    errno = error_number;
    return 1;
}

static int hit_fd(int fd) {
    char link[64], path[PATH_MAX];
    if (!below[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return hit(path);
}

static int hit_at(int fd, const char *name) {
    char link[64], path[2 * PATH_MAX];
    if (!below[0] || !name) return 0;
    if (name[0] == '/') return hit(name);
    snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n < 0) return 0;
    snprintf(path + n, sizeof path - n, "/%s", name);
    return hit(path);
}

#define REAL(name, ...) ((int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))
#define CHANGES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)
#define OPEN(name)                                                            \
    int name(const char *path, int flags, ...) {                              \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        if ((flags & CHANGES) && hit_at(AT_FDCWD, path)) return -1;           \
        return REAL(name, const char *, int, ...)(path, flags, mode);         \
    }
#define OPENAT(name)                                                          \
    int name(int fd, const char *path, int flags, ...) {                      \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        if ((flags & CHANGES) && hit_at(fd, path)) return -1;                 \
        return REAL(name, int, const char *, int, ...)(fd, path, flags, mode); \
    }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
    if (hit_fd(fd)) return -1;
    return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, size);
}
int fsync(int fd) { return hit_fd(fd) ? -1 : REAL(fsync, int)(fd); }
int fchmod(int fd, mode_t mode) { return hit_fd(fd) ? -1 : REAL(fchmod, int, mode_t)(fd, mode); }
int chmod(const char *path, mode_t mode) {
    return hit_at(AT_FDCWD, path) ? -1 : REAL(chmod, const char *, mode_t)(path, mode);
}
int rename(const char *one, const char *other) {
    return hit_at(AT_FDCWD, one) ? -1 : REAL(rename, const char *, const char *)(one, other);
}
int renameat(int a, const char *one, int b, const char *other) {
    return hit_at(a, one) ? -1 : REAL(renameat, int, const char *, int, const char *)(a, one, b, other);
}
int renameat2(int a, const char *one, int b, const char *other, unsigned flags) {
    return hit_at(a, one) ? -1
        : REAL(renameat2, int, const char *, int, const char *, unsigned)(a, one, b, other, flags);
}
int mkdir(const char *path, mode_t mode) {
    return hit_at(AT_FDCWD, path) ? -1 : REAL(mkdir, const char *, mode_t)(path, mode);
}
int mkdirat(int fd, const char *path, mode_t mode) {
    return hit_at(fd, path) ? -1 : REAL(mkdirat, int, const char *, mode_t)(fd, path, mode);
}
int unlink(const char *path) { return hit_at(AT_FDCWD, path) ? -1 : REAL(unlink, const char *)(path); }
int unlinkat(int fd, const char *path, int flags) {
    return hit_at(fd, path) ? -1 : REAL(unlinkat, int, const char *, int)(fd, path, flags);
}
int rmdir(const char *path) { return hit_at(AT_FDCWD, path) ? -1 : REAL(rmdir, const char *)(path); }

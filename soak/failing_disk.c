/* A disk that fails: preloaded, it counts the calls by which a process changes files below one directory, and lets the one
   that was asked for fail, once or from then on, or write half of what it was given first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ONCE, FROM_THEN_ON, HALF_THEN_FROM_THEN_ON };

static char below[PATH_MAX];
static long seen, failed, at;
static int number, manner;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Fail the nth call from now on that concerns a file below `directory`; nth = 0: only count. */
void disk_fails(const char *directory, long nth, int error, int how) {
  pthread_mutex_lock(&turn);
  snprintf(below, sizeof below, "%s", directory);
  seen = failed = 0, at = nth, number = error, manner = how;
  pthread_mutex_unlock(&turn);
}

long disk_calls(void) { return seen; }
long disk_failures(void) { return failed; }

static int concerns_path(const char *path) { return below[0] && path && !strncmp(path, below, strlen(below)); }

static int concerns(int handle) {
  char link[64], path[PATH_MAX];
  if (!below[0]) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return concerns_path(path);
}

static int concerns_at(int directory, const char *path) {
  return path && path[0] != '/' && directory != AT_FDCWD ? concerns(directory) : concerns_path(path);
}

/* 0: let it be; 1: fail, errno is set; 2: write half of it. */
static int fate(int can_be_half) {
  pthread_mutex_lock(&turn);
  seen++;
  int found = at && (seen == at || (seen > at && manner != ONCE));
  if (found && seen == at && manner == HALF_THEN_FROM_THEN_ON && can_be_half)
    found = 2;
  else if (found)
    failed++;
  pthread_mutex_unlock(&turn);
  if (found == 1) errno = number;
  return found;
}

#define REAL(type, name, ...) \
  static type (*real)(__VA_ARGS__); \
  if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int handle, const void *bytes, size_t count) {
  REAL(ssize_t, "write", int, const void *, size_t);
  int end = concerns(handle) ? fate(count > 1) : 0;
  return end == 1 ? -1 : real(handle, bytes, end ? count / 2 : count);
}

ssize_t pwrite64(int handle, const void *bytes, size_t count, off64_t place) {
  REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
  int end = concerns(handle) ? fate(count > 1) : 0;
  return end == 1 ? -1 : real(handle, bytes, end ? count / 2 : count, place);
}

ssize_t writev(int handle, const struct iovec *parts, int count) {
  REAL(ssize_t, "writev", int, const struct iovec *, int);
  int end = concerns(handle) ? fate(count > 1) : 0;
  return end == 1 ? -1 : real(handle, parts, end ? count / 2 : count);
}

#define ON_HANDLE(name) \
  int name(int handle) { \
    REAL(int, #name, int); \
    return concerns(handle) && fate(0) ? -1 : real(handle); \
  }
ON_HANDLE(fsync)
ON_HANDLE(fdatasync)

int ftruncate64(int handle, off64_t length) {
  REAL(int, "ftruncate64", int, off64_t);
  return concerns(handle) && fate(0) ? -1 : real(handle, length);
}

#define ON_TWO_PATHS(name) \
  int name(const char *from, const char *to) { \
    REAL(int, #name, const char *, const char *); \
    return concerns_path(to) && fate(0) ? -1 : real(from, to); \
  }
ON_TWO_PATHS(rename)
ON_TWO_PATHS(link)

int renameat(int here, const char *from, int there, const char *to) {
  REAL(int, "renameat", int, const char *, int, const char *);
  return concerns_at(there, to) && fate(0) ? -1 : real(here, from, there, to);
}

#define ON_PATH(name) \
  int name(const char *path) { \
    REAL(int, #name, const char *); \
    return concerns_path(path) && fate(0) ? -1 : real(path); \
  }
ON_PATH(unlink)
ON_PATH(rmdir)

int unlinkat(int directory, const char *path, int flags) {
  REAL(int, "unlinkat", int, const char *, int);
  return concerns_at(directory, path) && fate(0) ? -1 : real(directory, path, flags);
}

int mkdir(const char *path, mode_t mode) {
  REAL(int, "mkdir", const char *, mode_t);
  return concerns_path(path) && fate(0) ? -1 : real(path, mode);
}

#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    REAL(int, #name, const char *, int, ...); \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
    va_end(rest); \
    int changes = flags & (O_WRONLY | O_RDWR | O_CREAT); \
    return changes && concerns_path(path) && fate(0) ? -1 : real(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define OPEN_AT(name) \
  int name(int directory, const char *path, int flags, ...) { \
    REAL(int, #name, int, const char *, int, ...); \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
    va_end(rest); \
    int changes = flags & (O_WRONLY | O_RDWR | O_CREAT); \
    return changes && concerns_at(directory, path) && fate(0) ? -1 : real(directory, path, flags, mode); \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

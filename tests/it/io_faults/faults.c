/* Input and output that fails, under a program that knows nothing of it. Loaded with LD_PRELOAD,
 * it counts the calls that write, cut or sync a file under one folder, and makes one of them
 * fail. Set by variables:
 *
 *   IO_FAULTS_UNDER  the folder, as an absolute path
 *   IO_FAULTS_AT     which call, the first is 1
 *   IO_FAULTS_HOW    error  that call fails with EIO
 *                    full   it and each later call that writes fails with ENOSPC
 *                    short  it writes half of its bytes and reports that, and the next fails with ENOSPC
 *                    torn   it writes half of its bytes, and the process is killed
 *                    power  what was not synced before it is undone, and the process is killed
 *   IO_FAULTS_MARK   a file that is made when it has happened
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum how { NONE, ERROR, FULL, SHORT, TORN, POWER };

/* What a write that is not synced has replaced. */
struct undo {
  struct undo *earlier;
  char path[PATH_MAX];
  off_t offset, size_before;
  size_t length;
  char *bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct undo *undos;
static long calls, at;
static enum how how;
static const char *under;

static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);

__attribute__((constructor)) static void begin(void) {
  real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
  real_write = dlsym(RTLD_NEXT, "write");
  real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  real_unlink = dlsym(RTLD_NEXT, "unlink");
  const char *names[] = {"", "error", "full", "short", "torn", "power"};
  const char *name = getenv("IO_FAULTS_HOW");
  const char *number = getenv("IO_FAULTS_AT");
  under = getenv("IO_FAULTS_UNDER");
  if (!name || !number || !under) return;
  at = atol(number);
  for (int i = 1; i < 6; i++)
    if (!strcmp(name, names[i])) how = i;
}

static int concerns_path(const char *path) {
  size_t length = under ? strlen(under) : 0;
  return length && !strncmp(path, under, length) && path[length] == '/';
}

/* Whether `fd` is a file under the folder; `path` is given its name. */
static int concerns(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return concerns_path(path);
}

static void mark(void) {
  const char *path = getenv("IO_FAULTS_MARK");
  int fd = path ? open(path, O_CREAT | O_WRONLY, 0600) : -1;
  if (fd >= 0) close(fd);
}

/* The memory that connections share is made anew from the log after a crash. */
static int is_volatile(const char *path) {
  size_t length = strlen(path);
  return length > 4 && !strcmp(path + length - 4, "-shm");
}

/* Through the descriptor itself: closing another one of the file would give up its locks. */
static void remember(int fd, const char *path, off_t offset, size_t length) {
  struct stat before;
  struct undo *undo = calloc(1, sizeof *undo);
  if (fstat(fd, &before)) abort();
  strcpy(undo->path, path);
  undo->offset = offset;
  undo->size_before = before.st_size;
  undo->bytes = malloc(length ? length : 1);
  ssize_t kept = pread(fd, undo->bytes, length, offset);
  undo->length = kept > 0 ? kept : 0;
  undo->earlier = undos;
  undos = undo;
}

/* The locks end with the process, so other descriptors do no harm here. */
static void lose_power(void) {
  for (struct undo *undo = undos; undo; undo = undo->earlier) {
    int fd = open(undo->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) continue; /* deleted since */
    if (real_pwrite(fd, undo->bytes, undo->length, undo->offset) < 0) abort();
    if (real_ftruncate(fd, undo->size_before)) abort();
    close(fd);
  }
}

static void forget(const char *path) {
  for (struct undo **place = &undos; *place;) {
    struct undo *undo = *place;
    if (strcmp(undo->path, path)) {
      place = &undo->earlier;
    } else {
      *place = undo->earlier;
      free(undo->bytes);
      free(undo);
    }
  }
}

static _Noreturn void end(void) {
  mark();
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/* What becomes of the next call: 0 as usual, an error, or -1 for half of it. */
static int next_call(int is_write, int fd, const void *bytes, size_t length, off_t offset) {
  calls++;
  if (!how || calls < at) return 0;
  if (calls > at) return (how == FULL || how == SHORT) && is_write ? ENOSPC : 0;
  switch (how) {
    case ERROR: mark(); return EIO;
    case FULL: mark(); return is_write ? ENOSPC : 0;
    case SHORT: mark(); return is_write && length > 1 ? -1 : 0;
    case TORN:
      if (is_write && real_pwrite(fd, bytes, length / 2, offset) < 0) abort();
      end();
    case POWER: lose_power(); end();
    case NONE: break;
  }
  return 0;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
  char path[PATH_MAX];
  if (!concerns(fd, path)) return real_pwrite(fd, bytes, length, offset);
  pthread_mutex_lock(&lock);
  int error = next_call(1, fd, bytes, length, offset);
  if (error == -1) length /= 2;
  if (error <= 0 && how == POWER && !is_volatile(path)) remember(fd, path, offset, length);
  ssize_t written = error > 0 ? -1 : real_pwrite(fd, bytes, length, offset);
  pthread_mutex_unlock(&lock);
  if (error > 0) errno = error;
  return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
  return pwrite64(fd, bytes, length, offset);
}

/* Files that are written from their beginning on: those that say who holds a lock. */
ssize_t write(int fd, const void *bytes, size_t length) {
  char path[PATH_MAX];
  if (!concerns(fd, path)) return real_write(fd, bytes, length);
  ssize_t written = pwrite64(fd, bytes, length, lseek(fd, 0, SEEK_CUR));
  if (written > 0) lseek(fd, written, SEEK_CUR);
  return written;
}

int ftruncate64(int fd, off_t size) {
  char path[PATH_MAX];
  struct stat stat_before;
  if (!concerns(fd, path)) return real_ftruncate(fd, size);
  pthread_mutex_lock(&lock);
  int error = next_call(0, fd, NULL, 0, 0);
  if (!error && how == POWER && !is_volatile(path) && !fstat(fd, &stat_before)) {
    size_t cut = stat_before.st_size > size ? stat_before.st_size - size : 0;
    remember(fd, path, size, cut);
  }
  int result = error > 0 ? -1 : real_ftruncate(fd, size);
  pthread_mutex_unlock(&lock);
  if (error > 0) errno = error;
  return result;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int synced(int fd, int (*real)(int)) {
  char path[PATH_MAX];
  if (!concerns(fd, path)) return real(fd);
  pthread_mutex_lock(&lock);
  int error = next_call(0, fd, NULL, 0, 0);
  int result = error > 0 ? -1 : real(fd);
  if (!result) forget(path);
  pthread_mutex_unlock(&lock);
  if (error > 0) errno = error;
  return result;
}

int fsync(int fd) { return synced(fd, real_fsync); }

int fdatasync(int fd) { return synced(fd, real_fdatasync); }

int unlink(const char *path) {
  if (!concerns_path(path)) return real_unlink(path);
  pthread_mutex_lock(&lock);
  int error = next_call(0, -1, NULL, 0, 0);
  int result = error > 0 ? -1 : real_unlink(path);
  if (!result) forget(path);
  pthread_mutex_unlock(&lock);
  if (error > 0) errno = error;
  return result;
}

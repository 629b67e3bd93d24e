/* fail_nth REPORT N once|full COMMAND...: runs a command whose N-th call that brings something to the disk
 * fails with "No space left on device"; with `full` all later ones fail, too. The kernel asks before each
 * such call (seccomp's user notification), so the command needs no hook and can be any build of any program.
 * Into REPORT goes how many there were: files opened for writing, folders made, files renamed, writes and
 * syncs, but not on the standard streams; and "folder" when the N-th made one, which may be there already.
 * Exits as the command does; 77 where the kernel offers no such thing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, EXIT_OWN_FAULT = 99, LOW_WORD = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4 };

static void must(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fail_nth: %s: %s\n", what, strerror(errno));
    _exit(EXIT_OWN_FAULT);
}

/* --- what is asked about: pairs of a call and which of its arguments decides --- */

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(field))
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n) + LOW_WORD)
#define ASK BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* Asked always; when the first argument is no standard stream; when the flags, argument n, say "to write". */
#define ALWAYS(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), ASK
#define ON_FILE(call)                                                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4), LOAD(ARGUMENT(0)),                                      \
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, STDERR_FILENO, 0, 1), ASK, ALLOW
#define TO_WRITE(call, n)                                                                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4), LOAD(ARGUMENT(n)),                                      \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT, 0, 1), ASK, ALLOW

static struct sock_filter filter[] = {
    LOAD(offsetof(struct seccomp_data, nr)),
    ON_FILE(__NR_write),
    ON_FILE(__NR_writev),
    ON_FILE(__NR_pwrite64),
    ON_FILE(__NR_fsync),
    ON_FILE(__NR_fdatasync),
    TO_WRITE(__NR_openat, 2),
    ALWAYS(__NR_mkdirat),
    ALWAYS(__NR_renameat),
    ALWAYS(__NR_renameat2),
#ifdef __NR_open
    TO_WRITE(__NR_open, 1),
    ALWAYS(__NR_mkdir),
    ALWAYS(__NR_rename),
#endif
    ALLOW,
};

/* --- the command's side --- */

static void send_handle(int socket, int handle) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = "", .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = handle < 0 ? NULL : control.bytes,
                             .msg_controllen = handle < 0 ? 0 : sizeof control.bytes};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof handle);
    memcpy(CMSG_DATA(&control.header), &handle, sizeof handle);
    must(sendmsg(socket, &message, 0) == 1, "sendmsg");
}

static void run_command(int socket, char **command) {
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    const int listener =
        (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    send_handle(socket, listener); /* without a listener nobody is asked, so this and all else would go on */
    if (listener < 0) _exit(EXIT_SKIPPED);
    close(listener);
    close(socket);
    execvp(command[0], command);
    must(false, command[0]);
}

/* --- our side --- */

static int receive_handle(int socket) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte;
    int handle = -1;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    must(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1, "recvmsg");
    if (message.msg_controllen >= CMSG_LEN(sizeof handle))
        memcpy(&handle, CMSG_DATA(&control.header), sizeof handle);
    return handle;
}

/* A disk that is full still renames and syncs. */
static bool takes_room(int call) {
    return call != __NR_fsync && call != __NR_fdatasync && call != __NR_renameat && call != __NR_renameat2
#ifdef __NR_rename
           && call != __NR_rename
#endif
        ;
}

static bool makes_folder(int call) {
    return call == __NR_mkdirat
#ifdef __NR_mkdir
           || call == __NR_mkdir
#endif
        ;
}

/* Answers until the command is gone; returns how many calls there were, and whether the n-th made a folder.
 */
static long answer_all(int listener, pid_t child, long nth, bool full, bool *folder) {
    long calls = 0;
    const int gone = (int)syscall(__NR_pidfd_open, child, 0);
    must(gone >= 0, "pidfd_open");
    struct pollfd waits[] = {{.fd = listener, .events = POLLIN}, {.fd = gone, .events = POLLIN}};
    for (;;) {
        must(poll(waits, 2, -1) > 0, "poll");
        if (!(waits[0].revents & POLLIN) && waits[1].revents != 0) break;
        if (!(waits[0].revents & POLLIN)) continue;
        struct seccomp_notif request = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
            must(errno == ENOENT || errno == EINTR, "receive"); /* it was killed while it asked */
            continue;
        }
        calls++;
        if (calls == nth) *folder = makes_folder(request.data.nr);
        const bool fails = calls == nth || (full && calls > nth && takes_room(request.data.nr));
        struct seccomp_notif_resp answer = {.id = request.id,
                                            .error = fails ? -ENOSPC : 0,
                                            .flags = fails ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0) must(errno == ENOENT, "send");
    }
    close(gone);
    return calls;
}

int main(int count, char **words) {
    int sockets[2], status = 0;
    if (count < 5 || (strcmp(words[3], "once") != 0 && strcmp(words[3], "full") != 0)) {
        fprintf(stderr, "usage: fail_nth REPORT N once|full COMMAND...\n");
        return EXIT_OWN_FAULT;
    }
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0, "socketpair");
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) run_command(sockets[1], words + 4);
    const int listener = receive_handle(sockets[0]);
    bool folder = false;
    long calls = 0;
    if (listener >= 0)
        calls = answer_all(listener, child, strtol(words[2], NULL, 10), words[3][0] == 'f', &folder);
    FILE *report = fopen(words[1], "w");
    must(report && fprintf(report, "%ld%s\n", calls, folder ? " folder" : "") > 0 && fclose(report) == 0,
         words[1]);
    must(waitpid(child, &status, 0) == child, "waitpid");
    if (listener < 0) fprintf(stderr, "fail_nth: the kernel does not ask about calls here\n");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Copies beside a queue: one begins when what was queued before it is done, what is queued after it does not
 * wait for it, and its mark says when it is over; a call that fails says so. On one GPU, or between two. */
#include <string.h>

#include "../../cuda/gpu.h"
#include "../check.h"
#include "../gpu_control.h"

extern const struct backend gpu_backend;
enum { FLOATS = 1 << 12, LOOKS = 1000000 };
enum { FIRST, SENT, LATER, VECTORS };

struct rig {
    struct device from, to;
    float *on[VECTORS], here[FLOATS], there[FLOATS];
    void *mark;
};

static int open_rig(struct rig *rig, int other, struct error *error) {
    *rig = (struct rig){.from = {.backend = &gpu_backend, .name = "gpu:0", .threads = 1},
                        .to = {.backend = &gpu_backend, .name = "gpu:1", .label = other, .threads = 1}};
    RETURN_IF(gpu_open(&rig->from, error));
    RETURN_IF(gpu_open(&rig->to, error));
    for (int v = 0; v < VECTORS; v++)
        RETURN_IF(gpu_allocate(v == SENT ? &rig->to : &rig->from, (void **)&rig->on[v], sizeof rig->here,
                               "vector", error));
    for (int i = 0; i < FLOATS; i++) rig->here[i] = (float)i;
    RETURN_IF(gpu_transfer(&rig->from, rig->on[FIRST], rig->here, sizeof rig->here, error));
    return gpu_marks.open(&rig->from, false, &rig->mark, error);
}

static void close_rig(struct rig *rig) {
    gpu_marks.close(&rig->from, rig->mark);
    for (int v = 0; v < VECTORS; v++) gpu_release(&rig->from, rig->on[v]);
    gpu_close(&rig->to);
    gpu_close(&rig->from);
}

static int send_vector(struct rig *rig, bool finishes, struct error *error) {
    const size_t bytes = sizeof rig->here;
    RETURN_IF(gpu_vectors.scale(&rig->from, rig->on[FIRST], FLOATS, 2.0f, error)); /* to be waited for */
    RETURN_IF(gpu_send(&rig->from, rig->on[SENT], rig->on[FIRST], bytes, rig->mark, error));
    RETURN_IF(gpu_queue_copy(&rig->from, rig->on[LATER], rig->on[FIRST], bytes, error));
    return finishes ? gpu_finish(&rig->from, error) : OK;
}

static void check_order(int other, bool finishes) {
    static struct rig rig;
    struct error error = {0};
    bool is = false;
    int code = open_rig(&rig, other, &error), looks = 0;
    if (code == OK) code = gpu_marks.reached(&rig.from, rig.mark, &is, &error);
    CHECK(code == OK && is, "a mark that was never set: %d, %s", is, error.words);
    if (code == OK) code = send_vector(&rig, finishes, &error);
    if (code == OK) code = gpu_marks.reached(&rig.from, rig.mark, &is, &error);
    CHECK(!STANDIN || !is, "finish has waited for what goes on beside the queue");
    while (code == OK && !is && looks++ < LOOKS) code = gpu_marks.reached(&rig.from, rig.mark, &is, &error);
    CHECK(code == OK && is, "not reached after %d looks: %s", looks, error.words);
    if (code == OK) code = gpu_transfer(&rig.to, rig.there, rig.on[SENT], sizeof rig.there, &error);
    int wrong = 0;
    for (int i = 0; i < FLOATS; i++)
        wrong += rig.there[i] < 2.0f * (float)i || rig.there[i] > 2.0f * (float)i;
    CHECK(code == OK && wrong == 0, "%d numbers are not what was queued before: %s", wrong, error.words);
    close_rig(&rig);
}

#if STANDIN
static void check_fails(void) {
    static struct rig rig;
    int failed = 0;
    for (long n = 1; n < 20; n++) {
        struct error error = {0};
        bool is = false;
        CHECK(open_rig(&rig, 1, &error) == OK, "%s", error.words);
        standin_fail(n);
        int code = send_vector(&rig, true, &error);
        if (code == OK) code = gpu_marks.reached(&rig.from, rig.mark, &is, &error);
        failed += code != OK;
        CHECK(code == OK || (code == ERROR_DEVICE && strstr(error.words, "gpu:0: ")), "call %ld: %s", n,
              error.words);
        standin_fail(0);
        close_rig(&rig);
    }
    CHECK(failed >= 8, "%d calls failed", failed);
}
#endif

int main(void) {
    gpu_or_skip();
    check_order(gpu_backend.count() > 1, true);
    check_order(gpu_backend.count() > 1, false);
#if STANDIN
    check_fails();
#endif
    return check_end();
}

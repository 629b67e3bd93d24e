/* What a leader tells the other parameter servers of how all go on: it comes as it was sent, and a field out
 * of its range is refused with what was expected. */
#include "../check.h"

#include <string.h>
#include "../../src/bridge/lead.h"

static void change_is(struct phase_change change, bool taken) {
    uint8_t bytes[CHANGE_BYTES];
    struct phase_change got = {0};
    struct error error = {0};
    change_put(&change, bytes);
    const int code = change_get(&got, 2, 3, bytes, &error);
    CHECK(code == (taken ? OK : ERROR_PEER) && (taken || strstr(error.words, ", expected ")), "%d: %s", code,
          error.words);
    CHECK(!taken || (got.phase == change.phase && got.version == change.version &&
                     got.schedule_ahead == change.schedule_ahead && got.workers == change.workers &&
                     got.total == change.total),
          "phase %d, version %ld, ahead %ld, %d workers, total %ld", got.phase, got.version,
          got.schedule_ahead, got.workers, got.total);
}

int main(void) {
    change_is((struct phase_change){1, 17, -9, 3, 1000}, true);
    change_is((struct phase_change){2, 17, -9, 3, 1000}, false);
    change_is((struct phase_change){-1, 17, -9, 3, 1000}, false);
    change_is((struct phase_change){1, -1, -9, 3, 1000}, false);
    change_is((struct phase_change){1, 17, -9, 0, 1000}, false);
    change_is((struct phase_change){1, 17, -9, 4, 1000}, false);
    change_is((struct phase_change){1, 17, -9, 3, -1}, false);
    return check_end();
}

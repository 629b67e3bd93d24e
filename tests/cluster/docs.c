/* docs/cluster.md says of every setting who is told it; and of those that all processes have to agree on,
 * that it is what is trained. */
#include "../check.h"

#include <stdlib.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/config/config.h"

enum { BYTES_MOST = 1 << 20 };

/* The text between two marks, of which the second is sought after the first; NULL: one is not there. */
static char *part_of(const char *text, const char *from, const char *to) {
    const char *begin = text ? strstr(text, from) : NULL;
    const char *end = begin ? strstr(begin, to) : NULL;
    CHECK(end, "no \"%s\" and then \"%s\"", from, to);
    return end ? strndup(begin, (size_t)(end - begin)) : NULL;
}

/* --timeout is not in "--start-timeout", nor --shard in "--shards". */
static bool names(const char *part, const char *name) {
    char typed[64];
    snprintf(typed, sizeof typed, "--%s", name);
    for (const char *at = part; (at = strstr(at, typed)) != NULL; at++)
        if ((at == part || at[-1] == ' ' || at[-1] == '`') && strchr(" `=", at[strlen(typed)])) return true;
    return false;
}

int main(void) {
    struct error error = {0};
    char *text = NULL;
    size_t bytes = 0;
    CHECK(file_read("docs/cluster.md", BYTES_MOST, &text, &bytes, &error) == OK, "%s", error.words);
    char *told = part_of(text, "## Who is told what", "**How they agree.**");
    char *trained = part_of(told, "what is trained, and how:", "The results:");
    for (const struct option *row = run_options; told && trained && row->name; row++) {
        CHECK(names(told, row->name), "who is told --%s?", row->name);
        CHECK(names(trained, row->name) == ((row->flags & OPTION_AGREED) != 0),
              "--%s: agreed on by all, and among what is trained: one without the other", row->name);
    }
    free(trained);
    free(told);
    memory_free(text);
    return check_end();
}

/* See wrong.h. */
#include "wrong.h"

#include <stdlib.h>

#include "../base/memory.h"
#include "../base/text.h"

/* So that the order is always the same. */
static int compare(const void *a_given, const void *b_given) {
    const struct mistake *a = a_given, *b = b_given;
    if (a->sure < b->sure || a->sure > b->sure) return a->sure < b->sure ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

int mistakes_find(struct mistake **mistakes, int *count, const struct examples *examples,
                  const struct answers *answers, int classes, struct error *error) {
    *count = 0;
    RETURN_IF(memory_array(mistakes, examples->count, "mistakes", error));
    for (int i = 0; i < examples->count; i++)
        if (answers->said[i] != examples->labels[i])
            (*mistakes)[(*count)++] = (struct mistake){
                i, answers->probabilities[(size_t)i * (size_t)classes + (size_t)answers->said[i]]};
    qsort(*mistakes, (size_t)*count, sizeof **mistakes, compare);
    return OK;
}

static int fill(struct sheet *sheet, const struct dataset *dataset, const struct examples *examples,
                const struct answers *answers, const struct mistake *mistakes, struct error *error) {
    struct example_sizes sizes = {0};
    RETURN_IF(example_sizes(&sizes, dataset, error));
    for (int i = 0; i < sheet->count; i++) {
        struct tile *tile = &sheet->tiles[i];
        const int number = mistakes[i].number;
        RETURN_IF(example_stored(&tile->picture[0], examples, &sizes, number, error));
        snprintf(tile->line[0], TILE_TEXT, "%s", dataset->class_names[examples->labels[number]]);
        snprintf(tile->line[1], TILE_TEXT, "%s %.0f%%", dataset->class_names[answers->said[number]],
                 100.0 * (double)mistakes[i].sure);
        tile->tone[1] = TONE_WRONG;
    }
    return OK;
}

int wrong_sheet(struct sheet *sheet, const struct dataset *dataset, const struct examples *examples,
                const char *part, const struct answers *answers, int count, struct error *error) {
    struct mistake *mistakes = NULL;
    int found = 0;
    RETURN_IF(mistakes_find(&mistakes, &found, examples, answers, dataset->classes, error));
    int code = sheet_open(sheet, count < found ? count : found, error);
    if (code == OK) code = fill(sheet, dataset, examples, answers, mistakes, error);
    memory_free(mistakes);
    if (code != OK) return code;
    struct text title = text_into(sheet->title, sizeof sheet->title);
    text_add(&title, "%s: %d of %d %s examples are wrong", dataset->name, found, examples->count, part);
    if (sheet->count < found) text_add(&title, "; the %d that the network is surest of", sheet->count);
    if (found > 0) text_add(&title, ". First line: the label; second: what the network says");
    return OK;
}

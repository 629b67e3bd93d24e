/* Rows of predictions are CSV whatever the names of classes and labels are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/infer/predictions.h"
#include "../check.h"

/* What one example's row is, as it is printed. */
static void check_row(const struct restored *restored, const float *says, const char *expected) {
    const struct predictions predictions = {.restored = restored, .format = PREDICTIONS_CSV};
    char row[200] = "";
    FILE *file = tmpfile();
    CHECK(file != NULL, "no file in /tmp");
    if (file == NULL) return;
    fflush(stdout);
    const int out = dup(1);
    dup2(fileno(file), 1);
    predictions_add(&predictions, NULL, "", says);
    fflush(stdout);
    dup2(out, 1);
    close(out);
    rewind(file);
    row[fread(row, 1, sizeof row - 1, file)] = '\0';
    CHECK(strcmp(row, expected) == 0, "printed %s, expected %s", row, expected);
    fclose(file);
}

int main(void) {
    char *names[] = {"red, dark", "blue", "8\" wide"};
    static struct restored restored;
    restored.classes = 3;
    restored.class_names = names;
    restored.task = TASK_LABELS;
    check_row(&restored, (const float[]){0.75f, 0.75f, 0.75f},
              "\"red, dark blue 8\"\" wide\",0.75,0.75,0.75\n");
    check_row(&restored, (const float[]){0.25f, 0.75f, 0.75f}, "\"blue 8\"\" wide\",0.25,0.75,0.75\n");
    check_row(&restored, (const float[]){0.25f, 0.75f, 0.25f}, "blue,0.25,0.75,0.25\n");
    check_row(&restored, (const float[]){0.25f, 0.25f, 0.25f}, ",0.25,0.25,0.25\n");
    restored.task = TASK_CLASSES;
    check_row(&restored, (const float[]){0.5f, 0.25f, 0.25f}, "\"red, dark\",0.5,0.25,0.25\n");
    return check_end();
}
